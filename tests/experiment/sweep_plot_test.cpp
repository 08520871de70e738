#include "lipsa/experiment/sweep_plot.hpp"

#include <catch2/catch.hpp>

#include "small_sweep.hpp"

namespace lipsa {
namespace {

using test::run_all;
using test::small;

TEST_CASE("sweep_gnuplot: names every curve with its kind, and none without an axis",
          "[experiment]") {
  const Sweep sweep(small());
  auto rows = run_all(sweep);
  const std::string script = sweep_gnuplot(rows);
  for (const char* title : {"\"upper bound kim2021_inf\"", "\"upper bound kim2021_inf_printed\"",
                            "\"upper bound sharp_l2_inf\"", "\"lower bound, best start\"",
                            "\"lower bound, starts 2 to 5\"", "\"number of tokens, n\""}) {
    CAPTURE(title);
    CHECK(script.find(title) != std::string::npos);
  }
  rows.resize(1);
  CHECK(sweep_gnuplot(rows).empty());
}

}  // namespace
}  // namespace lipsa
