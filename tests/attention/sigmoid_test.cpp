#include "lipsa/attention/sigmoid.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace lipsa {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST_CASE("sigmoid_weights: closed forms, however large the scores", "[attention]") {
  Matrix p(2, 4);
  p << std::log(3.0), -std::log(3.0), 0.0, 1e4,  //
      -1e4, 1e308, -1e308, -inf;
  Matrix slopes(2, 4);
  sigmoid_weights(0.0, p, slopes);
  Matrix expected(2, 4);
  expected << 0.75, 0.25, 0.5, 1.0,  //
      0.0, 1.0, 0.0, 0.0;
  CHECK((p - expected).cwiseAbs().maxCoeff() <= 1e-15);
  expected << 0.1875, 0.1875, 0.25, 0.0,  //
      0.0, 0.0, 0.0, 0.0;
  CHECK((slopes - expected).cwiseAbs().maxCoeff() <= 1e-15);
  CHECK(p(1, 3) == 0.0);
}

TEST_CASE("sigmoid_weights: both tails keep their digits", "[attention]") {
  // σ(−40) = e^−40 (1 − e^−40 + …), and the slopes at ±40 are that to 17 digits as well.
  const double tail = std::exp(-40.0);
  Matrix p(1, 2);
  p << -42.0, 38.0;
  Matrix slopes(1, 2);
  sigmoid_weights(2.0, p, slopes);
  CHECK(p(0, 0) == Approx(tail).epsilon(1e-15));
  CHECK(slopes(0, 0) == Approx(tail).epsilon(1e-15));
  CHECK(slopes(0, 1) == Approx(tail).epsilon(1e-15));  // P (1 − P) would say 0
}

TEST_CASE("sigmoid_weights: slopes are the derivative, and P (1 - P)", "[attention]") {
  const double h = 1e-6;
  for (const double t : {-20.0, -3.0, -0.1, 0.0, 1e-9, 0.7, 5.0}) {
    Matrix p(1, 3);
    p << t - h, t, t + h;
    Matrix slopes(1, 3);
    sigmoid_weights(-0.5, p, slopes);
    CHECK(slopes(0, 1) == Approx((p(0, 2) - p(0, 0)) / (2.0 * h)).epsilon(1e-8));
    CHECK(slopes(0, 1) == Approx(p(0, 1) * (1.0 - p(0, 1))).epsilon(1e-14));
  }
}

}  // namespace
}  // namespace lipsa
