#include "lipsa/model/cross_entropy.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "lipsa/core/parallel.hpp"
#include "lipsa/core/rng.hpp"
#include "piece_checks.hpp"

namespace lipsa {
namespace {

TEST_CASE("cross_entropy: uniform logits cost log V, a sure answer nothing", "[model]") {
  const auto V = GENERATE(Index{1}, Index{2}, Index{65});
  const CrossEntropy uniform =
      cross_entropy(Matrix::Constant(3, V, 7.0), std::vector<Index>{0, 0, 0});
  CHECK(uniform.nats == Approx(std::log(static_cast<double>(V))).margin(1e-15));
  CHECK(uniform.counted == 3);
  Matrix sure = Matrix::Zero(1, 2);
  sure(0, 1) = 1000.0;
  CHECK(cross_entropy(sure, std::vector<Index>{1}).nats == 0.0);
  CHECK(cross_entropy(sure, std::vector<Index>{0}).nats == 1000.0);
}

TEST_CASE("cross_entropy: its gradient, with rows that do not count", "[model]") {
  Rng rng(1);
  const Matrix logits = 3.0 * normal_matrix(rng, 5, 7);
  const std::vector<Index> targets{3, -1, 0, 6, -1};
  const CrossEntropy loss = cross_entropy(logits, targets);
  CHECK(loss.counted == 3);
  const Matrix v = normal_matrix(rng, 5, 7);
  const Matrix slope = test::central_difference([&](double t) -> Matrix {
    return Matrix::Constant(1, 1, cross_entropy(logits + t * v, targets).nats);
  });
  const double found = loss.gradient.cwiseProduct(v).sum();
  CHECK(std::abs(found - slope(0, 0)) <= test::difference_tolerance * (1.0 + loss.nats));
  CHECK(loss.gradient.row(1).isZero(0.0));
  CHECK(loss.gradient.row(4).isZero(0.0));
  CHECK(loss.gradient.rowwise().sum().cwiseAbs().maxCoeff() <= 1e-16);

  Matrix others = logits;
  others.row(1).setConstant(std::numeric_limits<double>::quiet_NaN());
  CHECK(cross_entropy(others, targets).nats == loss.nats);
}

TEST_CASE("cross_entropy: the same bits whatever the number of threads", "[model]") {
  Rng rng(2);
  const Matrix logits = normal_matrix(rng, 1000, 9);
  const std::vector<Index> targets(1000, 4);
  const CrossEntropy many = cross_entropy(logits, targets);
  const ThreadLimit limit(1);
  const CrossEntropy one = cross_entropy(logits, targets);
  CHECK(one.nats == many.nats);
  CHECK(one.gradient == many.gradient);
}

TEST_CASE("cross_entropy: a logit that is not finite shows", "[model]") {
  const double infinity = std::numeric_limits<double>::infinity();
  Matrix logits = Matrix::Zero(2, 3);
  for (const double bad : {infinity, std::numeric_limits<double>::quiet_NaN()}) {
    logits(1, 2) = bad;
    CHECK(std::isnan(cross_entropy(logits, std::vector<Index>{0, 0}).nats));
  }
  logits(1, 2) = -infinity;
  CHECK(cross_entropy(logits, std::vector<Index>{0, 2}).nats == infinity);
}

TEST_CASE("cross_entropy: what it refuses, by name", "[model]") {
  const Matrix logits = Matrix::Zero(2, 3);
  CHECK_THROWS_WITH(cross_entropy(logits, std::vector<Index>{0}),
                    "cross_entropy: targets must be 2 as the rows of logits, got 1");
  CHECK_THROWS_WITH(cross_entropy(logits, std::vector<Index>{0, 3}),
                    "cross_entropy: targets must be -1 or in [0, 3), got 3 at 1");
  CHECK_THROWS_WITH(cross_entropy(logits, std::vector<Index>{-1, -1}),
                    "cross_entropy: targets must have a row that counts, got 2 of -1");
}

}  // namespace
}  // namespace lipsa
