#include "lipsa/attention/local_norm.hpp"

#include <cmath>
#include <vector>

#include "attention/ball_features.hpp"
#include "core/check.hpp"
#include "lipsa/core/parallel.hpp"

namespace lipsa {
namespace {

/// One head at X in direction dX.
struct Head {
  Balls q, k, v;     ///< queries, keys and values
  Balls dq, dk, dv;  ///< their derivatives
};

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

Head head_at(const MultiHead& layer, Index h, const BallTokens& x, const Balls& dx) {
  BallFeatures at = ball_features(layer, h, x);
  Head head{.q = std::move(at.q),
            .k = std::move(at.k),
            .v = std::move(at.v),
            .dq = product(dx, at.w_q),
            .dk = product(dx, at.w_k),
            .dv = product(dx, at.w_v)};
  if (layer.kind == AttentionKind::cosine) {
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
  return {ball_scale(layer) * s, ball_scale(layer) * ds};
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

  const BallTokens tokens(x);
  const Balls direction = exactly(Eigen::Map<const Matrix>(v.data(), n, D));
  const Index d_v = layer.value_width();
  Balls derivative(outputs.count, layer.heads * d_v);
  for (Index h = 0; h < layer.heads; ++h) {
    const Head head = head_at(layer, h, tokens, direction);
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
