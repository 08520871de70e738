#include "experiment/paper_appendix_ascent.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "experiment/paper_sections.hpp"
#include "lipsa/bounds/lambert.hpp"
#include "paper_checks.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

std::vector<PaperFact> facts() {
  return {{.place = "Appendix", .quantity = "growth of the ascent on Lip_2"},
          {.place = "Appendix", .quantity = "ascent on |J|_inf of dot-product attention"}};
}

std::vector<TwoNormPoint> made_up(double (*value)(double), double upper = 1e3) {
  std::vector<TwoNormPoint> points;
  for (const Index n : {2, 4, 8, 16, 32, 64, 128}) {
    points.push_back({.n = n,
                      .lower_bounds = {value(static_cast<double>(n))},
                      .kim = 2.0 * upper,
                      .best_upper = upper});
  }
  return points;
}

double logarithm(double n) {
  return 1.5 * std::log(n) + 1.0;
}

double root(double n) {
  return 0.8 * std::sqrt(n);
}

std::vector<DivergencePoint> rising(double factor) {
  std::vector<DivergencePoint> points;
  double value = 3.0;
  for (const Index steps : {100, 200, 400}) {
    points.push_back({.steps = steps,
                      .dot = value,
                      .dot_status = "step limit",
                      .l2 = 2.0,
                      .l2_status = "converged",
                      .l2_upper = 2.5});
    value *= factor;
  }
  return points;
}

TEST_CASE("section_appendix_ascent: |J|_2 between its bounds, and dot-product attention diverges",
          "[experiment][slow]") {
  const ReportSection section = section_appendix_ascent({.facts = facts()});
  test::check_section(section);
  const Table& two = test::table_of(section, "appendix-two-norm");
  for (std::size_t r = 0; r < two.rows.size(); ++r) {
    const auto n = std::get<std::int64_t>(test::cell(two, r, "n"));
    const double c = phi_inverse(static_cast<double>(n - 1));
    CAPTURE(n);
    if (n % 2 == 1) {  // tokens 0, t, −t with t² = 1 + c
      CHECK(test::real(two, r, "lower_bound") >= (2.0 * c + 1.0 / (1.0 + c)) * (1.0 - 1e-11));
    }
    // √n (4 c + 1) for unit weights.
    CHECK(test::real(two, r, "upper_bound_kim2021_2") ==
          Approx(std::sqrt(static_cast<double>(n)) * (4.0 * c + 1.0)).epsilon(1e-12));
  }
  const Table& divergence = test::table_of(section, "appendix-divergence");
  REQUIRE(divergence.rows.size() == 14);
  for (std::size_t r = 1; r < 7; ++r) {
    CHECK(test::real(divergence, r, "lower_bound") > test::real(divergence, r - 1, "lower_bound"));
  }
  CHECK(test::word(divergence, 6, "status") == "step limit");
  CHECK(test::word(divergence, 13, "status") == "converged");
  CHECK_THAT(section.verdict, Contains("keeps growing") && Contains("below the bound"));
  REQUIRE(section.agreements.size() == 2);
  CHECK(section.agreements[1].agreement == "agrees");
}

TEST_CASE("appendix_ascent_verdict: log n or a power, from the numbers", "[experiment]") {
  CHECK_THAT(appendix_ascent_verdict(made_up(&logarithm), rising(2.0)),
             Contains("it falls, consistent with O(log n)") && Contains("1.00000 (a log n + b)"));
  CHECK_THAT(appendix_ascent_verdict(made_up(&root), rising(2.0)),
             Contains("it does not fall") && Contains("exponent 0.500 in the lower half") &&
                 Contains("0.500 in the upper"));
  CHECK(appendix_ascent_agreements(facts(), made_up(&logarithm), rising(2.0))[0].agreement ==
        "consistent");
  CHECK(appendix_ascent_agreements(facts(), made_up(&root), rising(2.0))[0].agreement ==
        "does not agree");
  CHECK_THAT(appendix_ascent_verdict(made_up(&root, 5.0), rising(2.0)),
             Contains("At n = 64") && Contains("is wrong"));
  CHECK_THAT(appendix_ascent_verdict({}, {}), Contains("Too few") && !Contains("nan"));
}

TEST_CASE("diverges: rising to the end, and not at rest", "[experiment]") {
  CHECK(diverges(rising(2.0)));
  CHECK_FALSE(diverges(rising(1.2)));
  CHECK_FALSE(diverges(rising(0.9)));
  CHECK_FALSE(diverges({}));
  std::vector<DivergencePoint> points = rising(2.0);
  points.back().dot_status = "converged";
  CHECK_FALSE(diverges(points));
  CHECK(appendix_ascent_agreements(facts(), {}, points).front().agreement == "does not agree");
  CHECK_THAT(appendix_ascent_verdict(made_up(&logarithm), points),
             Contains("does not keep growing"));
  points = rising(2.0);
  points[1].l2 = 2.6;  // above its bound
  CHECK_THAT(appendix_ascent_verdict(made_up(&logarithm), points), Contains("which is wrong"));
  points[1].dot = points[0].dot;
  CHECK_FALSE(diverges(points));
}

}  // namespace
}  // namespace lipsa
