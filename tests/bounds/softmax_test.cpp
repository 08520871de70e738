#include "lipsa/bounds/softmax.hpp"

#include <Eigen/Eigenvalues>
#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

Matrix derivative(const Vector& p) {
  return Matrix(p.asDiagonal()) - p * p.transpose();
}

/// Of Eigen's symmetric solver on matrices of norm at most ½.
constexpr double eigenvalue_error = 1e-15;

double largest_eigenvalue(const Vector& p) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(derivative(p)).eigenvalues().maxCoeff();
}

Vector weights(std::initializer_list<double> values) {
  return Eigen::Map<const Vector>(values.begin(), static_cast<Index>(values.size()));
}

/// Softmax of normal scores of a random size: from uniform to all but hard.
Vector random_weights(Rng& rng) {
  const Index n = 1 + static_cast<Index>(rng.next() % 9);
  Vector s = std::pow(10.0, rng.uniform(-3.0, 2.0)) * normal_matrix(rng, n, 1);
  if (n > 2 && rng.uniform() < 0.3) {
    s(1) = s(0);
  }
  const Vector e = (s.array() - s.maxCoeff()).exp();
  return e / e.sum();
}

TEST_CASE("softmax: the values at (.5, .3, .2)", "[bounds]") {
  const Vector p = weights({0.5, 0.3, 0.2});
  CHECK(softmax_norm_2(p) == Approx(0.3881024967590665).epsilon(1e-14));
  CHECK(softmax_norm_inf(p) == 0.5);
  CHECK(upper_bound_softmax_norm_2(p, p) == Approx(0.3881024967590665).epsilon(1e-13));
  CHECK(upper_bound_softmax_g1(p, p) == Approx(0.4).epsilon(1e-14));
  CHECK(upper_bound_softmax_norm_inf_1(p, p) == 1.0);
}

TEST_CASE("softmax: (1/2, 1/2) attains 1/2 in every norm, so that 1/4 is no Lipschitz constant",
          "[bounds]") {
  const Vector p = weights({0.5, 0.5});
  CHECK(softmax_norm_2(p) == 0.5);
  CHECK(softmax_norm_inf(p) == 0.5);
  CHECK(upper_bound_softmax_norm_2(p, p) == 0.5);
  CHECK(upper_bound_softmax_g1(p, p) == 0.5);
  CHECK(upper_bound_softmax_trace(p, p) >= 0.5);
  CHECK((derivative(p) * weights({1.0, -1.0})).norm() / weights({1.0, -1.0}).norm() == 0.5);
}

TEST_CASE("softmax: two equal scores among eight far below come within 1e-8 of 1/2", "[bounds]") {
  Vector p = Vector::Constant(10, std::exp(-20.0));
  p(0) = p(1) = 1.0;
  p /= p.sum();
  CHECK(softmax_norm_2(p) == Approx(0.49999999587769).epsilon(0).margin(1e-13));
}

TEST_CASE("softmax: random weights, every bound above the eigenvalue, the exact one by rounding",
          "[bounds]") {
  Rng rng(8);
  for (int trial = 0; trial < 2000; ++trial) {
    const Vector p = random_weights(rng);
    CAPTURE(p.transpose());
    const double norm = largest_eigenvalue(p);
    CHECK(softmax_norm_2(p) == Approx(norm).epsilon(1e-12).margin(1e-15));
    const double exact = upper_bound_softmax_norm_2(p, p);
    CHECK(exact - norm >= -eigenvalue_error);
    CHECK(exact <= (norm > 1e-3 ? norm * (1.0 + 1e-10) : upper_bound_softmax_g1(p, p)));
    for (const double bound : {upper_bound_softmax_g1(p, p), upper_bound_softmax_norm_inf(p, p),
                               upper_bound_softmax_trace(p, p)}) {
      CHECK(bound >= norm - eigenvalue_error);
    }
    CHECK(upper_bound_softmax_norm_inf(p, p) >=
          derivative(p).cwiseAbs().rowwise().sum().maxCoeff() - eigenvalue_error);
  }
}

TEST_CASE("softmax: weights known to an error are covered anywhere within it", "[bounds]") {
  Rng rng(9);
  for (int trial = 0; trial < 500; ++trial) {
    const Vector p = random_weights(rng);
    const double error = std::pow(10.0, rng.uniform(-12.0, -2.0));
    const Vector lower = (p.array() * (1.0 - error)).max(0.0);
    const Vector upper = (p.array() * (1.0 + error)).min(1.0);
    for (int k = 0; k < 5; ++k) {
      Vector q =
          p.array() * (1.0 + 0.3 * error * uniform_matrix(rng, p.size(), 1, -1.0, 1.0).array());
      q /= q.sum();
      const Matrix m = Matrix(q.asDiagonal()) - q * q.transpose();
      const double norm =
          Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(m).eigenvalues().maxCoeff();
      CHECK(upper_bound_softmax_norm_2(lower, upper) >= norm - eigenvalue_error);
    }
  }
}

TEST_CASE("softmax: the norm from inf to 1 is above what any sign vector shows", "[bounds]") {
  Rng rng(10);
  for (int trial = 0; trial < 200; ++trial) {
    const Vector p = random_weights(rng);
    double best = 0.0;
    for (unsigned set = 0; set < (1U << static_cast<unsigned>(p.size())); ++set) {
      Vector s(p.size());
      for (Index i = 0; i < p.size(); ++i) {
        s(i) = (set >> static_cast<unsigned>(i) & 1U) != 0U ? 1.0 : -1.0;
      }
      best = std::max(best, (derivative(p) * s).lpNorm<1>());
    }
    CHECK(upper_bound_softmax_norm_inf_1(p, p) >= best - 1e-15);
    if (p.maxCoeff() >= 0.5) {
      CHECK(upper_bound_softmax_norm_inf_1(p, p) <= best + 1e-14);
    }
  }
}

TEST_CASE("softmax: a row without attention, one entry, and what is no weight", "[bounds]") {
  const Vector none = Vector::Zero(3);
  CHECK(upper_bound_softmax_norm_2(none, none) <= 1e-15);
  CHECK(softmax_norm_2(weights({1.0})) == Approx(0.0).margin(1e-300));
  CHECK(upper_bound_softmax_norm_inf(weights({1.0}), weights({1.0})) <= 1e-15);
  CHECK_THROWS_AS(softmax_norm_2(weights({1.5})), std::invalid_argument);
  CHECK_THROWS_AS(upper_bound_softmax_g1(weights({0.5}), weights({0.4})), std::invalid_argument);
  CHECK_THROWS_AS(upper_bound_softmax_g1(weights({0.5}), weights({0.5, 0.5})),
                  std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
