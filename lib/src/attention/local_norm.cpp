#include "lipsa/attention/local_norm.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/ball.hpp"
#include "core/check.hpp"
#include "lipsa/core/parallel.hpp"

namespace lipsa {
namespace {

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

Balls exactly(const ConstMatrixRef& a) {
  Balls b(a.rows(), a.cols());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.cols(); ++j) {
      b(i, j) = a(i, j);
    }
  }
  return b;
}

Balls product(const Balls& a, const Balls& b) {
  Balls c(a.rows, b.cols);
  parallel_for(a.rows, [&](Index i) {
    for (Index k = 0; k < a.cols; ++k) {
      for (Index j = 0; j < b.cols; ++j) {
        c(i, j) += a(i, k) * b(k, j);
      }
    }
  });
  return c;
}

Balls transposed(const Balls& a) {
  Balls t(a.cols, a.rows);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j) {
      t(j, i) = a(i, j);
    }
  }
  return t;
}

/// One head at X in direction dX.
struct Head {
  Balls q, k, v;     ///< queries, keys and values
  Balls dq, dk, dv;  ///< their derivatives
};

/// 1/√d is a rounded number, unless the layer names its scale.
Ball scale_of(const MultiHead& layer) {
  const double s = layer.score_scale();
  return layer.scale > 0.0 ? Ball(s) : Ball(s, 4.0 * Ball::u * s);
}

/// Rows z and dz become ẑ = z/r and dẑ = (‖z‖² dz − z (z·dz) + ε dz)/r³, r² = ‖z‖² + ε. The
/// difference is Σ_b z_b (z_b dz_a − z_a dz_b): no term of it cancels against another for d = 1.
void normalise(double epsilon, Balls& z, Balls& dz) {
  std::vector<Ball> across(static_cast<std::size_t>(z.cols));
  for (Index i = 0; i < z.rows; ++i) {
    Ball square = epsilon;
    for (Index a = 0; a < z.cols; ++a) {
      square += z(i, a) * z(i, a);
      Ball& sum = across[static_cast<std::size_t>(a)];
      sum = Ball(epsilon) * dz(i, a);
      for (Index b = 0; b < z.cols; ++b) {
        if (b != a) {
          sum += z(i, b) * (z(i, b) * dz(i, a) - z(i, a) * dz(i, b));
        }
      }
    }
    const Ball r = sqrt(square);
    for (Index a = 0; a < z.cols; ++a) {
      z(i, a) = z(i, a) / r;
      dz(i, a) = across[static_cast<std::size_t>(a)] / square / r;
    }
  }
}

Head head_at(const MultiHead& layer, Index h, const Balls& x, const Balls& centred,
             const Balls& dx) {
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  const bool tied = layer.kind == AttentionKind::l2;
  const Balls w_q = exactly(layer.W_Q.middleCols(h * d, d));
  const Balls w_k = tied ? w_q : exactly(layer.W_K.middleCols(h * d, d));
  Balls w_v = exactly(layer.W_V.middleCols(h * d_v, d_v));
  if (tied) {
    w_v = product(w_q, product(transposed(w_q), w_v));
    for (Ball& entry : w_v.data) {
      entry = scale_of(layer) * entry;
    }
  }
  const auto add = [&](Balls& rows, const Vector& bias) {
    for (Index i = 0; i < rows.rows && bias.size() > 0; ++i) {
      for (Index a = 0; a < rows.cols; ++a) {
        rows(i, a) += bias(h * rows.cols + a);
      }
    }
  };
  // What is common to all tokens is left out wherever only differences count.
  const bool cosine = layer.kind == AttentionKind::cosine;
  const bool whole = cosine || layer.kind == AttentionKind::sigmoid;
  const bool whole_keys = whole || layer.kind == AttentionKind::l2_untied;
  Head head{.q = product(tied ? centred : x, w_q),
            .k = product(whole_keys ? x : centred, w_k),
            .v = product(whole ? x : centred, w_v),
            .dq = product(dx, w_q),
            .dk = product(dx, w_k),
            .dv = product(dx, w_v)};
  if (!tied) {
    add(head.q, layer.b_Q);
  }
  if (whole_keys) {
    add(head.k, layer.b_K);
  }
  if (whole) {
    add(head.v, layer.b_V);
  }
  if (cosine) {
    normalise(layer.epsilon, head.q, head.dq);
    normalise(layer.epsilon, head.k, head.dk);
    normalise(layer.epsilon, head.v, head.dv);
  }
  return head;
}

