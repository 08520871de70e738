#include "lipsa/experiment/bound_table.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "random_problems.hpp"

namespace lipsa {
namespace {

double number(const Cell& cell) {
  return std::get<double>(cell);
}

TEST_CASE("answer: what holds comes first, by value, none below the norm at x", "[experiment]") {
  const auto kind = GENERATE(from_range(test::kinds));
  CAPTURE(to_string(kind));
  Rng rng(21);
  BoundQuestion question{.layer = test::random_layer(rng, kind, {4, 3, 2, 2, 2, 3}, false)};
  question.x = normal_matrix(rng, 4, 3);
  const BoundAnswer found = answer(question);
  CHECK(found.status == "converged");
  CHECK(found.local_norm > 0.0);
  CHECK(found.radius >= question.x->rowwise().norm().maxCoeff());
  bool holding = true;
  double previous = -std::numeric_limits<double>::infinity();
  for (const Bound& bound : found.bounds) {
    CAPTURE(bound.name, bound.reason);
    CHECK((holding || !bound.holds));
    if (bound.holds) {
      CHECK(bound.log10_value >= previous);
      CHECK(bound.value >= found.lower_bound);
      CHECK(bound.reason.empty());
      previous = bound.log10_value;
    } else {
      CHECK_FALSE(bound.reason.empty());
    }
    holding = bound.holds;
  }
  const Table table = bound_table(found);
  const auto proof = std::find(table.columns.begin(), table.columns.end(), "proof");
  REQUIRE(proof != table.columns.end());
  REQUIRE(table.rows.size() == found.bounds.size());
  for (std::size_t k = 0; k < table.rows.size(); ++k) {
    const auto& row = table.rows[k];
    REQUIRE(row.size() == table.columns.size());
    CHECK(std::get<std::string>(row[static_cast<std::size_t>(proof - table.columns.begin())]) ==
          found.bounds[k].proof);
  }
}

TEST_CASE("answer: without x the ascent's lower bound stands below, on the ball asked for",
          "[experiment]") {
  const BoundAnswer found = answer({.layer = test::unit_layer(AttentionKind::dot),
                                    .tokens = 3,
                                    .radius = 2.0,
                                    .restarts = 3,
                                    .certify = true});
  CHECK(found.lower_bound > 1.0);
  REQUIRE(found.bounds.front().holds);
  CHECK(found.bounds.front().value >= found.lower_bound);
  const BoundAnswer none =
      answer({.layer = test::unit_layer(AttentionKind::l2), .tokens = 3, .restarts = 0});
  CHECK(none.status == "not measured");
  CHECK(none.lower_bound == 0.0);
}

TEST_CASE("answer: certified values are at or below the doubles and next to them", "[experiment]") {
  const BoundAnswer found = answer({.layer = test::unit_layer(AttentionKind::l2),
                                    .norm = Norm::inf,
                                    .tokens = 100,
                                    .restarts = 0,
                                    .certify = true});
  int certified = 0;
  for (std::size_t k = 0; k < found.bounds.size(); ++k) {
    if (!std::isnan(found.certified[k])) {
      ++certified;
      CHECK(found.certified[k] <= found.bounds[k].value * (1.0 + 1e-15));
      CHECK(found.certified[k] >= found.bounds[k].value * (1.0 - 1e-9));
    }
  }
  CHECK(certified >= 2);
}

TEST_CASE("answer: what is refuted is not certified", "[experiment]") {
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  layer.W_Q(0, 0) = 5.0;
  const BoundAnswer found = answer({.layer = layer, .tokens = 2, .restarts = 0, .certify = true});
  for (std::size_t k = 0; k < found.bounds.size(); ++k) {
    CHECK((found.bounds[k].holds || std::isnan(found.certified[k])));
  }
}

TEST_CASE("answer: around x, pairs and the ball are bounded", "[experiment]") {
  Rng rng(22);
  BoundQuestion question{
      .layer = test::random_layer(rng, AttentionKind::dot, {4, 3, 2, 2, 2, 3}, false),
      .around = 0.5};
  question.x = normal_matrix(rng, 4, 3);
  const BoundAnswer found = answer(question);
  CHECK(found.radius >= question.x->rowwise().norm().maxCoeff() + 0.5);
  int hold = 0;
  for (const Bound& bound : found.bounds) {
    hold += bound.holds ? 1 : 0;
    CHECK((!bound.holds || bound.domain != Domain::point));
  }
  CHECK(hold >= 6);
}

TEST_CASE("block_table: a block of LayerNorm, attention and residual, by hand", "[experiment]") {
  const MultiHead layer = test::unit_layer(AttentionKind::l2);  // any ball: |J|_2 <= 2.30…
  const BoundQuestion question{.layer = layer, .tokens = 2};
  const Normalisation norm{.width = 1, .epsilon = 0.25, .gamma_max = 3.0};
  const double attention = number(block_table(question, BlockKind::residual, norm).rows[0][2]);
  CHECK(attention == Approx(2.303).margin(5e-4));

  const Table pre = block_table(question, BlockKind::pre_norm, norm);
  REQUIRE(pre.rows.size() == 4);
  CHECK(std::get<std::string>(pre.rows[0][0]) == "LayerNorm");
  CHECK(number(pre.rows[0][2]) == Approx(6.0));
  CHECK(number(pre.rows[3][2]) == Approx(1.0 + 6.0 * attention).epsilon(1e-12));

  const Table post = block_table(question, BlockKind::post_norm, norm);
  CHECK(number(post.rows.back()[2]) == Approx((1.0 + attention) * 6.0).epsilon(1e-12));
  const Table residual = block_table(question, BlockKind::residual, norm);
  CHECK(number(residual.rows.back()[2]) == Approx(1.0 + attention).epsilon(1e-12));
}

TEST_CASE("block_table: dot-product has a bound behind a normalisation, and none without a ball",
          "[experiment]") {
  const BoundQuestion question{.layer = test::unit_layer(AttentionKind::dot), .tokens = 4};
  const Normalisation norm{.width = 1};
  const Table pre = block_table(question, BlockKind::pre_norm, norm);
  CHECK(std::get<std::string>(pre.rows.back()[4]) == "holds");
  const Table bare = block_table(question, BlockKind::residual, norm);
  CHECK(std::holds_alternative<std::monostate>(bare.rows.back()[2]));
  CHECK_THAT(std::get<std::string>(bare.rows.back()[4]),
             Catch::Contains("no finite constant exists"));
  CHECK_THROWS_AS(block_table(question, BlockKind::pre_norm, {.width = 3}), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
