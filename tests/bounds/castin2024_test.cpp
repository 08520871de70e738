#include "lipsa/bounds/castin2024.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <tuple>

#include "dense_norms.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/bounds/dot_ball.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::dense_norm;
using test::measurement_error;

/// One head with the scores x_iᵀ A x_j and the values X.
MultiHead head_of(const Matrix& a) {
  return {.W_Q = a,
          .W_K = Matrix::Identity(a.cols(), a.cols()),
          .W_V = Matrix::Identity(a.cols(), a.cols()),
          .scale = 1.0};
}

/// The first token −R e_2, the others R e_2.
Matrix one_against_others(Index n, double R) {
  Matrix x = Matrix::Zero(n, 2);
  x.col(1).setConstant(R);
  x(0, 1) = -R;
  return x;
}

TEST_CASE("castin2024: the adversarial tokens of A = diag(2, -1), R = 1.5", "[bounds]") {
  const auto row = GENERATE(table<Index, double, double>({{2, 1.1736182497, 23.5106},
                                                          {5, 2.3418481444, 35.9270},
                                                          {10, 3.9783985098, 50.2071},
                                                          {50, 12.0355811069, 111.1789},
                                                          {100, 16.1590197578, 157.0374}}));
  const Index n = std::get<0>(row);
  CAPTURE(n);
  const MultiHead layer = head_of(Matrix{{2.0, 0.0}, {0.0, -1.0}});
  const Mask open = Mask::none();
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = n, .radius = 1.5};
  const double norm = dense_norm(Jacobian(layer, one_against_others(n, 1.5)).dense());
  CHECK(norm == Approx(std::get<1>(row)).epsilon(0).margin(6e-11));
  const double castin = castin2024_ball(2.0, 1.0, 1.5, n).value();
  CHECK(castin == Approx(std::get<2>(row)).epsilon(0).margin(6e-5));
  CHECK(find_entry("castin2024_ball").evaluate(setting).value == Approx(castin).epsilon(1e-12));
  const UpRounded columns = dot_column_sum(1.5, 3.0, static_cast<double>(n), 1.0);
  const double ours = dot_ball_2(2.0, 3.0, 1.5, columns).value();
  CHECK(find_entry("dot_ball_2_sum").evaluate(setting).value == Approx(ours).epsilon(1e-12));
  CHECK(norm < ours);
  CHECK(ours < castin);
  CHECK(castin < 3.47 * ours);  // 2 sqrt(3) at most
}

TEST_CASE("castin2024_ball, castin2024_mean_field, castin2024_code: by hand", "[bounds]") {
  // a R² = 4: 3 (16 · 13 + 3) = 633.
  CHECK(castin2024_ball(1.0, 2.0, 2.0, 3).value() == Approx(2.0 * std::sqrt(633.0)).epsilon(1e-14));
  CHECK(castin2024_ball(1.0, 2.0, 2.0, 3).value() >= 2.0 * std::sqrt(633.0) * (1.0 - 1e-16));
  CHECK(castin2024_ball(0.0, 1.0, 9.0, 3).value() == Approx(3.0).epsilon(1e-15));
  CHECK(castin2024_mean_field(0.25, 5.0, 2.0).value() ==
        Approx(5.0 * 4.0 * std::exp(2.0)).epsilon(1e-14));
  CHECK(castin2024_mean_field(0.0, 5.0, 2.0).value() == Approx(5.0).epsilon(1e-14));
  CHECK(castin2024_mean_field(1.0, 1.0, 100.0).log10_value() ==
        Approx(2e4 / std::log(10.0) + std::log10(30001.0)).epsilon(1e-13));
  // r g = 6: 36 · 4 + 3 = 147.
  CHECK(castin2024_code(2.0, 2.0, 3.0, 3).value() == Approx(2.0 * std::sqrt(147.0)).epsilon(1e-14));
}

TEST_CASE("castin2024: never below the norm of J for every shape, mask and radius", "[bounds]") {
  const auto shape = GENERATE(from_range(test::shapes));
  const auto seed = GENERATE(range(1U, 5U));
  CAPTURE(shape, seed);
  Rng rng(seed, 6);
  const MultiHead layer = test::random_layer(rng, AttentionKind::dot, shape, false);
  const double radius = std::pow(10.0, rng.uniform(-1.0, 1.0));
  const Matrix x = test::sphere_tokens(rng, shape.n, shape.D, radius);
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, shape.n)}) {
    CAPTURE(to_string(mask.kind()), radius);
    const double norm = dense_norm(Jacobian(layer, x, mask).dense());
    const BoundSetting setting{
        .layer = layer, .mask = mask, .tokens = shape.n, .radius = radius * (1.0 + 1e-15)};
    CHECK(norm <= find_entry("castin2024_ball").evaluate(setting).value);
    const Bound mean_field = find_entry("castin2024_mean_field").evaluate(setting);
    CHECK(mean_field.holds == (mask.kind() == Mask::Kind::none));
    if (mean_field.holds) {
      CHECK(norm <= mean_field.value * (1.0 + measurement_error));
    }
  }
}

