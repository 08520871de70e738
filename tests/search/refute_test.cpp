#include "lipsa/search/refute.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/bounds/catalog.hpp"
#include "lipsa/search/certificate.hpp"

namespace lipsa {
namespace {

bool whole(const ConstMatrixRef& m) {
  return m.unaryExpr([](double x) { return std::round(10.0 * x) - 10.0 * x; }).isZero(1e-12);
}

TEST_CASE("refute: finds what is false by itself, proved, small and simple", "[search]") {
  for (const std::string& claim : claims()) {
    if (find_entry(claim).refutation.empty()) {
      continue;
    }
    CAPTURE(claim);
    const Refutation result = refute(claim, {.trials = 4000});
    REQUIRE(result.witness.has_value());
    const Witness& w = *result.witness;
    CHECK(verify(w).outcome == Outcome::proved);
    CHECK(w.x.rows() <= 3);
    CHECK(w.x.cols() <= 2);
    for (const Matrix* m : {&w.layer.W_Q, &w.layer.W_K, &w.layer.W_V, &w.x}) {
      CHECK(whole(*m));
    }
    CHECK(result.ratio_lower_bound > w.exceeds);
    CHECK(w.bound == claim);
  }
}

TEST_CASE("refute: the same options give the same witness", "[search]") {
  const Witness a = refute("kim2021_2_printed", {.trials = 500, .seed = 4}).witness.value();
  const Witness b = refute("kim2021_2_printed", {.trials = 500, .seed = 4}).witness.value();
  CHECK(a.layer.W_Q == b.layer.W_Q);
  CHECK(a.x == b.x);
  CHECK(a.y == b.y);
  CHECK(a.exceeds == b.exceeds);
}

TEST_CASE("refute: scaling alone finds another degree of homogeneity", "[search]") {
  // No sampling: the formula of degree 1 in W_Q falls to powers of two.
  const Refutation result = refute("kim2021_2_printed", {.trials = 1, .seed = 2});
  REQUIRE(result.witness.has_value());
  CHECK(verify(*result.witness).outcome == Outcome::proved);
}

void check_true_claims(std::int64_t trials) {
  for (const std::string& claim : claims()) {
    if (!find_entry(claim).refutation.empty()) {
      continue;
    }
    CAPTURE(claim);
    const Refutation result = refute(claim, {.trials = trials});
    CHECK_FALSE(result.witness.has_value());
    CHECK(result.worst_ratio <= 1.0 + 1e-9);
    const bool compared = claim.find("not_lipschitz") == std::string::npos &&
                          find_entry(claim).subject != Subject::normalisation;
    CHECK((result.tried > 0) == compared);
  }
}

TEST_CASE("refute: what is true stands", "[search]") {
  check_true_claims(300);
}

// tests/property tries each claim 100000 times, all of a layer at once.
TEST_CASE("refute: what is true stands after 10000 tries of each claim", "[search][slow]") {
  check_true_claims(5000);  // of each of two samplings
}

TEST_CASE("refute: an unknown claim is refused", "[search]") {
  CHECK_THROWS_WITH(refute("softmax_half"), Catch::Contains("got 'softmax_half'"));
  CHECK_THROWS_AS(refute("kim2021_2", {.trials = -1}), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
