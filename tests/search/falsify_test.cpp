#include "lipsa/search/falsify.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/core/parallel.hpp"
#include "lipsa/search/certificate.hpp"

namespace lipsa {
namespace {

void check_same(const std::vector<FalsifyTally>& a, const std::vector<FalsifyTally>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t e = 0; e < a.size(); ++e) {
    CAPTURE(a[e].name);
    CHECK(a[e].name == b[e].name);
    CHECK(a[e].trials == b[e].trials);
    CHECK(a[e].worst_ratio == b[e].worst_ratio);
    CHECK(a[e].worst_trial == b[e].worst_trial);
    CHECK(a[e].worst_ratio_one_token == b[e].worst_ratio_one_token);
    CHECK(a[e].worst_trial_one_token == b[e].worst_trial_one_token);
  }
}

TEST_CASE("falsify: pieces merge to the whole, for any number of threads", "[search]") {
  const FalsifyOptions options{.seed = 3};
  const auto whole = falsify(options, 0, 600);
  auto pieces = falsify(options, 0, 101);
  merge(pieces, falsify(options, 101, 399));
  merge(pieces, falsify(options, 500, 100));
  check_same(pieces, whole);
  const ThreadLimit limit(1);
  check_same(falsify(options, 0, 600), whole);
}

TEST_CASE("falsify: every entry that gives numbers is compared, and none is violated", "[search]") {
  for (const FalsifyTally& tally : falsify({.seed = 1}, 0, 8000)) {
    CAPTURE(tally.name, tally.worst_trial, tally.worst_trial_one_token);
    const bool finite = tally.name.find("not_lipschitz") == std::string::npos;
    CHECK((tally.trials > 0) == finite);
    CHECK(tally.worst() <= 1.0 + measurement_error);
    CHECK((!finite || tally.worst() > 0.05));  // near enough to mean something
  }
}

TEST_CASE("falsify: bounds shrunk by a percent are found out where they are attained", "[search]") {
  int caught = 0;
  for (const FalsifyTally& tally : falsify({.shrink = 0.99}, 0, 4000)) {
    caught += tally.worst() > 1.0 + measurement_error ? 1 : 0;
  }
  CHECK(caught >= 25);
}

TEST_CASE("falsify: what is known to be false is violated, and the witness is proved", "[search]") {
  for (const CatalogEntry& entry : catalog()) {
    if (entry.refutation.empty()) {
      continue;
    }
    CAPTURE(entry.name);
    const auto tally = falsify({.bounds = {std::string(entry.name)}}, 0, 4000).at(0);
    REQUIRE(tally.worst() > 1.01);
    const std::int64_t trial =
        tally.worst_ratio > 1.01 ? tally.worst_trial : tally.worst_trial_one_token;
    const auto witness = violation(entry, falsify_trial(entry.attention, 0, trial));
    REQUIRE(witness.has_value());
    const Verdict verdict = verify(*witness);
    CAPTURE(verdict.reason);
    CHECK(verdict.outcome == Outcome::proved);
  }
}

TEST_CASE("falsify: refuses an unknown bound, a negative count and a shrink of nothing",
          "[search]") {
  CHECK_THROWS_WITH(falsify({.bounds = {"kim"}}, 0, 1), Catch::Contains("got 'kim'"));
  CHECK_THROWS_AS(falsify({}, 0, -1), std::invalid_argument);
  CHECK_THROWS_AS(falsify({.shrink = 0.0}, 0, 1), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
