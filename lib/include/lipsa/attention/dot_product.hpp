/// \file
/// Dot-product scores, S_ij = s q_i · k_j, and their derivatives.
#pragma once

#include "lipsa/core/types.hpp"

namespace lipsa {

/// The scores of some tokens' queries Q (r × d) against all keys K (n × d), and their derivative.
/// Being bilinear, `tangent` is symmetric in (Q, K) and (dQ, dK): the gradient of
/// ⟨G, tangent(Q, K; dQ, dK)⟩ in (Q, K) is `adjoint` at (dQ, dK).
///
/// In general results are defined up to a constant in each row of S, which the softmax forgets, and
/// cotangents G have rows that sum to zero, as softmax_derivative leaves them. These here hold as
/// they stand, constants and all, for the sigmoid too, which forgets none.
///
/// \source Vaswani et al., NeurIPS 2017.
/// \test   tests/attention/scores_test.cpp
struct DotProductScores {
  double scale = 1.0;  ///< s

  /// S = s Q Kᵀ, r × n
  void scores(const ConstMatrixRef& q, const ConstMatrixRef& k, MatrixRef s) const;

  /// dS = s (dQ Kᵀ + Q dKᵀ), r × n
  void tangent(const ConstMatrixRef& q, const ConstMatrixRef& k, const ConstMatrixRef& dq,
               const ConstMatrixRef& dk, MatrixRef ds) const;

  /// gQ += s G K, gK += s Gᵀ Q, for G (r × n)
  void adjoint(const ConstMatrixRef& q, const ConstMatrixRef& k, const ConstMatrixRef& g,
               MatrixRef gq, MatrixRef gk) const;

  /// ∂S_ij/∂k_j as rows, n × d: s q_i in each
  void key_gradient(const ConstMatrixRef& qi, const ConstMatrixRef& k, MatrixRef rows) const;

  /// ∂S_ij/∂q_i = query_factor · k_j
  double query_factor() const { return scale; }
};

}  // namespace lipsa
