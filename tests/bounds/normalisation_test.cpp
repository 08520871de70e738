#include "lipsa/bounds/normalisation.hpp"

#include <Eigen/SVD>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

/// The Jacobian from its closed form, with |γ_a| = γ_max and signs that differ.
Matrix jacobian(const Normalisation& layer, const Vector& x) {
  const Index D = layer.width;
  const bool centred = layer.kind == Normalisation::Kind::layer_norm;
  const Vector y = centred ? Vector(x.array() - x.mean()) : x;
  const double r = std::sqrt(y.squaredNorm() / static_cast<double>(D) + layer.epsilon);
  const Vector unit = y / r;
  Matrix inner = Matrix::Identity(D, D) - unit * unit.transpose() / static_cast<double>(D);
  if (centred) {
    inner.array() -= 1.0 / static_cast<double>(D);
  }
  for (Index a = 0; a < D; a += 2) {
    inner.row(a) *= -1.0;
  }
  return layer.gamma_max / r * inner;
}

Vector apply(const Normalisation& layer, const Vector& x) {
  const bool centred = layer.kind == Normalisation::Kind::layer_norm;
  const Vector y = centred ? Vector(x.array() - x.mean()) : x;
  Vector z = y * (layer.gamma_max /
                  std::sqrt(y.squaredNorm() / static_cast<double>(layer.width) + layer.epsilon));
  for (Index a = 0; a < layer.width; a += 2) {
    z(a) *= -1.0;
  }
  return z;
}

TEST_CASE("normalisation: the closed form is the derivative, and no bound is below it",
          "[bounds]") {
  const auto kind = GENERATE(Normalisation::Kind::layer_norm, Normalisation::Kind::rms_norm);
  const auto seed = GENERATE(range(0U, 60U));
  CAPTURE(seed);
  Rng rng(seed, 17);
  const Normalisation layer{.kind = kind,
                            .width = 1 + static_cast<Index>(rng.next() % 7),
                            .epsilon = std::pow(10.0, rng.uniform(-6.0, 1.0)),
                            .gamma_max = 1.5};
  Vector x = std::pow(10.0, rng.uniform(-4.0, 2.0)) * normal_matrix(rng, layer.width, 1);
  if (seed % 3 == 0) {
    x.tail(layer.width - 1).setZero();
  }
  const Matrix j = jacobian(layer, x);
  const double h =
      1e-5 * std::sqrt(x.squaredNorm() / static_cast<double>(layer.width) + layer.epsilon);
  for (Index a = 0; a < layer.width; ++a) {
    const Vector step = h * Vector::Unit(layer.width, a);
    const Vector difference = (apply(layer, x + step) - apply(layer, x - step)) / (2.0 * h);
    CHECK((difference - j.col(a)).norm() <= 1e-8 * layer.gamma_max / std::sqrt(layer.epsilon));
  }
  const double rounding = 1.0 + 1e-12;
  const double two = Eigen::JacobiSVD<Matrix>(j).singularValues()(0);
  CHECK(two <= normalisation_point_2(layer, x).value() * rounding);
  CHECK(normalisation_point_2(layer, x) <= normalisation_lipschitz(layer, Norm::two));
  CHECK(j.cwiseAbs().rowwise().sum().maxCoeff() <=
        normalisation_lipschitz(layer, Norm::inf).value() * rounding);
  CHECK(j.cwiseAbs().colwise().sum().maxCoeff() <=
        normalisation_lipschitz(layer, Norm::one).value() * rounding);
  CHECK(apply(layer, x).norm() <= normalisation_radius(layer).value() * rounding);
}

TEST_CASE("normalisation: the 2-norm is attained at equal features, or at zero", "[bounds]") {
  const Normalisation layer{.width = 4, .epsilon = 0.25, .gamma_max = 3.0};
  CHECK(normalisation_lipschitz(layer, Norm::two).value() == Approx(6.0).epsilon(1e-14));
  CHECK(normalisation_point_2(layer, Vector::Ones(4)).value() == Approx(6.0).epsilon(1e-14));
  CHECK(Eigen::JacobiSVD<Matrix>(jacobian(layer, Vector::Ones(4))).singularValues()(0) ==
        Approx(6.0).epsilon(1e-14));
}

TEST_CASE("normalisation: one feature leaves nothing of LayerNorm in the infinity norm",
          "[bounds]") {
  CHECK(normalisation_lipschitz({.width = 1}, Norm::inf) == UpRounded(0.0));
}

TEST_CASE("composition: two hundred residual layers of 999 have log10 600", "[bounds]") {
  const std::vector<UpRounded> layers(200, residual_lipschitz(999.0));
  const UpRounded product = composed_lipschitz(layers);
  CHECK(std::isinf(product.value()));
  CHECK(product.log10_value() == Approx(600.0).epsilon(1e-14));
  CHECK(composed_lipschitz({}) == UpRounded(1.0));
}

TEST_CASE("normalisation: refuses what is no layer", "[bounds]") {
  CHECK_THROWS_AS(normalisation_lipschitz({.epsilon = 0.0}, Norm::two), std::invalid_argument);
  CHECK_THROWS_AS(normalisation_lipschitz({.width = 0}, Norm::two), std::invalid_argument);
  CHECK_THROWS_AS(normalisation_radius({.gamma_max = -1.0}), std::invalid_argument);
  CHECK_THROWS_AS(normalisation_point_2({.width = 2}, Vector::Ones(3)), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
