#include "lipsa/model/dropout.hpp"

#include <catch2/catch.hpp>

#include "lipsa/core/parallel.hpp"
#include "piece_checks.hpp"

namespace lipsa {
namespace {

const Matrix ones = Matrix::Ones(200, 50);

TEST_CASE("DropoutAt: keeps its share, scaled so that the mean stays", "[model]") {
  const auto rate = GENERATE(0.1, 0.5, 0.9);
  CAPTURE(rate);
  const Matrix y = DropoutAt(rate, {.seed = 1}, ones).output();
  const double factor = 1.0 / (1.0 - rate);
  CHECK(((y.array() == 0.0) || (y.array() == factor)).all());
  // of 10⁴ entries: a standard deviation of √(rate/(1 − rate))/100
  CHECK(std::abs(y.mean() - 1.0) <= 5.0 * std::sqrt(rate / (1.0 - rate)) / 100.0);
}

TEST_CASE("DropoutAt: the name of the stream decides, and nothing else", "[model]") {
  const DropoutStream stream{.seed = 1, .step = 2, .site = 3};
  const Matrix y = DropoutAt(0.5, stream, ones).output();
  {
    const ThreadLimit limit(1);
    CHECK(DropoutAt(0.5, stream, ones).output() == y);
  }
  CHECK(DropoutAt(0.5, stream, ones.topRows(7)).output() == y.topRows(7));
  for (const DropoutStream& other : {DropoutStream{.seed = 2, .step = 2, .site = 3},
                                     DropoutStream{.seed = 1, .step = 3, .site = 3},
                                     DropoutStream{.seed = 1, .step = 2, .site = 4}}) {
    const Matrix z = DropoutAt(0.5, other, ones).output();
    // independent halves agree in a half of 10⁴ entries, give or take 50
    CHECK(std::abs(static_cast<double>((z.array() == y.array()).count()) - 5000.0) <= 250.0);
  }
  CHECK(y.row(0) != y.row(1));
}

TEST_CASE("DropoutAt: derivatives are of the drawn entries", "[model]") {
  Rng rng(1);
  const Matrix x = normal_matrix(rng, 6, 4);
  const DropoutAt at(0.3, {.seed = 4}, x);
  CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
  CHECK(at.apply(x) == at.output());
}

TEST_CASE("DropoutAt: a rate of zero drops nothing", "[model]") {
  CHECK(DropoutAt(0.0, {}, ones).output() == ones);
}

TEST_CASE("DropoutAt: what it refuses, by name", "[model]") {
  const auto rate = GENERATE(1.0, -0.1, 2.0);
  CHECK_THROWS_WITH(DropoutAt(rate, {}, ones),
                    Catch::StartsWith("DropoutAt: rate must be in [0, 1), got "));
}

}  // namespace
}  // namespace lipsa
