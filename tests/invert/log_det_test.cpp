#include "lipsa/invert/log_det.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/invert/inverse.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::Shape;

const std::vector<Shape> square_shapes{{1, 3, 2, 2, 4, 3}, {2, 1, 1, 1, 1, 1}, {5, 4, 2, 3, 1, 4},
                                       {1, 1, 1, 1, 1, 1}, {3, 6, 3, 2, 2, 6}, {20, 2, 2, 1, 2, 2}};

/// One token, D = 1: F(x) = −x for L2 attention, by the sign of W_O.
MultiHead minus_identity() {
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  layer.W_O = -Matrix::Ones(1, 1);
  return layer;
}

TEST_CASE("log_det: a matrix that overflows has no value", "[invert]") {
  const auto g =
      ResidualAttention::undivided(test::unit_layer(AttentionKind::dot), 1e10, Mask::none());
  const Matrix x = (Matrix(2, 1) << 0.0, 1e150).finished();
  const LogDet found = log_det(g, x);
  CHECK(found.status == LogDetStatus::non_finite);
  CHECK(std::isnan(found.value));
}

TEST_CASE("log_det: LU gives the sum over eigenvalues, of every kind and shape", "[invert]") {
  const auto kind = GENERATE(from_range(test::kinds));
  const auto shape = GENERATE(from_range(square_shapes));
  const auto gain = GENERATE(0.3, -4.0);
  CAPTURE(to_string(kind), shape, gain);
  Rng rng(1);
  const MultiHead layer = test::random_layer(rng, kind, shape);
  const auto g = ResidualAttention::undivided(layer, gain, Mask::causal());
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  const LogDet found = log_det(g, x);
  Eigen::MatrixXd a = gain * Jacobian(layer, x, Mask::causal()).dense();
  a += Eigen::MatrixXd::Identity(a.rows(), a.cols());
  double expected = 0.0;
  const Eigen::VectorXcd eigenvalues = Eigen::EigenSolver<Eigen::MatrixXd>(a, false).eigenvalues();
  for (Index k = 0; k < eigenvalues.size(); ++k) {
    expected += std::log(std::abs(eigenvalues(k)));
  }
  CHECK(found.method == LogDetMethod::lu);
  CHECK(found.status == LogDetStatus::converged);
  CHECK(found.value == Approx(expected).epsilon(1e-9).margin(1e-9));
  CHECK(found.sign == (a.determinant() > 0.0 ? 1 : -1));
  CHECK(found.standard_error == 0.0);
  CHECK(found.truncation_bound == 0.0);
}

TEST_CASE("log_det: signs, singular matrices and maps without a branch", "[invert]") {
  const Matrix x = Matrix::Ones(1, 1);
  const auto of = [&](double gain) {
    return log_det(ResidualAttention::undivided(minus_identity(), gain), x);
  };
  CHECK(of(3.0).value == Approx(std::log(2.0)));
  CHECK(of(3.0).sign == -1);
  CHECK(of(1.0).value == -INFINITY);
  CHECK(of(1.0).sign == 0);
  CHECK(of(1.0).status == LogDetStatus::singular);
  CHECK(of(0.0).value == 0.0);
  CHECK(of(0.0).sign == 1);
}

TEST_CASE("log_det: the series misses a known logarithm by its truncation bound and little less",
          "[invert]") {
  const auto terms = GENERATE(1, 2, 5);
  const double c = 0.125;
  CAPTURE(terms);
  // g(x) = (1 − c) x: tr(A^k) is one number, which every probe gives exactly.
  const auto g = ResidualAttention::contractive(minus_identity(), 1, {.factor = c});
  const LogDet found =
      log_det(g, Matrix::Ones(1, 1), {.method = LogDetMethod::series, .terms = terms});
  const double error = std::abs(found.value - std::log1p(-c));
  CHECK(found.method == LogDetMethod::series);
  CHECK(found.terms == terms);
  CHECK(found.products == 64 * terms);
  CHECK(found.standard_error == Approx(0.0).margin(1e-16));
  CHECK(error <= found.truncation_bound + 1e-16);
  CHECK(error > 0.9 * found.truncation_bound);  // a bound a tenth smaller would be seen to fail
  CHECK(found.status == (terms == 5 && found.truncation_bound <= 1e-6 ? LogDetStatus::converged
                                                                      : LogDetStatus::truncated));
}

