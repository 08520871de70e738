#include "lipsa/bounds/up_rounded.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double u = 0x1p-53;

TEST_CASE("UpRounded: exact results stay exact", "[bounds]") {
  CHECK((UpRounded(3.0) * 3.0).value() == 9.0);
  CHECK((UpRounded(0.75) + 0x1p-40).value() == 0.75 + 0x1p-40);
  CHECK(sqrt(UpRounded(2.25)).value() == 1.5);
  CHECK(sqrt(UpRounded(0x1p-1001) * 2.0).value() == 0x1p-500);
  CHECK(UpRounded(1.0).log10_value() == 0.0);
  for (const double x : {0.0, 4.9e-324, 3e-310, 1e-300, 1.0, 1.7e308, infinity}) {
    CHECK(UpRounded(x).value() == x);
  }
}

TEST_CASE("UpRounded: results are at or above the exact one, and below the next double",
          "[bounds]") {
  Rng rng(1);
  for (int draw = 0; draw < 10000; ++draw) {
    const double x = std::ldexp(rng.uniform(), static_cast<int>(rng.uniform(-40.0, 40.0)));
    const double y = std::ldexp(rng.uniform(), static_cast<int>(rng.uniform(-40.0, 40.0)));
    CAPTURE(x, y);
    // 64 bits hold neither product nor sum of all 53-bit numbers: their own error is 2^-64.
    const long double product = static_cast<long double>(x) * y;
    const long double product_error = std::fma(static_cast<long double>(x), y, -product);
    const double up = (UpRounded(x) * y).value();
    CHECK((up - product) >= product_error);
    CHECK(std::nextafter(up, 0.0) - product < product_error);
    const double sum = (UpRounded(x) + y).value();
    CHECK(sum >= static_cast<long double>(x) + y);
    CHECK(sum <= (static_cast<long double>(x) + y) * (1.0L + 2.1L * u));
    const double root = sqrt(UpRounded(x)).value();
    const double below = std::nextafter(root, 0.0);
    CHECK(std::fma(root, root, -x) >= 0.0);
    CHECK(std::fma(below, below, -x) < 0.0);
  }
}

TEST_CASE("UpRounded: rounds up where rounding to nearest goes down", "[bounds]") {
  CHECK((UpRounded(1.0) + 1e-300).value() == 1.0 + 2.0 * u);
  CHECK((UpRounded(1.0 + 2.0 * u) * (1.0 + 2.0 * u)).value() > 1.0 + 4.0 * u);
  CHECK(sqrt(UpRounded(2.0)).value() * sqrt(UpRounded(2.0)).value() > 2.0);
  CHECK((UpRounded(3e-320) * 0.3).value() >= 9e-321);
  CHECK((UpRounded(1e-200) * 1e-200).value() == std::numeric_limits<double>::denorm_min());
}

TEST_CASE("UpRounded: two hundred constants of a thousand have log10 600", "[bounds]") {
  UpRounded product = 1.0;
  for (int layer = 0; layer < 200; ++layer) {
    product *= 1e3;
  }
  CHECK(product.value() == infinity);
  CHECK(product.log10_value() >= 600.0);
  CHECK(product.log10_value() <= 600.0 * (1.0 + 1e-14));
  UpRounded small = 1.0;
  for (int layer = 0; layer < 200; ++layer) {
    small *= 1e-3;
  }
  CHECK(small.value() == std::numeric_limits<double>::denorm_min());
  CHECK(small.log10_value() >= -600.0);
  CHECK(small.log10_value() <= -600.0 * (1.0 - 1e-14));
  CHECK((product * small).value() == Approx(1.0).epsilon(1e-12));
  CHECK((product * small).value() >= 1.0);
}

TEST_CASE("exp of UpRounded: at or above e^x, by few units more than x has turns", "[bounds]") {
  CHECK(exp(UpRounded(0.0)).value() >= 1.0);
  CHECK(exp(UpRounded(0.0)).value() <= 1.0 + 10.0 * u);
  Rng rng(2);
  for (int draw = 0; draw < 20000; ++draw) {
    const double x = draw % 3 == 0   ? std::ldexp(rng.uniform(), -60 * (draw % 2))
                     : draw % 3 == 1 ? rng.uniform(0.0, 700.0)
                                     : std::log(2.0) * std::floor(rng.uniform(0.0, 1000.0));
    CAPTURE(x);
    // 64 bits: their own error is far below that of 53.
    const long double truth = std::exp(static_cast<long double>(x));
    const double up = exp(UpRounded(x)).value();
    CHECK(up >= truth * (1.0L - 0x1p-62L));
    // Eight units u of std::exp, as trusted and as it may err, and those that x ln 2 turns cost.
    CHECK(up <= truth * (1.0L + (20.0L + 5.0L * static_cast<long double>(x)) * u));
  }
}

TEST_CASE("exp of UpRounded: beyond double it keeps its logarithm", "[bounds]") {
  const double x = GENERATE(710.0, 1e5, 1e9, 1e15);
  CAPTURE(x);
  const long double log10_truth = static_cast<long double>(x) / std::log(10.0L);
  CHECK(exp(UpRounded(x)).value() == infinity);
  CHECK(exp(UpRounded(x)).log10_value() >= log10_truth);
  CHECK(exp(UpRounded(x)).log10_value() <= log10_truth * (1.0L + 1e-14L));
  CHECK(exp(UpRounded(x)) < exp(UpRounded(x) + x * 1e-12));
  CHECK(exp(UpRounded(1e5)).log10_value() == Approx(43429.448190325).epsilon(1e-13));
  CHECK(exp(UpRounded(1e300)) == UpRounded(infinity));
  CHECK(exp(UpRounded(infinity)) == UpRounded(infinity));
}

TEST_CASE("UpRounded: zero, infinity and what is beyond 64 bits of exponent", "[bounds]") {
  CHECK(UpRounded().log10_value() == -infinity);
  CHECK((UpRounded() * infinity).value() == 0.0);
  CHECK((UpRounded(infinity) + 1.0).value() == infinity);
  CHECK(UpRounded(infinity).log10_value() == infinity);
  CHECK(sqrt(UpRounded()).value() == 0.0);
  UpRounded large = 2.0;
  UpRounded small = 0.5;
  for (int square = 0; square < 70; ++square) {
    large *= large;
    small *= small;
  }
  CHECK(large == UpRounded(infinity));
  CHECK(small > UpRounded(0.0));
  CHECK(UpRounded(2.0) < UpRounded(3.0));
  CHECK(UpRounded(3.0) < UpRounded(4.0));
  CHECK(UpRounded(0.0) < UpRounded(4.9e-324));
  CHECK(UpRounded(1.7e308) < UpRounded(infinity));
}

TEST_CASE("UpRounded: refuses what is no magnitude", "[bounds]") {
  CHECK_THROWS_WITH(UpRounded(-1.0), "UpRounded: value must not be negative or NaN, got -1");
  CHECK_THROWS_AS(UpRounded(std::nan("")), std::invalid_argument);
}

TEST_CASE("UpRounded: an infinite operand stays infinite whatever it is multiplied by",
          "[bounds]") {
  const UpRounded infinite = std::numeric_limits<double>::infinity();
  CHECK(infinite * 0x1p-1000 == infinite);
  CHECK((exp(UpRounded(1e300)) * 1e-60).log10_value() == std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace lipsa
