/// \file
/// Every bound of the catalogue against measured norms, at random and at adversarial layers and X,
/// in numbers that unit tests do not have the time for.
#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/search/falsify.hpp"
#include "lipsa/search/starts.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

void check_none_violated(const std::vector<FalsifyTally>& tallies) {
  for (const FalsifyTally& tally : tallies) {
    CAPTURE(tally.name, tally.worst_trial, tally.worst_trial_one_token);
    CHECK(tally.worst() <= 1.0 + measurement_error);
  }
}

TEST_CASE("Bounds: none is violated by 3000 random and adversarial layers", "[property]") {
  check_none_violated(falsify({.seed = 99}, 0, 3000));
}

TEST_CASE("Bounds: none is violated by 100000 random and adversarial layers of each kind",
          "[property][slow]") {
  check_none_violated(falsify({.seed = 99}, 0, 500000));
}

TEST_CASE("Bounds: the printed 2-norm formula of Kim et al. is violated, the corrected is not",
          "[property]") {
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  layer.W_Q *= 5.0;
  const Mask mask = Mask::none();
  const double norm = Jacobian(layer, Matrix::Zero(2, 1)).dense().norm();  // rank one
  CHECK(norm == Approx(25.0).epsilon(1e-14));
  const BoundSetting setting{.layer = layer, .mask = mask, .tokens = 2};
  const Bound printed = find_entry("kim2021_2_printed").evaluate(setting);
  CHECK(printed.refuted);
  CHECK_FALSE(printed.holds);
  CHECK(norm > printed.value);
  CHECK(norm < find_entry("kim2021_2").evaluate(setting).value);
  CHECK(falsify({.bounds = {"kim2021_2_printed"}}, 0, 300).at(0).worst() > 1.1);  // and elsewhere
}

TEST_CASE("Bounds: for dot-product and untied L2 on all X nothing finite is promised, rightly",
          "[property]") {
  const auto kind = GENERATE(AttentionKind::dot, AttentionKind::l2_untied);
  CAPTURE(to_string(kind));
  Rng rng(5);
  const MultiHead layer = test::random_layer(rng, kind, {3, 2, 1, 2, 2, 2}, false);
  const Mask mask = Mask::none();
  for (const Norm p : {Norm::one, Norm::two, Norm::inf}) {
    bool infinite = false;
    for (const Bound& bound : bounds_for({.layer = layer, .mask = mask, .tokens = 3}, p)) {
      infinite = infinite || (bound.holds && std::isinf(bound.value) && !bound.reason.empty());
      CHECK((!bound.holds || std::isinf(bound.value)));
    }
    CHECK(infinite);
  }
  double previous = 0.0;
  for (const double radius : {10.0, 100.0, 1000.0}) {
    const Matrix x = analytic_starts(layer, mask, 3, radius).front().x;
    const double norm = Jacobian(layer, x).norm_inf().value;
    CHECK(norm > 10.0 * previous);
    previous = norm;
  }
}

}  // namespace
}  // namespace lipsa
