#include "experiment/paper_figure_2.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "experiment/paper_sections.hpp"
#include "paper_checks.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

std::vector<PaperFact> facts() {
  return {{.place = "Figure 2", .quantity = "H = D", .as_printed = "1"},
          {.place = "Figure 2", .quantity = "N", .as_printed = "100 to 1000"},
          {.place = "Figure 2", .quantity = "random starts per N", .as_printed = "50"},
          {.place = "Figure 2", .quantity = "starts plotted", .as_printed = "5 best per N"},
          {.place = "Figure 2", .quantity = "outcome", .as_printed = "same slope"},
          {.place = "Figure 2", .quantity = "something else", .as_printed = "7"}};
}

/// 3 log n + 5 above, `gap` of it the bound's own, `left` below that.
std::vector<TightnessPoint> made_up(double gap, double left, double slope = 3.0) {
  std::vector<TightnessPoint> points;
  for (const Index n : {100, 300, 1000}) {
    const double log_n = std::log(static_cast<double>(n));
    const double best = slope * log_n + 5.0 - gap - left;
    points.push_back({.n = n,
                      .published = 3.0 * log_n + 5.0,
                      .sharp = slope * log_n + 5.0 - gap,
                      .lower_bounds = {best, best - 0.1},
                      .random_lower_bound = best - 0.5});
  }
  return points;
}

TEST_CASE("section_figure_2: published and sharp bounds, attained at odd n", "[experiment][slow]") {
  const ReportSection section = section_figure_2({.facts = facts()});
  test::check_section(section);
  const Table& table = test::table_of(section, "figure-2");
  REQUIRE(table.rows.size() == 6);
  const std::vector<double> kim{11.515, 13.588, 14.837, 16.446, 17.524, 18.682};
  const std::vector<double> sharp{10.0948, 12.0931, 13.3065, 14.8752, 15.9302, 17.0655};
  for (std::size_t r = 0; r < 6; ++r) {
    CAPTURE(r);
    CHECK(std::abs(test::real(table, r, "upper_bound_kim2021_inf") - kim[r]) <= 5.1e-4);
    CHECK(std::abs(test::real(table, r, "upper_bound_sharp_l2_inf") - sharp[r]) <= 5.1e-5);
    CHECK(test::real(table, r, "lower_bound") >= sharp[r] * (1.0 - 1e-4));
    CHECK(test::real(table, r, "lower_bound") >= test::real(table, r, "lower_bound_5"));
    CHECK(test::word(table, r, "sharp_l2_inf_is") == "an upper bound");
  }
  const Table& odd = test::table_of(section, "figure-2-odd");
  const std::vector<double> exact{2.2922442926812865, 3.107792, 0.0, 10.122765998695867,
                                  17.068704354778266};
  for (const std::size_t r : {0U, 3U, 4U}) {
    CHECK(test::real(odd, r, "upper_bound_sharp_l2_inf") == Approx(exact[r]).epsilon(1e-14));
    CHECK(test::real(odd, r, "lower_bound_analytic") == Approx(exact[r]).epsilon(1e-11));
  }
  CHECK(test::real(odd, 1, "lower_bound_analytic") == Approx(exact[1]).epsilon(2e-7));

  CHECK_THAT(section.verdict, Contains("Nearly all of the gap") && Contains("roughly constant") &&
                                  Contains(": the same within 5 %"));
  REQUIRE(section.agreements.size() == 6);
  CHECK(section.agreements[0].agreement == "same setting");
  CHECK(section.agreements[1].agreement == "same setting");
  CHECK(section.agreements[2].agreement == "another setting");  // 12 starts, not 50
  CHECK(section.agreements[3].agreement == "another setting");  // analytic starts too
  CHECK(section.agreements[4].agreement == "agrees");
  CHECK(section.agreements[5].agreement == "not tested");
}

TEST_CASE("figure_2_verdict: whose gap it is, from the numbers", "[experiment]") {
  const auto verdict = [](const std::vector<TightnessPoint>& points) {
    return figure_2_verdict(tightness_summary(points));
  };
  CHECK_THAT(verdict(made_up(2.0, 0.001)), Contains("Nearly all of the gap"));
  CHECK_THAT(verdict(made_up(2.0, 0.5)),
             Contains("Most of the gap") && Contains("between 80 % and 80 %"));
  CHECK_THAT(verdict(made_up(0.5, 2.0)),
             Contains("Not most of the gap") && Contains("between 20 % and 20 %"));
  CHECK_THAT(verdict(made_up(1.0, 0.001, 2.5)),
             Contains("not the same within 5 %") && Contains("not constant"));
  CHECK_THAT(verdict(made_up(1.0, -0.1)), Contains("is wrong"));  // lower above sharp
  CHECK_THAT(verdict(made_up(-1.0, 0.1)), Contains("is wrong"));  // sharp above published
  std::vector<TightnessPoint> random = made_up(1.0, 0.1);
  random[1].random_lower_bound = random[1].sharp + 0.01;
  CHECK_THAT(verdict(random), Contains("is wrong"));
  CHECK_THAT(verdict({}), Contains("is wrong"));
}

TEST_CASE("figure_2_agreements: the outcome follows the numbers", "[experiment]") {
  CHECK(figure_2_agreements(facts(), made_up(2.0, 0.1), 50)[4].agreement == "agrees");
  CHECK(figure_2_agreements(facts(), made_up(2.0, 0.1, 2.5), 50)[4].agreement == "does not agree");
  CHECK(figure_2_agreements(facts(), made_up(2.0, -0.1), 50)[4].agreement == "does not agree");
  CHECK(figure_2_agreements(facts(), made_up(2.0, 0.1), 50)[2].agreement == "same setting");
  CHECK(figure_2_agreements(facts(), made_up(2.0, 0.1), 50)[3].agreement == "another setting");
}

}  // namespace
}  // namespace lipsa
