#include "attention/enclosed_attend.hpp"

#include <cmath>
#include <limits>

#include "lipsa/core/parallel.hpp"

namespace lipsa {
namespace {

/// Rows z become z/√(‖z‖² + ε).
void normalise(double epsilon, Balls& z) {
  for (Index i = 0; i < z.rows; ++i) {
    Ball square = epsilon;
    for (Index a = 0; a < z.cols; ++a) {
      square += z(i, a) * z(i, a);
    }
    const Ball r = sqrt(square);
    for (Index a = 0; a < z.cols; ++a) {
      z(i, a) = z(i, a) / r;
    }
  }
}

Ball score(const MultiHead& layer, const BallFeatures& head, Index i, Index j) {
  const bool l2 = layer.kind == AttentionKind::l2 || layer.kind == AttentionKind::l2_untied;
  Ball s;
  for (Index a = 0; a < layer.head_width(); ++a) {
    if (l2) {
      const Ball difference = head.q(i, a) - head.k(j, a);
      s += -(difference * difference);
    } else {
      s += head.q(i, a) * head.k(j, a);
    }
  }
  return ball_scale(layer) * s;
}

/// Σ_j σ(S_ij + β) v_j into out, by e^−|t|: σ = (1 or e^−|t|)/(1 + e^−|t|).
void sigmoid_output(const MultiHead& layer, const Mask& mask, const BallFeatures& head, Index i,
                    Ball* out) {
  for (Index j = 0; j < head.k.rows; ++j) {
    if (mask.visible(i, j)) {
      const Ball t = score(layer, head, i, j) + layer.score_bias;
      const Ball small = exp(t.middle > 0.0 ? -t : t);
      const Ball weight = (t.middle > 0.0 ? Ball(1.0) : small) / (Ball(1.0) + small);
      for (Index a = 0; a < head.v.cols; ++a) {
        out[a] += weight * head.v(j, a);
      }
    }
  }
}

/// Σ_j P_ij v_j into out. Rows of P sum to one, so the offset passes as it is.
void softmax_output(const MultiHead& layer, const Mask& mask, const BallFeatures& head, Index i,
                    Ball* out) {
  std::vector<Index> seen;
  std::vector<Ball> weights;
  double largest = -std::numeric_limits<double>::infinity();
  for (Index j = 0; j < head.k.rows; ++j) {
    if (mask.visible(i, j)) {
      seen.push_back(j);
      weights.push_back(score(layer, head, i, j));
      largest = std::fmax(largest, weights.back().middle);
    }
  }
  if (seen.empty()) {
    return;
  }
  Ball total;
  for (Ball& weight : weights) {
    weight = exp(weight - largest);
    total += weight;
  }
  for (std::size_t t = 0; t < seen.size(); ++t) {
    for (Index a = 0; a < head.v.cols; ++a) {
      out[a] += weights[t] * head.v(seen[t], a);
    }
  }
  for (Index a = 0; a < head.v.cols; ++a) {
    out[a] = out[a] / total + head.offset(0, a);
  }
}

}  // namespace

Balls enclosed_attend(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask) {
  const BallTokens tokens(x);
  const Index n = x.rows();
  const Index d_v = layer.value_width();
  Balls outputs(n, layer.heads * d_v);
  for (Index h = 0; h < layer.heads; ++h) {
    BallFeatures head = ball_features(layer, h, tokens);
    if (layer.kind == AttentionKind::cosine) {
      normalise(layer.epsilon, head.q);
      normalise(layer.epsilon, head.k);
      normalise(layer.epsilon, head.v);
    }
    const auto output = layer.kind == AttentionKind::sigmoid ? sigmoid_output : softmax_output;
    parallel_for(n, [&](Index i) { output(layer, mask, head, i, &outputs(i, h * d_v)); });
  }
  Balls y = layer.W_O.size() == 0 ? std::move(outputs) : product(outputs, exactly(layer.W_O));
  for (Index i = 0; i < n && layer.b_O.size() > 0; ++i) {
    for (Index a = 0; a < y.cols; ++a) {
      y(i, a) += layer.b_O(a);
    }
  }
  return y;
}

}  // namespace lipsa
