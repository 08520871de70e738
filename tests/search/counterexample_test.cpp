#include "lipsa/search/counterexample.hpp"

#include <catch2/catch.hpp>

#include "lipsa/search/certificate.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using Outcome = Counterexample::Outcome;

MultiHead growing_layer(AttentionKind kind, Index D, Index H, bool biases) {
  Rng rng(11, static_cast<std::uint64_t>(D));
  const test::Shape shape{4, D, H, std::max<Index>(1, D / H), 2, 3};
  return test::random_layer(rng, kind, shape, biases);
}

TEST_CASE(
    "find_counterexample: any constant for layers that have none, proved, no larger than needed",
    "[search]") {
  const auto kind = GENERATE(AttentionKind::dot, AttentionKind::l2_untied);
  const auto K = GENERATE(1e3, 1e30, 1e100);
  const auto p = GENERATE(Norm::one, Norm::two, Norm::inf, Norm::max_token);
  const auto biases = GENERATE(false, true);
  CAPTURE(to_string(kind), K, to_string(p), biases);
  const MultiHead layer = growing_layer(kind, 8, 2, biases);
  Rng rng(12);
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, 4)}) {
    const Counterexample result = find_counterexample(layer, mask, 4, {.norm = p, .exceed = K});
    CAPTURE(to_string(mask.kind()), result.reason);
    REQUIRE(result.outcome == Outcome::found);
    const Verdict verdict = verify(*result.witness);
    CHECK(verdict.outcome == lipsa::Outcome::proved);
    CHECK(verdict.ratio_lower_bound > K);
    CHECK(result.witness->exceeds == K);
    CHECK(result.ratio_lower_bound < 1.5 * K);
  }
}

TEST_CASE("find_counterexample: dot-product without biases reaches 1e100 in one dimension",
          "[search]") {
  const Counterexample result =
      find_counterexample(test::unit_layer(AttentionKind::dot), Mask::none(), 3, {.exceed = 1e100});
  REQUIRE(result.outcome == Outcome::found);
  CHECK(result.witness->x(0, 0) == 0.0);
}

TEST_CASE("find_counterexample: one-dimensional untied L2 with exact fractions, else says how far",
          "[search]") {
  MultiHead layer = test::unit_layer(AttentionKind::l2_untied);
  layer.W_K(0, 0) = 0.5;
  const Counterexample exact = find_counterexample(layer, Mask::none(), 2, {.exceed = 1e6});
  CHECK(exact.outcome == Outcome::found);
  layer.W_K(0, 0) = 0.6;
  CHECK(find_counterexample(layer, Mask::none(), 2, {.exceed = 1e6}).outcome == Outcome::found);
  const Counterexample beyond = find_counterexample(layer, Mask::none(), 2, {.exceed = 1e100});
  CHECK(beyond.outcome == Outcome::inconclusive);
  CHECK_THAT(beyond.reason, Catch::Contains("ratio of"));
}

TEST_CASE("find_counterexample: says when the map is Lipschitz", "[search]") {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  const auto outcome = [&](const Mask& mask, Index n, double K) {
    return find_counterexample(layer, mask, n, {.exceed = K});
  };
  const Counterexample one = outcome(Mask::none(), 1, 5.0);
  CHECK(one.outcome == Outcome::impossible);
  CHECK_THAT(one.reason, Catch::Contains("one token"));
  CHECK(outcome(Mask::none(), 1, 0.5).outcome == Outcome::found);  // linear, of norm 1

  Mask::Visible own = Mask::Visible::Constant(3, 3, false);
  own.matrix().diagonal().setConstant(true);
  CHECK(outcome(Mask::arbitrary(own), 3, 5.0).outcome == Outcome::impossible);

  layer.W_Q.setZero();
  const Counterexample deaf = outcome(Mask::none(), 3, 5.0);
  CHECK(deaf.outcome == Outcome::impossible);
  CHECK_THAT(deaf.reason, Catch::Contains("A = 0"));
  layer = test::unit_layer(AttentionKind::dot);
  layer.W_V.setZero();
  const Counterexample mute = outcome(Mask::none(), 3, 1e-6);
  CHECK(mute.outcome == Outcome::impossible);
  CHECK_THAT(mute.reason, Catch::Contains("W_V W_O = 0"));

  layer = test::unit_layer(AttentionKind::l2);
  const Counterexample bounded = outcome(Mask::none(), 5, 20.0);
  CHECK(bounded.outcome == Outcome::impossible);
  CHECK_THAT(bounded.reason, Catch::Contains("l2_2_sum gives"));
  CHECK(outcome(Mask::none(), 5, 1.0).outcome == Outcome::found);
  CHECK(outcome(Mask::none(), 5, 4.6).outcome == Outcome::inconclusive);
}

TEST_CASE("find_counterexample: refuses what is no constant", "[search]") {
  const MultiHead layer = test::unit_layer(AttentionKind::dot);
  for (const double K : {0.0, -1.0, 1e101, std::nan("")}) {
    CHECK_THROWS_AS(find_counterexample(layer, Mask::none(), 3, {.exceed = K}),
                    std::invalid_argument);
  }
}

}  // namespace
}  // namespace lipsa
