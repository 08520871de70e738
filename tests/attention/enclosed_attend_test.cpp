#include "attention/enclosed_attend.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "random_problems.hpp"

namespace lipsa {
namespace {

using Long = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

/// F(X) from its definition in 64 bits of precision, the scores' largest taken off for exp alone.
Long attend_in_long_double(const MultiHead& layer, const Matrix& x_in, const Mask& mask) {
  const Long x = x_in.cast<long double>();
  const Index n = x.rows();
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  const bool tied = layer.kind == AttentionKind::l2;
  const bool l2 = tied || layer.kind == AttentionKind::l2_untied;
  const long double s = layer.scale > 0.0 ? static_cast<long double>(layer.scale)
                                          : 1.0L / std::sqrt(static_cast<long double>(d));
  const auto with_bias = [](Long rows, const Vector& bias, Index first) {
    if (bias.size() > 0) {
      rows.rowwise() += bias.segment(first, rows.cols()).cast<long double>().transpose();
    }
    return rows;
  };
  const auto normalised = [&](Long rows) {
    for (Index i = 0; i < rows.rows(); ++i) {
      rows.row(i) /= std::sqrt(rows.row(i).squaredNorm() + static_cast<long double>(layer.epsilon));
    }
    return rows;
  };
  Long o = Long::Zero(n, layer.heads * d_v);
  for (Index h = 0; h < layer.heads; ++h) {
    const Long w_q = layer.W_Q.middleCols(h * d, d).cast<long double>();
    const Long w_k = tied ? w_q : Long(layer.W_K.middleCols(h * d, d).cast<long double>());
    Long w_v = layer.W_V.middleCols(h * d_v, d_v).cast<long double>();
    if (tied) {
      w_v = Long(s * (w_q * (w_q.transpose() * w_v)));
    }
    Long q = with_bias(x * w_q, layer.b_Q, h * d);
    Long k = tied ? q : with_bias(x * w_k, layer.b_K, h * d);
    Long v = with_bias(x * w_v, layer.b_V, h * d_v);
    if (layer.kind == AttentionKind::cosine) {
      q = normalised(q);
      k = normalised(k);
      v = normalised(v);
    }
    for (Index i = 0; i < n; ++i) {
      std::vector<Index> seen;
      std::vector<long double> scores;
      for (Index j = 0; j < n; ++j) {
        if (mask.visible(i, j)) {
          seen.push_back(j);
          scores.push_back(s *
                           (l2 ? -(q.row(i) - k.row(j)).squaredNorm() : q.row(i).dot(k.row(j))));
        }
      }
      if (seen.empty()) {
        continue;
      }
      const bool sigmoid = layer.kind == AttentionKind::sigmoid;
      const long double top = *std::max_element(scores.begin(), scores.end());
      long double total = 0.0L;
      for (long double& score : scores) {
        score =
            sigmoid ? 1.0L / (1.0L + std::exp(-score - layer.score_bias)) : std::exp(score - top);
        total += score;
      }
      for (std::size_t t = 0; t < seen.size(); ++t) {
        o.row(i).segment(h * d_v, d_v) += scores[t] / (sigmoid ? 1.0L : total) * v.row(seen[t]);
      }
    }
  }
  const Long y = layer.W_O.size() == 0 ? o : Long(o * layer.W_O.cast<long double>());
  return with_bias(y, layer.b_O, 0);
}

/// How many of the balls miss the entry of y by more than `slack` of its size, which y itself errs.
int missed(const Balls& balls, const Long& y, long double slack) {
  int count = 0;
  for (Index i = 0; i < y.rows(); ++i) {
    for (Index a = 0; a < y.cols(); ++a) {
      const Ball& ball = balls(i, a);
      const long double distance = std::abs(static_cast<long double>(ball.middle) - y(i, a));
      count += distance > ball.radius + slack * (1.0L + std::abs(y(i, a))) ? 1 : 0;
    }
  }
  return count;
}

double largest_radius(const Balls& balls) {
  double radius = 0.0;
  for (const Ball& ball : balls.data) {
    radius = std::fmax(radius, ball.radius);
  }
  return radius;
}

TEST_CASE("enclosed_attend: holds what extended precision gives, of every kind and shape, tightly",
          "[attention]") {
  const auto kind = GENERATE(from_range(test::kinds));
  const auto shape = GENERATE(from_range(test::shapes));
  const auto seed = GENERATE(1U, 2U);
  const bool biases = seed == 1;
  CAPTURE(to_string(kind), shape, seed);
  Rng rng(seed);
  MultiHead layer = test::random_layer(rng, kind, shape, biases);
  if (seed == 2) {
    layer.scale = 0.3;
    layer.W_O.resize(0, 0);
  }
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, shape.n)}) {
    const Balls balls = enclosed_attend(layer, x, mask);
    const Long exact = attend_in_long_double(layer, x, mask);
    REQUIRE(balls.rows == exact.rows());
    REQUIRE(balls.cols == exact.cols());
    CHECK(missed(balls, exact, 1e-17L) == 0);
    CHECK(largest_radius(balls) < 2e-12);  // some hundred operations of 1e-16, on numbers up to ten
    // Seen to fail: an entry off by twice what a ball allows.
    Balls wrong = balls;
    wrong(0, 0).middle += 2.0 * wrong(0, 0).radius + 1e-15;
    CHECK(missed(wrong, exact, 1e-17L) == 1);
  }
}

TEST_CASE("norm_of: a norm from both sides, also of radii far above the middles", "[attention]") {
  const auto p = GENERATE(Norm::one, Norm::two, Norm::inf, Norm::max_token);
  CAPTURE(static_cast<int>(p));
  Balls x(2, 2);
  x(0, 0) = Ball(1e-200, 2.5e-16);
  x(0, 1) = Ball(0.0, 2.5e-16);
  x(1, 0) = Ball(1e-200, 1e-300);
  const Ball small = norm_of(x, p);
  CHECK(small.lower() <= 1e-200);
  const double most = p == Norm::one ? 5e-16 : p == Norm::inf ? 2.5e-16 : 2.5e-16 * std::sqrt(2.0);
  CHECK(small.upper() >= most * (1.0 - 1e-15));
  CHECK(small.upper() <= most * (1.0 + 1e-12));
  CHECK(norm_of(Balls(2, 2), p).upper() <= 1e-300);
  for (const Ball& lost :
       {Ball(NAN, 0.0), Ball(1.0, NAN), Ball(HUGE_VAL, 0.0), Ball(1.0, HUGE_VAL)}) {
    x(1, 1) = lost;
    CHECK(norm_of(x, p).upper() == HUGE_VAL);
  }
}

TEST_CASE("enclosed_attend: a token a thousand times the others, and equal tokens, stay enclosed",
          "[attention]") {
  const auto kind = GENERATE(from_range(test::kinds));
  CAPTURE(to_string(kind));
  Rng rng(3);
  const test::Shape shape{6, 4, 2, 2, 2, 4};
  const MultiHead layer = test::random_layer(rng, kind, shape);
  Matrix x = normal_matrix(rng, shape.n, shape.D);
  x.row(2) *= 1000.0;
  CHECK(missed(enclosed_attend(layer, x, Mask::none()),
               attend_in_long_double(layer, x, Mask::none()), 1e-13L) == 0);
  x.rowwise() = Eigen::RowVectorXd::Constant(4, 12.5);
  CHECK(missed(enclosed_attend(layer, x, Mask::causal()),
               attend_in_long_double(layer, x, Mask::causal()), 1e-15L) == 0);
}

}  // namespace
}  // namespace lipsa
