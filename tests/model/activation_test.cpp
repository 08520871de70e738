#include "lipsa/model/activation.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "piece_checks.hpp"

namespace lipsa {
namespace {

Matrix output_at(Activation activation, double x) {
  return ActivationAt(activation, Matrix::Constant(1, 1, x)).output();
}

double slope_at(Activation activation, double x) {
  return ActivationAt(activation, Matrix::Constant(1, 1, x)).apply(Matrix::Ones(1, 1))(0, 0);
}

TEST_CASE("ActivationAt: every derivative", "[model]") {
  const auto activation = GENERATE(Activation::relu, Activation::gelu);
  const auto rows = GENERATE(Index{1}, Index{37});
  CAPTURE(to_string(activation), rows);
  Rng rng(1);
  const Matrix x = 2.0 * normal_matrix(rng, rows, 5);
  const ActivationAt at(activation, x);
  CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
  CHECK(test::input_derivative_error(
            [&](const Matrix& at_x) { return ActivationAt(activation, at_x); }, x, rng) <=
        test::difference_tolerance);
}

TEST_CASE("ActivationAt: relu by hand", "[model]") {
  CHECK(output_at(Activation::relu, 3.0)(0, 0) == 3.0);
  CHECK(output_at(Activation::relu, -3.0)(0, 0) == 0.0);
  CHECK(slope_at(Activation::relu, 3.0) == 1.0);
  CHECK(slope_at(Activation::relu, 0.0) == 0.0);
  CHECK(slope_at(Activation::relu, -3.0) == 0.0);
}

TEST_CASE("ActivationAt: gelu is x Φ(x), to fifteen digits of the whole", "[model]") {
  // x Φ(x) and Φ(x) + x φ(x) by mpmath with 40 digits; absolute errors count, Φ being 1 + erf
  const auto [x, value, slope] = GENERATE(table<double, double, double>(
      {{0.0, 0.0, 0.5},
       {0.5, 0.34573123063700655182, 0.86749512465616284253},
       {1.0, 0.84134474606854294859, 1.0833154705876862984},
       {-1.0, -0.15865525393145705141, -0.083315470587686298383},
       {-3.0, -0.00404969409489028358, -0.011945647204183927},
       {2.5, 2.4844758366855596621, 1.0376110859081452082},
       {5.0, 4.999998566742140604, 1.0000071469460017923},
       {-9.0, -1.015729565358456583e-18, -9.138937373906639251e-18}}));
  CAPTURE(x);
  CHECK(std::abs(output_at(Activation::gelu, x)(0, 0) - value) <= 5e-16 * (1.0 + std::abs(x)));
  CHECK(std::abs(slope_at(Activation::gelu, x) - slope) <= 5e-16 * (1.0 + std::abs(x)));
}

TEST_CASE("ActivationAt: gelu against erfc everywhere, its tail to twelve digits", "[model]") {
  Matrix x(1, 20003);
  for (Index k = 0; k < x.cols(); ++k) {
    x(0, k) = 0.001 * static_cast<double>(k) - 10.0;
  }
  const ActivationAt at(Activation::gelu, x);
  const Matrix slopes = at.apply(Matrix::Ones(1, x.cols()));
  for (Index k = 0; k < x.cols(); ++k) {
    const double z = x(0, k);
    const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
    const double slope = below + z * std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi);
    const double value_error = std::abs(at.output()(0, k) - z * below);
    if (!(value_error <= 3e-16 * (1.0 + std::abs(z))) ||
        !(value_error <= 1e-12 * std::abs(z * below)) ||
        !(std::abs(slopes(0, k) - slope) <= 1e-15)) {
      CAPTURE(z, value_error, slopes(0, k), slope);
      CHECK(false);
    }
  }
}

TEST_CASE("activation_slope_upper_bound: of gelu reached at the root of two, never passed",
          "[model]") {
  const double bound = activation_slope_upper_bound(Activation::gelu);
  CHECK(bound == Approx(1.1289041451851547863).epsilon(1e-15));
  CHECK(slope_at(Activation::gelu, std::sqrt(2.0)) == Approx(bound).epsilon(1e-15));
  for (int k = -4000; k <= 4000; ++k) {
    CHECK(std::abs(slope_at(Activation::gelu, 0.002 * k)) <= bound);
  }
  CHECK(activation_slope_upper_bound(Activation::relu) == 1.0);
}

TEST_CASE("ActivationAt: huge numbers pass, what is not finite stays so", "[model]") {
  const auto activation = GENERATE(Activation::relu, Activation::gelu);
  CHECK(output_at(activation, 1e200)(0, 0) == 1e200);
  CHECK(output_at(activation, -1e200)(0, 0) == 0.0);
  CHECK(slope_at(activation, 1e200) == 1.0);
  CHECK(slope_at(activation, -1e200) == 0.0);
  CHECK(slope_at(activation, 1.7e308) == 1.0);
  CHECK(slope_at(activation, -1.7e308) == 0.0);
  CHECK(std::isnan(output_at(activation, std::numeric_limits<double>::quiet_NaN())(0, 0)));
  CHECK(!std::isfinite(output_at(activation, std::numeric_limits<double>::infinity())(0, 0)));
}

TEST_CASE("parse_activation: reads what to_string writes", "[model]") {
  CHECK(parse_activation(to_string(Activation::relu)) == Activation::relu);
  CHECK(parse_activation(to_string(Activation::gelu)) == Activation::gelu);
  CHECK_THROWS_WITH(parse_activation("tanh"), "activation must be relu or gelu, got 'tanh'");
}

}  // namespace
}  // namespace lipsa
