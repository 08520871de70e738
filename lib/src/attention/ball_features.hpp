/// \file
/// Matrices of balls, and what a head of attention makes of tokens in them: shared by what is
/// proved of attention in double precision. Shares no code with Jacobian. Private to lib/.
#pragma once

#include <vector>

#include "core/ball.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

/// A matrix of balls, row by row.
struct Balls {
  Index rows, cols;
  std::vector<Ball> data;

  Balls(Index r, Index c) : rows(r), cols(c), data(static_cast<std::size_t>(r * c)) {}
  Ball& operator()(Index i, Index j) { return data[static_cast<std::size_t>(i * cols + j)]; }
  const Ball& operator()(Index i, Index j) const {
    return data[static_cast<std::size_t>(i * cols + j)];
  }
};

Balls exactly(const ConstMatrixRef& a);
Balls product(const Balls& a, const Balls& b);

/// Bounds of |vec(x)|_p, or of max_i |x_i|_2, from both sides.
Ball norm_of(const Balls& x, Norm p);

/// The scale s; 1/√d is a rounded number, unless the layer names its scale.
Ball ball_scale(const MultiHead& layer);

/// Tokens, and what they differ by from their mean as computed.
struct BallTokens {
  explicit BallTokens(const ConstMatrixRef& tokens);

  Balls x;
  Balls mean;     ///< 1 × D
  Balls centred;  ///< x − mean
};

/// Queries, keys and values of one head with their biases; of cosine not yet normalised. What is
/// common to all tokens is left out wherever only differences count: queries and keys of l2, keys
/// of dot, and values but for cosine and sigmoid.
struct BallFeatures {
  Balls q, k, v;
  Balls w_q, w_k, w_v;  ///< the head's weights, w_v its value map
  Balls offset;         ///< 1 × d_v: what v lacks, the same for every token
};

BallFeatures ball_features(const MultiHead& layer, Index head, const BallTokens& tokens);

}  // namespace lipsa
