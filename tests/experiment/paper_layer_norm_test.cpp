#include "experiment/paper_layer_norm.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "dense_norms.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

TEST_CASE("layer_norm_jacobian: the formula, for any gamma", "[experiment]") {
  Rng rng(5);
  const Index D = 6;
  LayerNorm norm{.epsilon = 0.3};
  norm.gamma = normal_matrix(rng, D, 1);
  const Matrix x = normal_matrix(rng, 1, D);
  const double mean = x.mean();
  const double r = std::sqrt((x.array() - mean).square().mean() + norm.epsilon);
  const Vector unit = (x.array() - mean).matrix().transpose() / r;
  const Matrix j =
      norm.gamma.asDiagonal() *
      (Matrix::Identity(D, D) - Matrix::Constant(D, D, 1.0 / 6.0) - unit * unit.transpose() / 6.0) /
      r;
  CHECK((layer_norm_jacobian(norm, x) - j).norm() <= 1e-14 * j.norm());
}

TEST_CASE("measure_layer_norm: closed forms at a constant row, never above the bounds",
          "[experiment]") {
  const auto D = GENERATE(Index{2}, Index{3}, Index{4}, Index{16}, Index{64});
  const auto epsilon = GENERATE(1e-5, 1e-2, 4.0);
  const auto random = GENERATE(false, true);
  CAPTURE(D, epsilon, random);
  const LayerNormRow row = measure_layer_norm(D, epsilon, random, 3);
  CHECK(row.status == "converged");
  CHECK(row.norm_2 <= row.upper_bound_2 * (1.0 + 1e-10));
  CHECK(row.norm_inf <= row.upper_bound_inf * (1.0 + 1e-10));
  CHECK(row.norm_inf <= row.upper_bound_inf_paper * (1.0 + 1e-10));
  const double unit = row.gamma_max / std::sqrt(epsilon);
  const auto d = static_cast<double>(D);
  // diag(gamma) (I - 1 1^T/D)/sqrt(eps): the row of the largest gamma sums to 2 (D-1)/D.
  CHECK(row.norm_inf >= unit * 2.0 * (d - 1.0) / d * (1.0 - 1e-12));
  if (!random) {
    CHECK(row.norm_2 == Approx(unit).epsilon(1e-9));
  }
  CHECK(row.upper_bound_2 == Approx(unit).epsilon(1e-12));
  CHECK(row.upper_bound_inf_paper == Approx(unit * (d * d - 2.0) / d).epsilon(1e-12));
}

TEST_CASE("layer_norm_paper_inf: at D = 2 it is attained, and ours is not", "[experiment]") {
  const LayerNormRow row = measure_layer_norm(2, 1e-2, false, 0);
  CHECK(row.norm_inf == Approx(10.0).epsilon(1e-12));
  CHECK(row.upper_bound_inf_paper == Approx(10.0).epsilon(1e-12));
  CHECK(row.upper_bound_inf > 1.3 * row.norm_inf);
}

TEST_CASE("layer_norm: the verdict and the agreement turn with the numbers", "[experiment]") {
  LayerNormRow row{.D = 4,
                   .gamma = "ones",
                   .norm_2 = 2.0,
                   .norm_inf = 3.0,
                   .upper_bound_2 = 2.0,
                   .upper_bound_inf = 4.0,
                   .upper_bound_inf_paper = 8.0,
                   .status = "converged"};
  const std::vector<PaperFact> facts{{"LayerNorm appendix", "Lip_inf <=", "formula", "low", ""}};
  CHECK_THAT(layer_norm_verdict({row}), Contains("our bounds are not violated in any of 1 cases") &&
                                            Contains("ours is 2 to 2 times smaller"));
  CHECK_THAT(layer_norm_agreements(facts, {row}).at(0).agreement,
             Contains("not violated here; ours is 2"));
  row.upper_bound_inf_paper = 3.5;
  CHECK_THAT(layer_norm_verdict({row}), Contains("up to 1.14 times larger at D = 4"));
  row.upper_bound_inf_paper = 2.9;
  CHECK_THAT(layer_norm_verdict({row}), Contains("does not hold: measured above it at D = 4"));
  CHECK_THAT(layer_norm_agreements(facts, {row}).at(0).agreement, Contains("does not hold"));
  row.upper_bound_inf = 2.97;  // one per cent below
  CHECK_THAT(layer_norm_verdict({row}), Contains("Our bounds do not hold") && Contains("D = 4"));
  CHECK_FALSE(layer_norm_verdict({}).empty());
}

TEST_CASE("layer_norm_section: a table, a labelled figure, nothing that is no number",
          "[experiment]") {
  const ReportSection section = layer_norm_section({}, {2, 4, 8});
  REQUIRE(section.tables.size() == 1);
  CHECK(section.tables[0].table.rows.size() == 12);
  CHECK_THAT(format_table(section.tables[0].table, TableFormat::csv), !Contains("nan"));
  REQUIRE(section.figures.size() == 1);
  CHECK_THAT(section.figures[0].script, Contains("set xlabel \"features D\"") &&
                                            Contains("set ylabel \"norm") &&
                                            Contains("layer-norm.svg") && !Contains("nan"));
  CHECK(section.command == "lipsa paper-tables --only layer-norm --quick --seed 0");
  CHECK_THAT(section.verdict, Contains("our bounds are not violated"));
}

}  // namespace
}  // namespace lipsa
