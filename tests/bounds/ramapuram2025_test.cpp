#include "lipsa/bounds/ramapuram2025.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "dense_norms.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::measurement_error;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// σ(t) and σ'(t), to a few units of 64 bits.
long double sigmoid(long double t) {
  return t < 0.0L ? std::exp(t) / (1.0L + std::exp(t)) : 1.0L / (1.0L + std::exp(-t));
}
long double slope(long double t) {
  const long double e = std::exp(-std::abs(t));
  return e / ((1.0L + e) * (1.0L + e));
}

TEST_CASE("ramapuram2025_sigmoid: by hand", "[bounds]") {
  CHECK(ramapuram2025_sigmoid(3.0, 2.0, 0.5, 0.25, 8.0, 4).value() == 2.0 * (2.0 + 12.0));
  CHECK(ramapuram2025_sigmoid(3.0, 2.0, 0.5, 0.0, 8.0, 4).value() == 4.0);
}

TEST_CASE("upper_bound_sigmoid, its slope: never below the truth, and near it", "[bounds]") {
  Rng rng(13);
  for (int trial = 0; trial < 20000; ++trial) {
    const double bias = rng.uniform() < 0.1 ? 0.0 : rng.uniform(-1.0, 1.0) * 60.0;
    const double reach = rng.uniform() < 0.3 ? 0.0 : std::pow(10.0, rng.uniform(-6.0, 2.0));
    CAPTURE(bias, reach);
    const long double wide_bias = bias;
    const long double top = wide_bias + static_cast<long double>(reach);
    const long double least = std::max(0.0L, std::abs(wide_bias) - static_cast<long double>(reach));
    // 64 bits hold all 53 of the truth.
    CHECK(upper_bound_sigmoid(bias, reach) >= sigmoid(top) * (1.0L - 0x1p-60L));
    CHECK(upper_bound_sigmoid_slope(bias, reach) >= slope(least) * (1.0L - 0x1p-60L));
    CHECK(upper_bound_sigmoid(bias, reach) <= sigmoid(top) * (1.0L + 1e-13L));
    CHECK(upper_bound_sigmoid_slope(bias, reach) <= slope(least) * (1.0L + 1e-13L));
    CHECK(upper_bound_sigmoid(bias, reach) <= 1.0);
    CHECK(upper_bound_sigmoid_slope(bias, reach) <= 0.25);
  }
}

TEST_CASE("upper_bound_sigmoid, its slope: at zero, and monotone in reach and bias", "[bounds]") {
  CHECK(upper_bound_sigmoid(0.0, 0.0) >= 0.5);
  CHECK(upper_bound_sigmoid(0.0, 0.0) <= 0.5 + 1e-15);
  CHECK(upper_bound_sigmoid_slope(0.0, 0.0) == 0.25);
  CHECK(upper_bound_sigmoid_slope(3.0, 3.0) == 0.25);
  CHECK(upper_bound_sigmoid_slope(-3.0, 4.0) == 0.25);
  for (double t = -40.0; t < 36.0; t += 0.25) {
    CAPTURE(t);
    CHECK(upper_bound_sigmoid(t, 0.0) < upper_bound_sigmoid(t + 0.25, 0.0) * (1.0 + 1e-15));
    CHECK(upper_bound_sigmoid(t, 1.0) <= upper_bound_sigmoid(t, 1.25));
    CHECK(upper_bound_sigmoid(t, 0.5) == Approx(upper_bound_sigmoid(t + 0.5, 0.0)).epsilon(1e-14));
    CHECK(upper_bound_sigmoid_slope(t, 1.0) <= upper_bound_sigmoid_slope(t, 1.25));
    CHECK(upper_bound_sigmoid_slope(t, 0.5) == upper_bound_sigmoid_slope(-t, 0.5));
    if (t >= 0.0) {
      CHECK(upper_bound_sigmoid_slope(t + 0.25, 0.0) < upper_bound_sigmoid_slope(t, 0.0));
    }
  }
}

TEST_CASE("upper_bound_sigmoid, its slope: far in the tails", "[bounds]") {
  const double tail = std::exp(-700.0);  // where an exponential near underflow is doubled
  for (const double bound :
       {upper_bound_sigmoid(-700.0, 0.0), upper_bound_sigmoid_slope(700.0, 0.0),
        upper_bound_sigmoid_slope(-700.0, 0.0)}) {
    CHECK(bound >= tail);
    CHECK(bound <= 2.01 * tail);
  }
  for (const double t : {750.0, 1e6, 1e300}) {  // below the least double, and yet not zero
    CAPTURE(t);
    CHECK(upper_bound_sigmoid(-t, 0.0) > 0.0);
    CHECK(upper_bound_sigmoid(-t, 0.0) < 1e-300);
    CHECK(upper_bound_sigmoid_slope(t, 0.0) > 0.0);
    CHECK(upper_bound_sigmoid_slope(t, 0.0) < 1e-300);
    CHECK(upper_bound_sigmoid(t, 0.0) == 1.0);
    CHECK(upper_bound_sigmoid(-t, 2.0 * t) == 1.0);
    CHECK(upper_bound_sigmoid_slope(-t, 2.0 * t) == 0.25);
  }
  CHECK(upper_bound_sigmoid(40.0, 0.0) == 1.0);
  CHECK(upper_bound_sigmoid(-5.0, infinity) == 1.0);
  CHECK(upper_bound_sigmoid_slope(-5.0, infinity) == 0.25);
}