struct Score {
  Ball s, ds;
};

Score score(const MultiHead& layer, const Head& head, Index i, Index j) {
  const bool l2 = layer.kind == AttentionKind::l2 || layer.kind == AttentionKind::l2_untied;
  Ball s;
  Ball ds;
  for (Index a = 0; a < layer.head_width(); ++a) {
    if (!l2) {
      s += head.q(i, a) * head.k(j, a);
      ds += head.dq(i, a) * head.k(j, a) + head.q(i, a) * head.dk(j, a);
    } else {
      const Ball difference = head.q(i, a) - head.k(j, a);
      s += -(difference * difference);
      ds += Ball(-2.0) * difference * (head.dq(i, a) - head.dk(j, a));
    }
  }
  return {scale_of(layer) * s, scale_of(layer) * ds};
}

/// Adds the derivative of head output i of sigmoid attention to out, with t_ij = S_ij + β:
/// Σ_j σ(t_ij) dv_j + σ'(t_ij) dS_ij v_j, by e^−|t|, σ = (1 or e^−|t|)/(1 + e^−|t|) and
/// σ' = e^−|t|/(1 + e^−|t|)².
void add_sigmoid_output(const MultiHead& layer, const Mask& mask, const Head& head, Index i,
                        Ball* out) {
  for (Index j = 0; j < head.k.rows; ++j) {
    if (!mask.visible(i, j)) {
      continue;
    }
    const Score at = score(layer, head, i, j);
    const Ball t = at.s + layer.score_bias;
    const Ball small = exp(t.middle > 0.0 ? -t : t);
    const Ball whole = Ball(1.0) + small;
    const Ball weight = (t.middle > 0.0 ? Ball(1.0) : small) / whole;
    const Ball change = small / whole / whole * at.ds;
    for (Index a = 0; a < layer.value_width(); ++a) {
      out[a] += weight * head.dv(j, a) + change * head.v(j, a);
    }
  }
}

/// Adds the derivative of head output i to out: Σ_j P_ij [dv_j + (dS_ij − Σ P dS)(v_j − o_i)].
void add_head_output(const MultiHead& layer, const Mask& mask, const Head& head, Index i,
                     Ball* out) {
  const Index n = head.k.rows;
  const Index d_v = layer.value_width();
  std::vector<Index> seen;
  std::vector<Score> scores;
  double largest = -std::numeric_limits<double>::infinity();
  for (Index j = 0; j < n; ++j) {
    if (mask.visible(i, j)) {
      seen.push_back(j);
      scores.push_back(score(layer, head, i, j));
      largest = std::fmax(largest, scores.back().s.middle);
    }
  }
  if (seen.empty()) {
    return;
  }
  std::vector<Ball> p(seen.size());
  Ball total;
  for (std::size_t t = 0; t < seen.size(); ++t) {
    p[t] = exp(scores[t].s - largest);
    total += p[t];
  }
  Ball mean;
  std::vector<Ball> o(static_cast<std::size_t>(d_v));
  for (std::size_t t = 0; t < seen.size(); ++t) {
    p[t] = p[t] / total;
    mean += p[t] * scores[t].ds;
    for (Index a = 0; a < d_v; ++a) {
      o[static_cast<std::size_t>(a)] += p[t] * head.v(seen[t], a);
    }
  }
  for (std::size_t t = 0; t < seen.size(); ++t) {
    const Ball ds = scores[t].ds - mean;
    for (Index a = 0; a < d_v; ++a) {
      out[a] +=
          p[t] * (head.dv(seen[t], a) + ds * (head.v(seen[t], a) - o[static_cast<std::size_t>(a)]));
    }
  }
}

