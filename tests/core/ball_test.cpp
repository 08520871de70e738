#include "core/ball.hpp"

#include <catch2/catch.hpp>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

using Wide = __float128;

Ball random_ball(Rng& rng) {
  const double middle = std::ldexp(rng.uniform(-1.0, 1.0), static_cast<int>(rng.uniform(-30, 30)));
  return {middle, rng.uniform() < 0.3 ? 0.0 : std::abs(middle) * std::ldexp(rng.uniform(), -40)};
}

/// A point of the ball: an end, or one between.
Wide point_of(const Ball& b, Rng& rng) {
  const double where =
      rng.uniform() < 0.5 ? (rng.uniform() < 0.5 ? -1.0 : 1.0) : rng.uniform(-1, 1);
  return static_cast<Wide>(b.middle) + static_cast<Wide>(where) * static_cast<Wide>(b.radius);
}

bool contains(const Ball& b, Wide x) {
  const Wide distance = x - static_cast<Wide>(b.middle);
  return (distance < 0 ? -distance : distance) <= static_cast<Wide>(b.radius);
}

TEST_CASE("Ball: results hold every result of the operands, in quadruple precision", "[core]") {
  Rng rng(31);
  int too_small = 0;  // a radius without the rounding term must be caught
  for (int trial = 0; trial < 100000; ++trial) {
    const Ball a = random_ball(rng);
    const Ball b = random_ball(rng);
    const Wide x = point_of(a, rng);
    const Wide y = point_of(b, rng);
    REQUIRE(contains(a + b, x + y));
    REQUIRE(contains(a - b, x - y));
    REQUIRE(contains(a * b, x * y));
    REQUIRE(contains(a / b, x / y));
    Ball careless = a * b;
    careless.radius = std::abs(a.middle) * b.radius + std::abs(b.middle) * a.radius;
    too_small += contains(careless, x * y) ? 0 : 1;
  }
  CHECK(too_small > 1000);
}

TEST_CASE("Ball: sqrt holds the roots of its ends, in quadruple precision", "[core]") {
  Rng rng(33);
  int too_small = 0;  // a radius without the rounding term must be caught
  int loose = 0;
  for (int trial = 0; trial < 100000; ++trial) {
    Ball a = abs(random_ball(rng));
    if (trial % 4 == 0) {  // wide ones too
      a.radius = a.middle * rng.uniform();
    } else if (trial % 4 == 1) {
      a.middle = std::ldexp(a.middle, -1000);
      a.radius = std::ldexp(a.radius, -1000);
    }
    const Wide x = point_of(a, rng);
    const Ball root = sqrt(a);
    if (!(x > 0) || std::isinf(root.radius)) {
      continue;
    }
    // y holds √x when (y.middle − y.radius)² ≤ x ≤ (y.middle + y.radius)²
    const auto holds = [&](Wide radius) {
      const Wide low = static_cast<Wide>(root.middle) - radius;
      const Wide high = static_cast<Wide>(root.middle) + radius;
      return (low <= 0 || low * low <= x) && x <= high * high;
    };
    REQUIRE(holds(static_cast<Wide>(root.radius)));
    too_small += holds(static_cast<Wide>(root.radius - Ball::u * root.middle)) ? 0 : 1;
    loose += holds(static_cast<Wide>(0.4 * root.radius)) ? 0 : 1;
  }
  CHECK(too_small > 1000);
  CHECK(loose > 1000);
  CHECK(sqrt(Ball(4.0)).middle == 2.0);
  CHECK(sqrt(Ball(4.0)).radius <= 4.0 * Ball::u);
  CHECK(std::isinf(sqrt(Ball(0.0)).radius));
  CHECK(std::isinf(sqrt(Ball(1.0, 1.5)).radius));
  CHECK(std::isinf(sqrt(Ball(-1.0)).radius));
}

TEST_CASE("Ball: exp holds the exponentials of its ends", "[core]") {
  Rng rng(32);
  for (int trial = 0; trial < 10000; ++trial) {
    const Ball a{rng.uniform(-700.0, 5.0),
                 std::ldexp(rng.uniform(), static_cast<int>(rng.uniform(-60, 2)))};
    const Ball e = exp(a);
    for (const long double side : {-1.0L, 0.0L, 1.0L}) {
      const long double end = a.middle + side * static_cast<long double>(a.radius);
      const long double exact = std::exp(end);  // 11 more bits than double
      REQUIRE(static_cast<double>(std::abs(exact - static_cast<long double>(e.middle))) <=
              e.radius * (1.0 + 1e-9));
    }
  }
}

TEST_CASE("Ball: exp stays an enclosure where its middle underflows", "[core]") {
  for (const double middle : {-705.0, -744.8, -760.0, -1e4}) {
    for (const double radius : {0.0, 1.0, 60.0, 100.0}) {
      const Ball e = exp(Ball(middle, radius));
      CHECK(e.middle + e.radius >= std::exp(middle + radius));
      CHECK(e.middle - e.radius <= std::exp(middle - radius));
    }
  }
}

TEST_CASE("Ball: nothing is known after dividing by a ball with zero in it", "[core]") {
  CHECK(std::isinf((Ball(1.0) / Ball(1.0, 2.0)).radius));
  CHECK((Ball(1.0) / Ball(0.0)).magnitude_lower() == 0.0);
}

}  // namespace
}  // namespace lipsa
