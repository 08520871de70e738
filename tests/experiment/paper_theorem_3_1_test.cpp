#include "experiment/paper_theorem_3_1.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "experiment/paper_sections.hpp"
#include "files.hpp"
#include "lipsa/core/npz.hpp"
#include "lipsa/core/rng.hpp"
#include "paper_checks.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

const PaperFact not_lipschitz{.place = "Theorem 3.1",
                              .quantity = "dot-product multi-head attention is not Lipschitz",
                              .as_printed = "-",
                              .confidence = "sure"};

DotGrowth made_up(double slope) {
  return {.weights = "made-up", .norm = Norm::two, .slope = 1.95, .slope_witness = slope};
}

DotPair proved(Norm norm) {
  DotPair pair{.weights = "made-up", .norm = norm, .exceeds = 1e6, .found = true};
  pair.verdict.outcome = Outcome::proved;
  pair.verdict.ratio_lower_bound = 1000200.5;
  return pair;
}

std::vector<DotPair> proved_in_all() {
  return {proved(Norm::one), proved(Norm::two), proved(Norm::inf)};
}

TEST_CASE("section_theorem_3_1: closed forms, slopes of 2 and proved counterexamples",
          "[experiment]") {
  const ReportSection section = section_theorem_3_1({.facts = {not_lipschitz}});
  test::check_section(section);
  const Table& growth = test::table_of(section, "theorem-3-1-growth");
  std::size_t compared = 0;
  for (std::size_t r = 0; r < growth.rows.size(); ++r) {
    const double radius = test::real(growth, r, "radius");
    if (test::word(growth, r, "weights") == "identity" && test::word(growth, r, "norm") == "inf" &&
        radius > 3.0) {
      // Tokens 0, R, −R: the row of the first is 1/3 + 2 R²/3, 1/3, 1/3.
      CAPTURE(radius);
      CHECK(test::real(growth, r, "lower_bound") >=
            (1.0 + 2.0 * radius * radius / 3.0) * (1.0 - 1e-11));
      ++compared;
    }
  }
  CHECK(compared == 6);
  const Table& slopes = test::table_of(section, "theorem-3-1-slopes");
  REQUIRE(slopes.rows.size() == 6);
  for (std::size_t r = 0; r < slopes.rows.size(); ++r) {
    CHECK(test::real(slopes, r, "slope_witness_estimate") == Approx(2.0).margin(0.01));
  }
  const Table& pairs = test::table_of(section, "theorem-3-1-pairs");
  REQUIRE(pairs.rows.size() == 6);
  for (std::size_t r = 0; r < pairs.rows.size(); ++r) {
    CHECK(test::word(pairs, r, "status") == "proved");
    CHECK(test::real(pairs, r, "certified_lower_bound") > 1e6);
    CHECK(test::real(pairs, r, "certified_upper_bound") < 1.02e6);
    CHECK_THAT(test::word(pairs, r, "theorem"), Contains("dot_not_lipschitz"));
  }
  CHECK_THAT(section.verdict,
             Contains(": quadratically") && Contains("For every layer and norm a pair"));
  REQUIRE(section.agreements.size() == 1);
  CHECK(section.agreements.front().agreement == "agrees for p = 1, 2, inf");
  CHECK(section.agreements.front().kind == "certified");
}

TEST_CASE("section_theorem_3_1: layers of files stand beside the others, by name",
          "[experiment][slow]") {
  const TemporaryFolder folder;
  Rng rng(7);
  Npz arrays;
  for (const char* name : {"W_Q", "W_K", "W_V", "W_O"}) {
    arrays.emplace(name, to_array(normal_matrix(rng, 4, 4)));
  }
  arrays.emplace("heads", to_array(2.0));
  write_npz(folder / "own.npz", arrays);
  const ReportSection section = section_theorem_3_1({.weights = {folder / "own.npz"}});
  const Table& slopes = test::table_of(section, "theorem-3-1-slopes");
  REQUIRE(slopes.rows.size() == 9);
  CHECK(test::word(slopes, 8, "weights") == "own.npz");
  const Table& pairs = test::table_of(section, "theorem-3-1-pairs");
  REQUIRE(pairs.rows.size() == 9);
  CHECK(test::word(pairs, 8, "status") == "proved");
  CHECK_THAT(section.figures.front().script, Contains("own.npz, norm inf"));
  CHECK_THROWS_AS(section_theorem_3_1({.weights = {folder / "none.npz"}}), std::runtime_error);
}

TEST_CASE("theorem_3_1_verdict: says so when a slope is not 2", "[experiment]") {
  CHECK_THAT(theorem_3_1_verdict({made_up(2.0), made_up(1.9)}, proved_in_all()),
             Contains("R^1.900 to R^2.000 in all 2 curves") && Contains("quadratically"));
  for (const double slope : {1.89, 2.11, 1.0, 0.0}) {
    CHECK_THAT(theorem_3_1_verdict({made_up(2.0), made_up(slope)}, proved_in_all()),
               Contains("in 1 of 2 curves; not at the radii looked at in made-up in norm 2"));
  }
  CHECK_THAT(theorem_3_1_verdict({made_up(std::nan(""))}, proved_in_all()),
             Contains("in 0 of 1 curves") && Contains("no slope") && !Contains("nan"));
}

TEST_CASE("theorem_3_1_verdict: counts pairs that are proved, and no others", "[experiment]") {
  std::vector<DotPair> pairs = proved_in_all();
  CHECK_THAT(theorem_3_1_verdict({made_up(2.0)}, pairs),
             Contains("For every layer and norm") && Contains("1.0002e+06"));
  pairs[1].verdict.outcome = Outcome::undecided;
  CHECK_THAT(theorem_3_1_verdict({made_up(2.0)}, pairs),
             Contains("in 2 of 3 cases") && Contains("made-up in norm 2"));
  CHECK(theorem_3_1_agreements({not_lipschitz}, pairs).front().agreement ==
        "agrees for p = 1, inf");
  pairs[0].verdict.ratio_lower_bound = 999999.0;  // not above K
  pairs[2].found = false;
  CHECK_THAT(theorem_3_1_verdict({made_up(2.0)}, pairs), Contains("No counterexample was proved"));
  CHECK(theorem_3_1_agreements({not_lipschitz}, pairs).front().agreement == "not shown");
  CHECK(theorem_3_1_agreements({not_lipschitz}, {}).front().agreement == "not shown");
}

}  // namespace
}  // namespace lipsa