TEST_CASE("log_det: the series agrees with LU within five standard errors", "[invert]") {
  const auto shape = GENERATE(from_range(square_shapes));
  const auto seed = GENERATE(1U, 2U);
  const auto contractive = GENERATE(true, false);
  CAPTURE(shape, seed, contractive);
  Rng rng(seed);
  const MultiHead layer =
      test::random_layer(rng, contractive ? AttentionKind::l2 : AttentionKind::dot, shape);
  const auto g = contractive ? ResidualAttention::contractive(layer, shape.n, {.divisor = "sharp"})
                             : ResidualAttention::undivided(layer, 0.1);
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  const LogDet exact = log_det(g, x, {.method = LogDetMethod::lu});
  const LogDet found = log_det(g, x, {.method = LogDetMethod::series, .seed = seed});
  CAPTURE(exact.value, found.value, found.standard_error, found.terms);
  CHECK(found.status == LogDetStatus::converged);
  CHECK(found.truncation_bound <= 1e-6);
  CHECK(std::abs(found.value - exact.value) <=
        5.0 * found.standard_error + found.truncation_bound + 1e-12);
  CHECK(exact.sign == 1);
}

TEST_CASE("log_det: the standard error falls with the root of the probes", "[invert]") {
  Rng rng(3);
  const Shape shape{6, 4, 2, 2, 2, 4};
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, shape);
  const auto g = ResidualAttention::contractive(layer, shape.n, {.divisor = "sharp"});
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  const auto at = [&](Index probes) {
    return log_det(g, x, {.method = LogDetMethod::series, .probes = probes});
  };
  const double ratio = at(64).standard_error / at(4096).standard_error;
  CHECK(ratio > 6.0);  // 8, the spread of 64 samples known to a tenth
  CHECK(ratio < 10.5);
}

TEST_CASE("log_det: that of the inverse, by differences and LU, is minus that of the map",
          "[invert]") {
  Rng rng(4);
  const Shape shape{4, 3, 1, 2, 3, 3};
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, shape);
  const auto g =
      ResidualAttention::contractive(layer, shape.n, {.factor = 0.9, .divisor = "sharp"});
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  const Matrix y = g.forward(x);
  const double h = 1e-4;  // error h² times third derivatives of order 1, and 1e-15/h
  Eigen::MatrixXd j(x.size(), x.size());
  for (Index c = 0; c < x.size(); ++c) {
    Matrix above = y;
    Matrix below = y;
    above.data()[c] += h;
    below.data()[c] -= h;
    const Matrix difference = invert(g, above).x - invert(g, below).x;
    j.col(c) = test::vec(difference) / (2.0 * h);
  }
  const double inverse = std::log(std::abs(Eigen::PartialPivLU<Eigen::MatrixXd>(j).determinant()));
  const LogDet forward = log_det(g, x);
  CHECK(std::abs(forward.value) > 1e-3);
  CHECK(inverse == Approx(-forward.value).margin(1e-6));
  CHECK(inverse == Approx(-log_det(g, invert(g, y).x).value).margin(1e-6));
}

TEST_CASE("log_det: the series of a map that is not contractive has no value", "[invert]") {
  Rng rng(5);
  const Shape shape{5, 4, 2, 2, 2, 4};
  const auto g =
      ResidualAttention::undivided(test::random_layer(rng, AttentionKind::dot, shape), 50.0);
  const LogDet found = log_det(g, normal_matrix(rng, 5, 4), {.method = LogDetMethod::series});
  CHECK(found.status == LogDetStatus::not_contractive);
  CHECK(std::isnan(found.value));
  CHECK(found.sign == 0);
}

TEST_CASE("log_det: the dense limit decides, seeds and threads do as they should", "[invert]") {
  Rng rng(6);
  const Shape shape{6, 4, 2, 2, 2, 4};
  const auto g = ResidualAttention::contractive(test::random_layer(rng, AttentionKind::l2, shape),
                                                shape.n, {.divisor = "sharp"});
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  CHECK(log_det(g, x, {.dense_limit = 24}).method == LogDetMethod::lu);
  CHECK(log_det(g, x, {.dense_limit = 23}).method == LogDetMethod::series);
  const auto series = [&](std::uint64_t seed, Index threads) {
    const ThreadLimit limit(threads);
    return log_det(g, x, {.method = LogDetMethod::series, .seed = seed}).value;
  };
  CHECK(series(1, 1) == series(1, 2));
  CHECK(series(1, 1) != series(2, 1));
  for (const LogDetOptions& options :
       {LogDetOptions{.dense_limit = -1}, LogDetOptions{.probes = 1}, LogDetOptions{.terms = -1},
        LogDetOptions{.truncation = 0.0}, LogDetOptions{.most_terms = 0}}) {
    CHECK_THROWS_AS(log_det(g, x, options), std::invalid_argument);
  }
  CHECK_THROWS_AS(log_det(g, x.topRows(5)), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
