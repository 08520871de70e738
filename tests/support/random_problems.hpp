/// \file
/// Random layers and inputs for tests, all from a seed.
#pragma once

#include <cmath>
#include <ostream>

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa::test {

struct Shape {
  Index n, D, H, d, d_v, D_out;
};

inline std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "n=" << s.n << " D=" << s.D << " H=" << s.H << " d=" << s.d << " d_v=" << s.d_v
             << " D_out=" << s.D_out;
}

/// One token, one feature, wide heads, narrow heads, H d ≠ D, D_out ≠ D, several tiles of tokens.
inline const std::vector<Shape> shapes{{1, 3, 2, 2, 4, 3}, {2, 1, 1, 1, 1, 1}, {5, 4, 2, 3, 1, 4},
                                       {7, 2, 3, 5, 2, 6}, {4, 6, 1, 2, 3, 2}, {70, 2, 2, 1, 2, 2}};

inline const std::vector<AttentionKind> kinds{AttentionKind::dot, AttentionKind::l2,
                                              AttentionKind::l2_untied, AttentionKind::cosine,
                                              AttentionKind::sigmoid};

/// Standard normal weights and biases over √(rows), so that attention is neither uniform nor hard.
inline MultiHead random_layer(Rng& rng, AttentionKind kind, const Shape& s, bool biases = true) {
  const auto weight = [&](Index rows, Index cols) -> Matrix {
    return normal_matrix(rng, rows, cols) / std::sqrt(static_cast<double>(rows));
  };
  MultiHead layer{.kind = kind,
                  .heads = s.H,
                  .W_Q = weight(s.D, s.H * s.d),
                  .W_V = weight(s.D, s.H * s.d_v),
                  .W_O = weight(s.H * s.d_v, s.D_out)};
  if (kind != AttentionKind::l2) {
    layer.W_K = weight(s.D, s.H * s.d);
  }
  if (kind == AttentionKind::cosine) {
    layer.epsilon = 0.1;
  }
  if (biases) {
    layer.b_Q = normal_matrix(rng, s.H * s.d, 1);
    layer.b_V = normal_matrix(rng, s.H * s.d_v, 1);
    layer.b_O = normal_matrix(rng, s.D_out, 1);
    if (kind != AttentionKind::l2) {
      layer.b_K = normal_matrix(rng, s.H * s.d, 1);
    }
    if (kind == AttentionKind::sigmoid) {
      layer.score_bias = 0.5 * rng.uniform(-2.0, 1.0);
    }
  }
  return layer;
}

/// A random mask in which token 0 sees nothing (when there is another) and each other itself.
inline Mask random_mask(Rng& rng, Index n) {
  Mask::Visible visible(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      visible(i, j) = (i == j || rng.uniform() < 0.5) && (i > 0 || n == 1);
    }
  }
  return Mask::arbitrary(std::move(visible));
}

/// Weights one, one head of width one: the layer of the paper's figure 2.
inline MultiHead unit_layer(AttentionKind kind) {
  const Matrix one = Matrix::Ones(1, 1);
  return {.kind = kind,
          .W_Q = one,
          .W_K = kind == AttentionKind::l2 ? Matrix() : one,
          .W_V = one,
          .W_O = one,
          .epsilon = kind == AttentionKind::cosine ? 0.1 : 0.0};
}

inline Eigen::Map<const Vector> vec(const Matrix& x) {
  return {x.data(), x.size()};
}

}  // namespace lipsa::test