TEST_CASE("castin2024_mean_field: attained without scores, by equal shares", "[bounds]") {
  const MultiHead layer = head_of(Matrix::Zero(2, 2));
  const Mask open = Mask::none();
  const double norm = dense_norm(Jacobian(layer, Matrix::Identity(2, 2)).dense());
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 2, .radius = 1.0};
  const double bound = find_entry("castin2024_mean_field").evaluate(setting).value;
  CHECK(norm == Approx(1.0).epsilon(1e-14));
  CHECK(bound >= 1.0);
  CHECK(bound == Approx(1.0).epsilon(1e-12));
}

TEST_CASE("castin2024_mean_field: a causal mask without scores violates it", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  layer.W_Q.setZero();
  const Mask causal = Mask::causal();
  const BoundSetting setting{.layer = layer, .mask = causal, .tokens = 2, .radius = 3.0};
  const double norm = dense_norm(Jacobian(layer, Matrix{{1.0}, {-2.0}}, causal).dense());
  CHECK(norm == Approx(1.14412).epsilon(0).margin(6e-6));
  const Bound claim = find_entry("castin2024_mean_field_causal").evaluate(setting);
  CHECK(claim.refuted);
  CHECK_FALSE(claim.holds);
  CHECK(claim.value == Approx(1.0).epsilon(1e-12));
  CHECK(norm > claim.value);
  const Bound refusal = find_entry("castin2024_mean_field").evaluate(setting);
  CHECK_FALSE(refusal.holds);
  CHECK(refusal.reason == "it speaks of attention without masks");
}

TEST_CASE("castin2024_code: violated where queries vanish and keys are large", "[bounds]") {
  const double t = GENERATE(3.0, 10.0, 1e6);
  CAPTURE(t);
  // A = t e_2 e_1ᵀ and tokens ±e_1: Aᵀ x_i = 0, attention is uniform, C_i Aᵀ = t e_1 e_2ᵀ.
  const MultiHead layer{.W_Q = Matrix{{0.0}, {1.0}},
                        .W_K = Matrix{{t}, {0.0}},
                        .W_V = Matrix::Identity(2, 2),
                        .scale = 1.0};
  const Matrix x{{1.0, 0.0}, {-1.0, 0.0}};
  const Mask open = Mask::none();
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 2, .radius = 1.0, .x = &x};
  const double norm = dense_norm(Jacobian(layer, x).dense());
  CHECK(norm >= t * (1.0 - measurement_error));
  const Bound claim = find_entry("castin2024_code").evaluate(setting);
  CHECK(claim.refuted);
  CHECK_FALSE(claim.holds);
  CHECK(claim.value == Approx(std::sqrt(2.0)).epsilon(1e-8));
  CHECK(norm > claim.value);
  CHECK(norm <= find_entry("castin2024_ball").evaluate(setting).value);
}

TEST_CASE("castin2024: biases of the queries are refused", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  layer.b_Q = Vector::Ones(1);
  const Matrix x{{1.0}, {-1.0}};
  const Mask causal = Mask::causal();
  const Mask open = Mask::none();
  for (const char* name : {"castin2024_ball", "castin2024_mean_field",
                           "castin2024_mean_field_causal", "castin2024_code"}) {
    for (const Mask& mask : {open, causal}) {
      CAPTURE(name);
      const Bound bound = find_entry(name).evaluate(
          {.layer = layer, .mask = mask, .tokens = 2, .radius = 1.0, .x = &x});
      CHECK_FALSE(bound.holds);
      CHECK(std::isnan(bound.value));
      CHECK(bound.reason == "it speaks of scores without biases, b_Q is not 0");
    }
  }
}

TEST_CASE("castin2024_lower_bound: the values of the tables, below |J| at the extremal tokens",
          "[bounds]") {
  const auto [n, bound, norm] =
      GENERATE(table<Index, double, double>({{2, 0.9890130574, 1.1736182497},
                                             {5, 1.9149091247, 2.3418481444},
                                             {10, 2.7273199128, 3.9783985098},
                                             {50, 4.5326781902, 12.0355811069},
                                             {100, 4.7385077825, 16.1590197578}}));
  CAPTURE(n);
  const double lower = castin2024_lower_bound(2.0, -1.0, 1.5, n);
  CHECK(lower == Approx(bound).epsilon(0).margin(6e-11));
  CHECK(lower <= norm);
  CHECK_THROWS_AS(castin2024_lower_bound(-1.0, 1.0, 1.0, 3), std::invalid_argument);
  CHECK_THROWS_AS(castin2024_lower_bound(1.0, -1.0, -1.0, 3), std::invalid_argument);
  CHECK_THROWS_AS(castin2024_lower_bound(1.0, -1.0, 1.0, 1), std::invalid_argument);
}

TEST_CASE("castin2024: the other family of extremal tokens", "[bounds]") {
  const auto [n, norm] = GENERATE(table<Index, double>({{2, 1.5373425824},
                                                        {5, 2.0319330179},
                                                        {10, 2.0263414809},
                                                        {50, 1.3629120909},
                                                        {100, 1.1846481252}}));
  CAPTURE(n);
  const MultiHead layer = head_of(Matrix{{2.0, 0.0}, {0.0, -0.1}});
  Matrix x = Matrix::Zero(n, 2);
  x.col(0).setConstant(0.75);
  x(0, 0) = 1.5;
  const double measured = dense_norm(Jacobian(layer, x).dense());
  CHECK(measured == Approx(norm).epsilon(0).margin(6e-11));
  CHECK(castin2024_lower_bound(2.0, -0.1, 1.5, n) <= measured);
}

}  // namespace
}  // namespace lipsa
