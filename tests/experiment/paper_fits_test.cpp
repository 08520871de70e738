#include "experiment/paper_fits.hpp"

#include <catch2/catch.hpp>

namespace lipsa {
namespace {

using Points = std::vector<std::pair<double, double>>;

TEST_CASE("fit_line: a line is found, and R squared falls off one that is none", "[experiment]") {
  const LineFit exact = fit_line({{1.0, 5.0}, {2.0, 8.0}, {4.0, 14.0}});
  CHECK(exact.slope == Approx(3.0).epsilon(1e-14));
  CHECK(exact.intercept == Approx(2.0).epsilon(1e-13));
  CHECK(exact.r_squared == Approx(1.0).epsilon(1e-14));
  // y = x² at 0, 1, 2: slope 2, intercept −1/3, residuals 1/3, −2/3, 1/3 of a total 26/3.
  const LineFit bent = fit_line({{0.0, 0.0}, {1.0, 1.0}, {2.0, 4.0}});
  CHECK(bent.slope == Approx(2.0).epsilon(1e-14));
  CHECK(bent.intercept == Approx(-1.0 / 3.0).epsilon(1e-13));
  CHECK(bent.r_squared == Approx(1.0 - (2.0 / 3.0) / (26.0 / 3.0)).epsilon(1e-13));
}

TEST_CASE("fit_power: a power is found, and a logarithm is none", "[experiment]") {
  Points power;
  Points logarithm;
  for (const double x : {2.0, 5.0, 12.0, 40.0, 200.0}) {
    power.emplace_back(x, 1.7 * std::pow(x, 0.3125));
    logarithm.emplace_back(x, 2.0 * std::log(x) + 1.0);
  }
  const PowerFit exact = fit_power(power);
  CHECK(exact.exponent == Approx(0.3125).epsilon(1e-6));
  CHECK(exact.factor == Approx(1.7).epsilon(1e-5));
  CHECK(exact.r_squared == Approx(1.0).epsilon(1e-9));
  CHECK(fit_line(power).r_squared < 0.95);
  CHECK(fit_power(logarithm).r_squared < 0.995);
}

TEST_CASE("fit_power: the square is found beyond the first cells of its search", "[experiment]") {
  const PowerFit fit = fit_power({{1.0, 3.0}, {2.0, 12.0}, {10.0, 300.0}});
  CHECK(fit.exponent == Approx(2.0).epsilon(1e-7));
  CHECK(fit.factor == Approx(3.0).epsilon(1e-6));
}

TEST_CASE("fits of too few points are not numbers", "[experiment]") {
  CHECK(std::isnan(fit_line({}).slope));
  CHECK(std::isnan(fit_line({{1.0, 1.0}}).slope));
  CHECK(std::isnan(fit_line({{1.0, 1.0}, {2.0, 2.0}}).r_squared));
  CHECK(std::isnan(fit_line({{1.0, 1.0}, {2.0, 1.0}, {3.0, 1.0}}).r_squared));
  CHECK(std::isnan(fit_power({{1.0, 1.0}, {2.0, 2.0}}).exponent));
}

}  // namespace
}  // namespace lipsa