TEST_CASE("upper_bound_sigmoid, its slope: refuse what is no interval", "[bounds]") {
  CHECK_THROWS_WITH(upper_bound_sigmoid(infinity, 1.0),
                    "upper_bound_sigmoid: bias must be finite and reach not negative, got inf and "
                    "1");
  CHECK_THROWS_AS(upper_bound_sigmoid(0.0, -1.0), std::invalid_argument);
  CHECK_THROWS_AS(upper_bound_sigmoid_slope(0.0, std::nan("")), std::invalid_argument);
}

TEST_CASE("ramapuram2025: the entries by hand", "[bounds]") {
  // a = s · 2 · 3 = 1.5, |W_V W_O| = 35, tokens (1, 0) and (0, 2): longest 2, squares 5.
  MultiHead layer{.kind = AttentionKind::sigmoid,
                  .W_Q = 2.0 * Matrix::Identity(2, 2),
                  .W_K = 3.0 * Matrix::Identity(2, 2),
                  .W_V = 5.0 * Matrix::Identity(2, 2),
                  .W_O = 7.0 * Matrix::Identity(2, 2),
                  .scale = 0.25,
                  .score_bias = -7.0};
  const Matrix x{{1.0, 0.0}, {0.0, 2.0}};
  const Mask open = Mask::none();
  const auto entry = [&](const char* name, const Matrix* tokens) {
    return find_entry(name).evaluate(
        {.layer = layer, .mask = open, .tokens = 2, .radius = 2.0, .x = tokens});
  };
  const double top = static_cast<double>(sigmoid(-1.0L));  // −7 + 1.5 · 4
  const double steep = static_cast<double>(slope(1.0L));
  CHECK(entry("ramapuram2025_ball", nullptr).value ==
        Approx(35.0 * (2.0 * top + 2.0 * steep * 1.5 * 8.0)).epsilon(1e-12));
  CHECK(entry("ramapuram2025_point", &x).value ==
        Approx(35.0 * (2.0 * top + 2.0 * steep * 1.5 * 5.0)).epsilon(1e-12));
  CHECK(entry("ramapuram2025_point", nullptr).reason == "it needs tokens X");
}

TEST_CASE("ramapuram2025: attained without scores by equal weights of one half", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::sigmoid);
  layer.W_Q.setZero();
  const Mask open = Mask::none();
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 6, .radius = 1.0};
  const double norm = test::dense_norm(Jacobian(layer, Matrix::Ones(6, 1)).dense());
  CHECK(norm == Approx(3.0).epsilon(1e-14));
  const double bound = find_entry("ramapuram2025_ball").evaluate(setting).value;
  CHECK(bound >= 3.0);
  CHECK(bound <= 3.0 * (1.0 + 1e-12));
}

TEST_CASE("ramapuram2025: above the norm of J of sigmoid attention for every shape and mask",
          "[bounds]") {
  const auto shape = GENERATE(from_range(test::shapes));
  const auto seed = GENERATE(range(1U, 9U));
  CAPTURE(shape, seed);
  Rng rng(seed, 10);
  MultiHead layer = test::random_layer(rng, AttentionKind::sigmoid, shape, false);
  layer.score_bias = rng.uniform(-4.0, 1.0);
  const double radius = std::pow(10.0, rng.uniform(-1.0, 0.7));
  Matrix x = test::sphere_tokens(rng, shape.n, shape.D, radius);
  if (seed % 4 == 0) {
    x = x.row(0).replicate(shape.n, 1).eval();
  }
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, shape.n)}) {
    CAPTURE(to_string(mask.kind()), radius);
    const double norm = test::dense_norm(Jacobian(layer, x, mask).dense());
    const BoundSetting setting{
        .layer = layer, .mask = mask, .tokens = shape.n, .radius = radius * (1.0 + 1e-15), .x = &x};
    for (const char* name : {"ramapuram2025_ball", "ramapuram2025_point"}) {
      CAPTURE(name);
      const Bound bound = find_entry(name).evaluate(setting);
      CHECK(bound.holds);
      CHECK(norm <= bound.value * (1.0 + measurement_error));
    }
  }
}

TEST_CASE("ramapuram2025: refuses biases of queries, keys and values", "[bounds]") {
  const Mask open = Mask::none();
  const Matrix x = Matrix::Ones(2, 1);
  MultiHead layer = test::unit_layer(AttentionKind::sigmoid);
  const auto bias = GENERATE(as<Vector MultiHead::*>{}, &MultiHead::b_Q, &MultiHead::b_K,
                             &MultiHead::b_V, &MultiHead::b_O);
  layer.*bias = Vector::Ones(1);
  for (const char* name : {"ramapuram2025_ball", "ramapuram2025_point"}) {
    CAPTURE(name);
    const Bound bound = find_entry(name).evaluate(
        {.layer = layer, .mask = open, .tokens = 2, .radius = 1.0, .x = &x});
    CHECK(bound.holds == (bias == &MultiHead::b_O));  // that one shifts
    if (!bound.holds) {
      CHECK(std::isnan(bound.value));
      CHECK(bound.reason == "it speaks of layers without biases of q, k and v");
    }
  }
  layer.*bias = Vector::Zero(1);
  CHECK(find_entry("ramapuram2025_ball")
            .evaluate({.layer = layer, .mask = open, .tokens = 2, .radius = 1.0})
            .holds);
}

}  // namespace
}  // namespace lipsa
