#include "lipsa/attention/cosine.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

Matrix normalised(double epsilon, Matrix z) {
  RowNormalisation::normalise(epsilon, z);
  return z;
}

TEST_CASE("RowNormalisation: a hand computation", "[attention]") {
  // ‖(1, 2)‖² + 4 = 9, and N' = (9 I − zzᵀ)/27
  Matrix z(2, 2);
  z << 1.0, 2.0, 0.0, 0.0;
  const RowNormalisation rows = RowNormalisation::normalise(4.0, z);
  Matrix unit(2, 2);
  unit << 1.0 / 3.0, 2.0 / 3.0, 0.0, 0.0;
  CHECK((z - unit).norm() <= 1e-16);
  Matrix dz(2, 2);
  dz << 1.0, 0.0, 3.0, -5.0;
  rows.derivative(z, dz);
  Matrix expected(2, 2);
  expected << 8.0 / 27.0, -2.0 / 27.0, 1.5, -2.5;  // I/√ε at zero
  CHECK((dz - expected).norm() <= 1e-15);
}

TEST_CASE("RowNormalisation: derivatives agree with central differences", "[attention]") {
  const auto d = GENERATE(Index{1}, Index{2}, Index{5});
  const auto epsilon = GENERATE(2.0, 0.1, 1e-8);
  CAPTURE(d, epsilon);
  Rng rng(5);
  const Matrix z = normal_matrix(rng, 6, d);
  const Matrix dz = normal_matrix(rng, 6, d);
  const Matrix g = normal_matrix(rng, 6, d);
  const Matrix direction = normal_matrix(rng, 6, d);
  // Along a single feature z/r is a step of width √ε: away from it, all is small and smooth.
  const double h = 1e-5;
  Matrix unit = z;
  const RowNormalisation rows = RowNormalisation::normalise(epsilon, unit);
  Matrix dunit = dz;
  rows.derivative(unit, dunit);
  const Matrix difference =
      (normalised(epsilon, z + h * dz) - normalised(epsilon, z - h * dz)) / (2.0 * h);
  CHECK((dunit - difference).norm() <= 1e-7 * (1.0 + dunit.norm()));

  const auto value = [&](Matrix at) {
    const RowNormalisation moved = RowNormalisation::normalise(epsilon, at);
    Matrix mapped = dz;
    moved.derivative(at, mapped);
    return mapped.cwiseProduct(g).sum();
  };
  Matrix gz = Matrix::Ones(6, d);  // it adds
  rows.second_derivative(unit, dz, g, gz);
  const double slope = (gz - Matrix::Ones(6, d)).cwiseProduct(direction).sum();
  const double expected = (value(z + h * direction) - value(z - h * direction)) / (2.0 * h);
  CHECK(std::abs(slope - expected) <= 1e-6 * (1.0 + std::abs(expected)));
}

TEST_CASE("RowNormalisation: one feature alone keeps its digits, eps/r^3", "[attention]") {
  for (const double z : {0.0, 1e-9, 1.0, 1e9}) {
    Matrix unit = Matrix::Constant(1, 1, z);
    const RowNormalisation rows = RowNormalisation::normalise(1e-6, unit);
    Matrix dz = Matrix::Ones(1, 1);
    rows.derivative(unit, dz);
    CHECK(dz(0, 0) == Approx(1e-6 / std::pow(z * z + 1e-6, 1.5)).epsilon(1e-14));
  }
}

TEST_CASE("RowNormalisation: lengths from 1e-200 to 1e200", "[attention]") {
  for (const double size : {1e-200, 1e-150, 1e150, 1e200}) {
    CAPTURE(size);
    Matrix z = (Matrix(1, 2) << 3.0 * size, 4.0 * size).finished();
    const RowNormalisation rows = RowNormalisation::normalise(1e-300, z);
    const double r = std::hypot(5.0 * size, 1e-150);
    CHECK(z(0, 1) == Approx(4.0 * size / r).epsilon(1e-14));
    CHECK(rows.inverse_length(0) == Approx(1.0 / r).epsilon(1e-14));
    Matrix dz = (Matrix(1, 2) << -4.0, 3.0).finished();  // across z, where N' = I/r
    rows.derivative(z, dz);
    CHECK(dz(0, 1) == Approx(3.0 / r).epsilon(1e-14));
  }
}

}  // namespace
}  // namespace lipsa
