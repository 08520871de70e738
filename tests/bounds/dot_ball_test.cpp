#include "lipsa/bounds/dot_ball.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "dense_norms.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/castin2024.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::dense_norm;
using test::measurement_error;

/// 1 + 1/2 + … + 1/n.
double harmonic(Index n) {
  long double sum = 0.0L;
  for (Index i = n; i >= 1; --i) {
    sum += 1.0L / static_cast<long double>(i);
  }
  return static_cast<double>(sum);
}

double value(const char* name, const BoundSetting& setting) {
  const Bound bound = find_entry(name).evaluate(setting);
  CAPTURE(name, bound.reason);
  CHECK(bound.holds);
  return bound.value;
}

/// D = 1, scores b x_j from the bias alone, values X.
MultiHead biased_layer(double b) {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  layer.W_Q.setZero();
  layer.b_Q = Vector::Constant(1, b);
  return layer;
}

TEST_CASE("dot_ball: by hand", "[bounds]") {
  // R g = 3, a R² = 5.
  CHECK(dot_ball_2(1.25, 1.5, 2.0, 10.0).value() == 10.0 + 5.0);
  CHECK(dot_ball_triangle_2(1.25, 1.5, 2.0, 16.0, 7.0).value() == 7.0 + 12.0 + 5.0);
  CHECK(dot_ball_max_token(1.25, 2.0, 2.0).value() == Approx(std::sqrt(17.0) + 5.0).epsilon(1e-15));
  CHECK(dot_column_sum(0.5, 3.0, 100.0, 0.0) == UpRounded(100.0));
  CHECK(dot_column_sum(0.5, 3.0, 100.0, 1.0).value() == Approx(std::exp(3.0)).epsilon(1e-14));
  CHECK(dot_column_sum(0.5, 3.0, 100.0, 2.0).value() == Approx(2.0 * std::exp(3.0)).epsilon(1e-14));
  CHECK(dot_column_sum(0.5, 3.0, 20.0, 1.0) == UpRounded(20.0));
  CHECK(dot_column_sum(1e200, 1e200, 20.0, 1.0) == UpRounded(20.0));
}

TEST_CASE("dot_ball_2: never above castin2024_ball, nor above the triangle inequality's form",
          "[bounds]") {
  Rng rng(8);
  double most = 0.0;
  for (int trial = 0; trial < 20000; ++trial) {
    const double a = std::pow(10.0, rng.uniform(-6.0, 6.0));
    const double radius = std::pow(10.0, rng.uniform(-3.0, 3.0));
    const Index n = 1 + static_cast<Index>(std::pow(10.0, rng.uniform(0.0, 9.0)));
    CAPTURE(a, radius, n);
    const UpRounded gradient = UpRounded(a) * radius;
    const UpRounded columns = dot_column_sum(radius, gradient, static_cast<double>(n), 1.0);
    const double ours = dot_ball_2(a, gradient, radius, columns).value();
    CHECK(ours <= castin2024_ball(a, 1.0, radius, n).value());
    CHECK(ours <= dot_ball_triangle_2(a, gradient, radius, columns, sqrt(columns)).value() *
                      (1.0 + 4e-16));  // two roundings
    const double whole = dot_ball_2(a, gradient, radius, static_cast<double>(n)).value();
    CHECK(whole <= castin2024_ball(a, 1.0, radius, n).value());
    most = std::max(most, castin2024_ball(a, 1.0, radius, n).value() / whole);
  }
  CHECK(most <= 2.0 * std::sqrt(3.0));
  CHECK(most > 3.4);
}