/// Bounds of |x|_p, p = 1, 2 or inf, from both sides, scaled by a power of two so that squares
/// neither overflow nor vanish.
Ball vector_norm(std::span<const Ball> x, Norm p) {
  double largest = 0.0;
  double error = 0.0;
  for (const Ball& entry : x) {
    largest = std::max(largest, std::abs(entry.middle));
    error += entry.radius;
  }
  if (largest == 0.0 && std::isfinite(error)) {
    return {0.0, error * (1.0 + static_cast<double>(x.size()) * 2.0 * Ball::u)};
  }
  if (!(largest > 0.0) || !std::isfinite(largest)) {
    return {0.0, std::numeric_limits<double>::infinity()};
  }
  const int exponent = std::ilogb(largest);
  double lower = 0.0;  // for inf; the others sum balls
  double upper = 0.0;
  Ball sum;
  for (const Ball& entry : x) {
    const Ball scaled(std::scalbn(entry.middle, -exponent),
                      (std::scalbn(entry.radius, -exponent) + Ball::tiny) * Ball::slack);
    lower = std::max(lower, scaled.magnitude_lower());
    upper = std::max(upper, scaled.magnitude_upper());
    sum += p == Norm::two ? scaled * scaled : abs(scaled);
  }
  if (p != Norm::inf) {
    const auto root = [&](double y) { return p == Norm::two ? std::sqrt(std::max(y, 0.0)) : y; };
    lower = std::fmax(0.0, std::nextafter(root(sum.lower()), 0.0));
    upper = std::nextafter(root(sum.upper()), std::numeric_limits<double>::infinity());
  }
  const Ball half(0.5);
  const Ball middle = half * (Ball(lower) + Ball(upper));
  const double radius = std::max(upper - middle.middle, middle.middle - lower);
  return {std::scalbn(middle.middle, exponent),
          (std::scalbn(radius + middle.radius, exponent) + Ball::tiny) * Ball::slack};
}

/// Bounds of the norm of a token matrix.
Ball norm_of(const Balls& x, Norm p) {
  if (p != Norm::max_token) {
    return vector_norm(x.data, p);
  }
  std::vector<Ball> lengths;
  for (Index i = 0; i < x.rows; ++i) {
    lengths.push_back(
        vector_norm(std::span(&x(i, 0), static_cast<std::size_t>(x.cols)), Norm::two));
  }
  return vector_norm(lengths, Norm::inf);
}

}  // namespace

double lower_bound_local_norm(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask,
                              Norm p, const ConstVectorRef& v, TokenRange outputs) {
  require_valid(layer);
  const Index n = x.rows();
  const Index D = layer.width();
  require(
      n >= 1 && x.cols() == D && x.allFinite(),
      "lower_bound_local_norm: x must be finite with at least one row and {} columns, got {} x {}",
      D, n, x.cols());
  require(v.size() == n * D && v.allFinite() && !v.isZero(0.0),
          "lower_bound_local_norm: v must be finite, not zero and of length {}, got length {}",
          n * D, v.size());
  require(mask.tokens() == 0 || mask.tokens() == n,
          "lower_bound_local_norm: mask must be for {} tokens as x, got {}", n, mask.tokens());
  if (outputs.count < 0) {
    outputs = {0, n};
  }
  require(outputs.first >= 0 && outputs.count >= 1 && outputs.count <= n - outputs.first,
          "lower_bound_local_norm: outputs must be tokens of [0, {}), got {} from {}", n,
          outputs.count, outputs.first);

  const Balls tokens = exactly(x);
  const Balls direction = exactly(Eigen::Map<const Matrix>(v.data(), n, D));
  const Eigen::RowVectorXd mean = x.colwise().mean();
  Balls centred(n, D);
  for (Index i = 0; i < n; ++i) {
    for (Index a = 0; a < D; ++a) {
      centred(i, a) = Ball(x(i, a)) - Ball(mean(a));
    }
  }
  const Index d_v = layer.value_width();
  Balls derivative(outputs.count, layer.heads * d_v);
  for (Index h = 0; h < layer.heads; ++h) {
    const Head head = head_at(layer, h, tokens, centred, direction);
    parallel_for(outputs.count, [&](Index i) {
      const auto add = layer.kind == AttentionKind::sigmoid ? add_sigmoid_output : add_head_output;
      add(layer, mask, head, outputs.first + i, &derivative(i, h * d_v));
    });
  }
  if (layer.W_O.size() > 0) {
    derivative = product(derivative, exactly(layer.W_O));
  }
  const double bound = (norm_of(derivative, p) / norm_of(direction, p)).lower();
  return bound > 0.0 && std::isfinite(bound) ? bound : 0.0;
}

}  // namespace lipsa
