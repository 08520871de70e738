#include "experiment/paper_theorem_3_2.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "experiment/paper_sections.hpp"
#include "paper_checks.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

std::vector<PaperFact> facts() {
  return {{.place = "Theorem 3.2", .quantity = "Lip_inf(L2-MHA) <="},
          {.place = "Theorem 3.2", .quantity = "Lip_2(L2-MHA) <="},
          {.place = "Theorem 3.2", .quantity = "phi^-1(N-1)", .as_printed = "W(N/e)"}};
}

L2Bounds made_up(Norm norm, double lower, double published, double best) {
  return {.weights = "made-up",
          .norm = norm,
          .n = 4,
          .D = 2,
          .H = 1,
          .lower_bound = lower,
          .published = published,
          .best = best,
          .best_name = "best"};
}

std::vector<L2Bounds> sound() {
  return {made_up(Norm::inf, 2.0, 4.0, 3.0), made_up(Norm::two, 1.0, 8.0, 2.0)};
}

L2Violation violation(double certified, double printed, double corrected) {
  L2Violation v{.found_by = "made-up", .n = 2, .D = 1, .printed = printed, .corrected = corrected};
  v.verdict.outcome = Outcome::proved;
  v.verdict.ratio_lower_bound = certified;
  v.verdict.ratio_upper_bound = certified;
  return v;
}

TEST_CASE("section_theorem_3_2: bounds hold, the printed 2-norm is refuted, its correction holds",
          "[experiment][slow]") {
  const ReportSection section = section_theorem_3_2({.facts = facts()});
  test::check_section(section);

  const Table& inf = test::table_of(section, "theorem-3-2-inf");
  REQUIRE(test::word(inf, 0, "weights") == "identity");
  // n = 2, D = 1: 1 + 4 W(1/e) and 1 + 4 W(e^(−3/2)).
  CHECK(test::real(inf, 0, "upper_bound_kim2021_inf") ==
        Approx(1.0 + 4.0 * 0.27846454276107).epsilon(1e-13));
  CHECK(test::real(inf, 0, "upper_bound_sharp_l2_inf") ==
        Approx(1.7414996737957593).epsilon(1e-14));

  const Table& two = test::table_of(section, "theorem-3-2-two");
  CHECK(test::real(two, 0, "upper_bound_kim2021_2") == Approx(2.9894468944240304).epsilon(1e-12));
  CHECK(test::real(two, 0, "upper_bound") == Approx(2.303).epsilon(1e-3));

  const Table& violations = test::table_of(section, "theorem-3-2-violations");
  REQUIRE(violations.rows.size() == 2);
  for (std::size_t r = 0; r < 2; ++r) {
    CHECK(test::word(violations, r, "status") == "proved");
    CHECK(test::real(violations, r, "certified_lower_bound") >
          test::real(violations, r, "refuted_kim2021_2_printed"));
    CHECK(test::real(violations, r, "certified_upper_bound") <=
          test::real(violations, r, "upper_bound_kim2021_2"));
  }
  // J = (25/2) (1 1; 1 1).
  CHECK(test::real(violations, 1, "certified_lower_bound") == 25.0);
  CHECK(test::real(violations, 1, "refuted_kim2021_2_printed") == Approx(20.17).epsilon(1e-3));
  CHECK(test::real(violations, 1, "upper_bound_kim2021_2") == Approx(74.74).epsilon(1e-3));

  REQUIRE(section.agreements.size() == 3);
  CHECK(section.agreements[0].agreement == "agrees");
  CHECK(section.agreements[1].agreement == "does not agree");
  CHECK_THAT(section.agreements[2].agreement, Contains("larger and hence safe"));
  CHECK_THAT(section.verdict, Contains("is false") && Contains("holds there"));
  CHECK(section.command == "lipsa paper-tables --only theorem-3.2 --quick --seed 0");
}

TEST_CASE("theorem_3_2_verdict: says so when a lower bound exceeds a bound", "[experiment]") {
  const std::vector<L2Violation> found{violation(25.0, 20.0, 75.0)};
  CHECK_THAT(theorem_3_2_verdict(sound(), found),
             Contains("every lower bound lies below the published bound, which is 2 to 2 times") &&
                 !Contains("wrong"));
  for (const Norm norm : {Norm::inf, Norm::two}) {
    std::vector<L2Bounds> rows = sound();
    rows.push_back(made_up(norm, 3.5, 3.4, 3.6));
    CHECK_THAT(theorem_3_2_verdict(rows, found), Contains("is wrong") && Contains("1 and above"));
    rows.back() = made_up(norm, 3.5, 9.0, 3.4);
    CHECK_THAT(theorem_3_2_verdict(rows, found), Contains("is wrong"));
  }
  std::vector<L2Bounds> crossed = sound();
  crossed.front().lower_bound = 4.1;
  CHECK(theorem_3_2_agreements(facts(), crossed, found, {0.1, 0.2}).front().agreement ==
        "does not agree");
}

TEST_CASE("theorem_3_2_verdict: without a proof the printed formula stands", "[experiment]") {
  std::vector<L2Violation> none{violation(19.0, 20.0, 75.0)};
  CHECK_FALSE(is_violated(none.front()));
  CHECK_THAT(theorem_3_2_verdict(sound(), none), Contains("No violation"));
  CHECK(theorem_3_2_agreements(facts(), sound(), none, {0.1, 0.2})[1].agreement == "not refuted");
  std::vector<L2Violation> undecided{violation(25.0, 20.0, 75.0)};
  undecided.front().verdict.outcome = Outcome::undecided;
  CHECK_THAT(theorem_3_2_verdict(sound(), undecided), Contains("No violation"));
  const std::vector<L2Violation> both{violation(25.0, 20.0, 24.0)};
  CHECK_FALSE(correction_holds(both.front()));
  CHECK_THAT(theorem_3_2_verdict(sound(), both), Contains("is false") && Contains("either"));
}

TEST_CASE("theorem_3_2_agreements: phi is compared in numbers", "[experiment]") {
  const auto agreement = [](double least, double most) {
    return theorem_3_2_agreements(facts(), sound(), {}, {least, most})[2].agreement;
  };
  CHECK(agreement(0.0, 0.0) == "agrees");
  CHECK(agreement(-0.1, 0.1) == "does not agree");
  CHECK_THAT(agreement(0.1, 0.2), Contains("safe"));
}

}  // namespace
}  // namespace lipsa