TEST_CASE("dot_column_sum: above the column sums of P for tokens on the sphere", "[bounds]") {
  double closest = 0.0;
  for (const auto& shape : test::shapes) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Rng rng(seed, 7);
      test::Shape one = shape;
      one.H = 1;
      const MultiHead layer = test::random_layer(rng, AttentionKind::dot, one, seed % 2 == 0);
      const double radius = std::pow(10.0, rng.uniform(-2.0, 0.5));
      const Matrix x = test::sphere_tokens(rng, one.n, one.D, radius);
      const double s = layer.score_scale();
      double g = s * dense_norm(layer.W_Q * layer.W_K.transpose()) * radius;
      if (layer.b_Q.size() > 0) {
        g += s * (layer.W_K * layer.b_Q).norm();
      }
      for (const bool causal : {false, true}) {
        CAPTURE(one, seed, causal);
        const Jacobian jacobian(layer, x, causal ? Mask::causal() : Mask::none());
        const double sum = jacobian.attention_weights(0).colwise().sum().maxCoeff();
        const double bound =
            dot_column_sum(radius, g, static_cast<double>(one.n), causal ? harmonic(one.n) : 1.0)
                .value();
        CHECK(sum <= bound * (1.0 + measurement_error));
        closest = std::max(closest, one.n > 1 ? sum / bound : 0.0);
      }
    }
  }
  CHECK(closest > 0.9);
}

TEST_CASE("dot_column_sum: nearly attained by one token that all prefer", "[bounds]") {
  // Scores ±ln 2/2, the first token preferred by e^(2 R g) = 2 over the 9999 others.
  const Index n = 10000;
  Matrix x = Matrix::Constant(n, 1, -1.0);
  x(0, 0) = 1.0;
  const MultiHead layer = biased_layer(0.5 * std::log(2.0));
  const Jacobian jacobian(layer, x.topRows(n), Mask::none(), {.first = 0, .count = 1});
  // Without scores of their own all rows are equal.
  const double sum = static_cast<double>(n) * jacobian.attention_weights(0)(0, 0);
  const double bound =
      dot_column_sum(1.0, 0.5 * std::log(2.0), static_cast<double>(n), 1.0).value();
  CHECK(bound == Approx(2.0).epsilon(1e-14));
  CHECK(sum <= bound);
  CHECK(sum >= 0.999 * bound);
}

TEST_CASE("dot_ball_2_sum: without scores a causal mask leaves the harmonic number", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  layer.W_Q.setZero();
  const Mask causal = Mask::causal();
  const Index n = GENERATE(1, 2, 10, 1000, 3000000);
  CAPTURE(n);
  const BoundSetting setting{.layer = layer, .mask = causal, .tokens = n, .radius = 1.0};
  const double two = value("dot_ball_2_sum", setting);
  const double triangle = value("dot_ball_triangle_2", setting);
  CHECK(two >= std::sqrt(harmonic(n)));
  CHECK(two <= std::sqrt(harmonic(n)) * (n > 1000000 ? 1.02 : 1.0 + 1e-12));
  CHECK(triangle == Approx(std::min(two, 2.0)).epsilon(1e-12));  // Hardy
  if (n <= 1000) {
    const Jacobian jacobian(layer, Matrix::Zero(n, 1), causal);
    CHECK(jacobian.attention_weights(0).col(0).sum() == Approx(harmonic(n)).epsilon(1e-12));
    CHECK(dense_norm(jacobian.attention_weights(0)) <= triangle);
  }
}

TEST_CASE("dot_ball_2_sum: biases count, without them it would be violated", "[bounds]") {
  // x = (R, −R), p = σ(2 R b): row (p + p(1−p) 2 R b, …) twice. Without the bias g = a R = 0.
  const double b = 1.0;
  const double radius = 0.77;
  const MultiHead layer = biased_layer(b);
  const Matrix x{{radius}, {-radius}};
  const Mask open = Mask::none();
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 2, .radius = radius};
  const double norm = dense_norm(Jacobian(layer, x).dense());
  const double without = dot_ball_2(0.0, 0.0, radius, 2.0).value();
  CHECK(without == Approx(std::sqrt(2.0)).epsilon(1e-14));
  CHECK(norm > 1.04 * without);
  CHECK(norm <= dot_ball_2(0.0, b, radius, 2.0).value());
  CHECK(value("dot_ball_2_sum", setting) ==
        Approx(std::sqrt(2.0 * (1.0 + radius * radius))).epsilon(1e-12));
  // The same in the max-token norm, which is that of a row of absolute values here.
  const double row = Jacobian(layer, x).norm_inf().value;
  CHECK(row > 1.04 * dot_ball_max_token(0.0, 0.0, radius).value());
  CHECK(row <= value("dot_ball_max_token_sum", setting));
}

