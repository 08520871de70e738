#include "lipsa/experiment/inversion_plot.hpp"

#include <catch2/catch.hpp>

#include "small_inversion.hpp"

namespace lipsa {
namespace {

using Catch::Contains;
using test::run_all;
using test::small_inversion;

TEST_CASE("inversion_gnuplot: a panel an attention, a curve a contraction and range, axes named",
          "[experiment]") {
  const Inversion inversion(small_inversion());
  auto rows = run_all(inversion);
  const std::string script = inversion_gnuplot(inversion, rows);
  for (const char* part : {"\"l2 attention\"", "\"dot-product attention\"", "\"c = 0.5, r = 1\"",
                           "\"c = 0.9, r = 10\"", "set xlabel \"iteration k\"",
                           "set ylabel \"largest |x_k - x|, estimate\"", "set logscale y",
                           "inversion.svg", "inversion.png"}) {
    CHECK_THAT(script, Contains(part));
  }
  for (InversionRow& row : rows) {
    row.errors.assign(row.errors.size(), 0.0);
  }
  CHECK(inversion_gnuplot(inversion, rows).empty());
  rows.front().errors.front() = std::numeric_limits<double>::infinity();
  CHECK(inversion_gnuplot(inversion, rows).empty());
}

TEST_CASE("inversion_gnuplot: an attention with nothing to draw keeps its panel", "[experiment]") {
  const Inversion inversion(small_inversion());
  auto rows = run_all(inversion);
  for (InversionRow& row : rows) {
    if (row.attention == AttentionKind::dot) {
      row.errors.assign(row.errors.size(), 1e300);
    }
  }
  CHECK_THAT(inversion_gnuplot(inversion, rows), Contains("plot NaN notitle"));
}

}  // namespace
}  // namespace lipsa
