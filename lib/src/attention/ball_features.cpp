#include "attention/ball_features.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "lipsa/core/parallel.hpp"

namespace lipsa {
namespace {

Balls transposed(const Balls& a) {
  Balls t(a.cols, a.rows);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.cols; ++j) {
      t(j, i) = a(i, j);
    }
  }
  return t;
}

/// Bounds of |x|_p, p = 1, 2 or inf, from both sides, scaled by a power of two so that squares
/// neither overflow nor vanish.
Ball vector_norm(std::span<const Ball> x, Norm p) {
  double largest = 0.0;
  for (const Ball& entry : x) {
    const double reach = std::abs(entry.middle) + entry.radius;
    if (!std::isfinite(reach)) {
      return {0.0, std::numeric_limits<double>::infinity()};
    }
    largest = std::max(largest, reach);
  }
  if (largest == 0.0) {
    return {0.0, 0.0};
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

}  // namespace

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

Ball ball_scale(const MultiHead& layer) {
  const double s = layer.score_scale();
  return layer.scale > 0.0 ? Ball(s) : Ball(s, 4.0 * Ball::u * s);
}

BallTokens::BallTokens(const ConstMatrixRef& tokens)
    : x(exactly(tokens)),
      mean(exactly(Matrix(tokens.colwise().mean()))),
      centred(tokens.rows(), tokens.cols()) {
  for (Index i = 0; i < x.rows; ++i) {
    for (Index a = 0; a < x.cols; ++a) {
      centred(i, a) = x(i, a) - mean(0, a);
    }
  }
}

BallFeatures ball_features(const MultiHead& layer, Index head, const BallTokens& tokens) {
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  const bool tied = layer.kind == AttentionKind::l2;
  Balls w_q = exactly(layer.W_Q.middleCols(head * d, d));
  Balls w_k = tied ? w_q : exactly(layer.W_K.middleCols(head * d, d));
  Balls w_v = exactly(layer.W_V.middleCols(head * d_v, d_v));
  if (tied) {
    w_v = product(w_q, product(transposed(w_q), w_v));
    for (Ball& entry : w_v.data) {
      entry = ball_scale(layer) * entry;
    }
  }
  const auto add = [&](Balls& rows, const Vector& bias) {
    for (Index i = 0; i < rows.rows && bias.size() > 0; ++i) {
      for (Index a = 0; a < rows.cols; ++a) {
        rows(i, a) += bias(head * rows.cols + a);
      }
    }
  };
  const bool whole = layer.kind == AttentionKind::cosine || layer.kind == AttentionKind::sigmoid;
  const bool whole_keys = whole || layer.kind == AttentionKind::l2_untied;
  Balls q = product(tied ? tokens.centred : tokens.x, w_q);
  Balls k = product(whole_keys ? tokens.x : tokens.centred, w_k);
  Balls v = product(whole ? tokens.x : tokens.centred, w_v);
  Balls offset(1, d_v);
  if (!tied) {
    add(q, layer.b_Q);
  }
  if (whole_keys) {
    add(k, layer.b_K);
  }
  if (whole) {
    add(v, layer.b_V);
  } else {
    offset = product(tokens.mean, w_v);
    add(offset, layer.b_V);
  }
  return {std::move(q),   std::move(k),   std::move(v),     std::move(w_q),
          std::move(w_k), std::move(w_v), std::move(offset)};
}

}  // namespace lipsa