TEST_CASE("dot_ball_max_token: attained by one token without scores", "[bounds]") {
  Rng rng(3);
  MultiHead layer = test::random_layer(rng, AttentionKind::dot, {1, 3, 1, 2, 4, 3}, false);
  layer.W_Q.setZero();
  const Mask open = Mask::none();
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 1, .radius = 2.0};
  const double norm = dense_norm(Jacobian(layer, Matrix::Ones(1, 3)).dense());
  CHECK(norm == Approx(dense_norm(layer.W_V * layer.W_O)).epsilon(1e-13));
  for (const char* name : {"dot_ball_max_token_sum", "dot_ball_2_sum"}) {
    CAPTURE(name);
    CHECK(value(name, setting) >= norm * (1.0 - 1e-15));
    CHECK(value(name, setting) <= norm * (1.0 + 1e-11));
  }
}

TEST_CASE("dot_ball_max_token: nearly attained by two clusters of equal weight", "[bounds]") {
  // D = 1, A = 1, x_1 = R, and about e^(2 R²) others at −R for each at R: half the weight each,
  // and row 1 of J sums to 2 R² in absolute value.
  const double radius = std::sqrt(3.0);
  const Index n = 404;  // 1 + e^6
  Matrix x = Matrix::Constant(n, 1, -radius);
  x(0, 0) = radius;
  const Jacobian jacobian(test::unit_layer(AttentionKind::dot), x, Mask::none(),
                          {.first = 0, .count = 1});
  const double norm = jacobian.norm_inf().value;
  const double bound = dot_ball_max_token(1.0, radius, radius).value();
  CHECK(bound == Approx(std::sqrt(10.0) + 3.0).epsilon(1e-14));
  CHECK(norm <= bound);
  CHECK(norm >= 0.97 * bound);
}

TEST_CASE("dot_ball: the entries are above the norms of J for every shape, mask and bias",
          "[bounds]") {
  const auto shape = GENERATE(from_range(test::shapes));
  const auto seed = GENERATE(range(1U, 7U));
  CAPTURE(shape, seed);
  Rng rng(seed, 8);
  MultiHead layer = test::random_layer(rng, AttentionKind::dot, shape, seed % 2 == 0);
  if (seed % 3 == 0) {
    layer.W_O.resize(0, 0);
    layer.b_O.resize(0);
  }
  const double radius = std::pow(10.0, rng.uniform(-1.0, 1.0));
  const Matrix x = test::sphere_tokens(rng, shape.n, shape.D, radius);
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, shape.n)}) {
    CAPTURE(to_string(mask.kind()), radius);
    const Jacobian jacobian(layer, x, mask);
    const Matrix j = jacobian.dense();
    const BoundSetting setting{
        .layer = layer, .mask = mask, .tokens = shape.n, .radius = radius * (1.0 + 1e-15), .x = &x};
    const auto above = [&](const char* name, double norm) {
      CAPTURE(name);
      CHECK(norm <= value(name, setting) * (1.0 + measurement_error));
    };
    for (const char* name :
         {"dot_ball_2_sum", "dot_ball_2_concat", "dot_ball_triangle_2", "dot_point_2"}) {
      above(name, dense_norm(j));
    }
    for (const char* name : {"dot_ball_max_token_sum", "dot_ball_max_token_concat"}) {
      above(name, test::dense_max_token(j, layer.output_width(), shape.D));
    }
    above("dot_ball_inf", jacobian.norm_inf().value);
    above("dot_ball_1", jacobian.norm_1().value);
  }
}

TEST_CASE("dot_ball: needs a radius, and outlives the range of double", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  const Mask open = Mask::none();
  const Bound none = find_entry("dot_ball_2_sum").evaluate({layer, open, 2});
  CHECK_FALSE(none.holds);
  CHECK(none.reason == "it needs a finite radius");
  layer.W_Q(0, 0) = layer.W_K(0, 0) = 1e150;
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 4, .radius = 1e50};
  const Bound huge = find_entry("dot_ball_2_sum").evaluate(setting);
  CHECK(huge.value == std::numeric_limits<double>::infinity());
  CHECK(huge.log10_value == Approx(400.0 + std::log10(3.0)).epsilon(1e-12));  // (√4 + 1) a R²
}

}  // namespace
}  // namespace lipsa
