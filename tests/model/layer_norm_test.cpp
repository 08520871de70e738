#include "lipsa/model/layer_norm.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "dense_norms.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "piece_checks.hpp"
#include "random_pieces.hpp"

namespace lipsa {
namespace {

using Kind = LayerNorm::Kind;

TEST_CASE("LayerNormAt: every derivative", "[model]") {
  const auto kind = GENERATE(Kind::layer_norm, Kind::rms_norm);
  const auto [rows, D] = GENERATE(table<Index, Index>({{1, 1}, {1, 6}, {40, 2}, {7, 90}}));
  const auto plain = GENERATE(false, true);
  CAPTURE(kind == Kind::rms_norm, rows, D, plain);
  Rng rng(1);
  LayerNorm norm = test::random_norm(rng, D, kind);
  if (plain) {
    norm.gamma.resize(0);
    norm.beta.resize(0);
  }
  const Matrix x = normal_matrix(rng, rows, D);
  const LayerNormAt at(norm, x);
  CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
  CHECK(test::input_derivative_error([&](const Matrix& at_x) { return LayerNormAt(norm, at_x); }, x,
                                     rng) <= test::difference_tolerance);
  CHECK(test::backward_error(
            norm, [&](const LayerNorm& l) { return LayerNormAt(l, x); }, rng) <=
        test::difference_tolerance);
}

TEST_CASE("LayerNormAt: mean, variance and the matrix of the formula", "[model]") {
  Rng rng(2);
  const Index D = 5;
  const LayerNorm norm = test::random_norm(rng, D, Kind::layer_norm);
  const Matrix x = 3.0 * normal_matrix(rng, 1, D).array() + 7.0;
  const LayerNormAt at(norm, x);
  const double mean = x.mean();
  const double variance = (x.array() - mean).square().mean();
  const double r = std::sqrt(variance + norm.epsilon);
  const Vector unit = (x.array() - mean).matrix().transpose() / r;
  const Vector y = norm.gamma.cwiseProduct(unit) + norm.beta;
  CHECK((at.output().transpose() - y).norm() <= 1e-14 * y.norm());
  const Matrix j =
      norm.gamma.asDiagonal() *
      (Matrix::Identity(D, D) - Matrix::Constant(D, D, 1.0 / 5.0) - unit * unit.transpose() / 5.0) /
      r;
  const Vector v = normal_matrix(rng, D, 1);
  CHECK((at.apply(v.transpose()).transpose() - j * v).norm() <= 1e-14 * v.norm());
  CHECK(spectral_norm(JacobianOperator(at)).value == Approx(test::dense_norm(j)).epsilon(1e-12));
}

TEST_CASE("LayerNormAt: a gradient that is wrong in one array is seen", "[model]") {
  Rng rng(3);
  const LayerNorm norm = test::random_norm(rng, 4, Kind::layer_norm);
  const Matrix x = normal_matrix(rng, 5, 4);
  const Matrix u = normal_matrix(rng, 5, 4);
  const auto make = [&](const LayerNorm& l) { return LayerNormAt(l, x); };
  LayerNorm gradient = zeros_like(norm);
  make(norm).backward(u, gradient);
  for (Parameter& array : parameters(gradient)) {
    array.values(2) += 1e-6;
    CHECK(test::parameter_gradient_error(norm, make, u, gradient, rng) >
          test::difference_tolerance);
    array.values(2) -= 1e-6;
  }
}

TEST_CASE("LayerNormAt: constant rows, huge rows, rows that are not finite", "[model]") {
  const auto kind = GENERATE(Kind::layer_norm, Kind::rms_norm);
  LayerNorm norm{.kind = kind, .epsilon = 0.25};
  const LayerNormAt zero(norm, Matrix::Zero(1, 4));
  CHECK(zero.output().isZero(0.0));
  const Matrix v = (Matrix(1, 4) << 1.0, -1.0, 2.0, -2.0).finished();
  CHECK(zero.apply(v) == 2.0 * v);  // 1/√ε
  if (kind == Kind::layer_norm) {
    for (const Index D : {1, 3, 4, 7, 12, 100}) {
      for (const double level : {0.1, 7e12, 1e14, 1e300}) {
        CHECK(LayerNormAt(norm, Matrix::Constant(1, D, level)).output().isZero(0.0));
      }
    }
  }
  const double huge = GENERATE(1e10, 1e160, 1e300);
  const Matrix x = huge * v;
  CHECK((LayerNormAt(norm, x).output() - v / std::sqrt(2.5)).norm() <= 1e-14);
  CHECK(LayerNormAt(norm, x).apply(v).allFinite());
  Matrix bad = v.replicate(2, 1);
  bad(0, 1) =
      GENERATE(std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN());
  const LayerNormAt at(norm, bad);
  CHECK(!at.output().row(0).allFinite());
  CHECK(at.output().row(1).allFinite());
}

TEST_CASE("LayerNormAt: a common offset that rounds nothing away changes nothing", "[model]") {
  Rng rng(4);
  const auto D = GENERATE(Index{3}, Index{7}, Index{12});
  Matrix x = normal_matrix(rng, 4, D);
  x = (x * 1024.0).array().round();  // whole numbers, and so with the offset
  const Matrix expected = LayerNormAt({}, x).output();
  const Matrix moved = LayerNormAt({}, Matrix(x.array() + 0x1p50)).output();
  CHECK((moved - expected).cwiseAbs().maxCoeff() <= 1e-14);
}

TEST_CASE("LayerNormAt: what it refuses, by name", "[model]") {
  LayerNorm norm{.gamma = Vector::Ones(3)};
  CHECK_THROWS_WITH(LayerNormAt(norm, Matrix::Ones(2, 4)),
                    "LayerNormAt: gamma must be empty or of length 4, got 3");
  norm = {.beta = Vector::Ones(3)};
  CHECK_THROWS_WITH(LayerNormAt(norm, Matrix::Ones(2, 4)),
                    "LayerNormAt: beta must be empty or of length 4, got 3");
  norm = {.epsilon = 0.0};
  CHECK_THROWS_WITH(LayerNormAt(norm, Matrix::Ones(2, 4)),
                    "LayerNormAt: epsilon must be positive, got 0");
  CHECK_THROWS_WITH(LayerNormAt({}, Matrix(2, 0)),
                    "LayerNormAt: x must have at least one column, got 0");
}

}  // namespace
}  // namespace lipsa
