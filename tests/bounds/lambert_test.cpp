#include "lipsa/bounds/lambert.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace lipsa {
namespace {

TEST_CASE("phi_inverse: W((n-1)/e) of the tables", "[bounds]") {
  CHECK(phi_inverse(0.0) == 0.0);
  CHECK(phi_inverse(1.0) == Approx(0.27846454276107).epsilon(1e-13));
  CHECK(phi_inverse(9.0) == Approx(1.10100).margin(5e-6));
  CHECK(phi_inverse(99.0) == Approx(2.62865).margin(5e-6));
  CHECK(phi_inverse(999.0) == Approx(4.42050).margin(5e-6));
  CHECK(phi_inverse(1e308) == Approx(701.64278422203517).epsilon(1e-15));
  CHECK(phi_inverse(2.0) == Approx(0.46306).margin(5e-6));  // W(n/e) at n = 2, as printed
  CHECK(phi_inverse(100.0) == Approx(2.63593).margin(5e-6));
}

TEST_CASE("upper_bound_lambert_w: is above W, and tight, over all magnitudes", "[bounds]") {
  CHECK(upper_bound_lambert_w(0.0) == 0.0);
  CHECK(upper_bound_phi_inverse(0.0) == 0.0);
  const double greatest = std::numeric_limits<double>::max();
  for (int step = -3000; step < 3080; ++step) {
    const double y = std::pow(10.0, 0.1 * step);
    CAPTURE(y);
    const double w = upper_bound_lambert_w(y);
    CHECK(std::expm1(std::log(static_cast<long double>(w)) + w -
                     std::log(static_cast<long double>(y))) >= 0.0L);
    CHECK(w <= lambert_w(y) * (1.0 + 20.0 * 0x1p-53));
    CHECK(upper_bound_phi_inverse(y) >= phi_inverse(y));
    CHECK(upper_bound_phi_inverse(y) <= phi_inverse(y) * (1.0 + 24.0 * 0x1p-53));
  }
  for (const double y : {4.9e-324, 1e-310, greatest}) {
    CAPTURE(y);
    CHECK(upper_bound_lambert_w(y) >= lambert_w(y));
    CHECK(upper_bound_lambert_w(y) <= lambert_w(y) * (1.0 + 20.0 * 0x1p-53) + 1e-323);
    CHECK(upper_bound_phi_inverse(y) >= phi_inverse(y));
  }
}

TEST_CASE("The Lambert functions refuse negative, infinite and NaN arguments", "[bounds]") {
  const double n = 0.0;
  CHECK_THROWS_WITH(phi_inverse(n - 1.0),
                    "phi_inverse: argument must be finite and not negative, got -1");
  for (const double y : {-1e-300, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CHECK_THROWS_AS(lambert_w(y), std::invalid_argument);
    CHECK_THROWS_AS(upper_bound_lambert_w(y), std::invalid_argument);
    CHECK_THROWS_AS(phi_inverse(y), std::invalid_argument);
    CHECK_THROWS_AS(upper_bound_phi_inverse(y), std::invalid_argument);
  }
}

}  // namespace
}  // namespace lipsa
