#include "lipsa/experiment/sweep.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "files.hpp"
#include "lipsa/core/npy.hpp"
#include "lipsa/core/npz.hpp"
#include "lipsa/core/parallel.hpp"
#include "random_problems.hpp"
#include "small_sweep.hpp"

namespace lipsa {
namespace {

using test::run_all;
using test::small;

TEST_CASE("Sweep: the grid is every combination, the last list fastest", "[experiment]") {
  SweepSettings s = small();
  s.attention = {AttentionKind::dot, AttentionKind::l2};
  s.norms = {Norm::two, Norm::inf};
  s.radii = {1.0, 2.0};
  const Sweep sweep(s);
  CHECK(sweep.size() == 16);
  CHECK(sweep.configuration(1).radius == 2.0);
  CHECK(sweep.configuration(2).n == 5);
  CHECK(sweep.configuration(4).norm == Norm::inf);
  CHECK(sweep.configuration(8).attention == AttentionKind::l2);
}

TEST_CASE("Sweep: lower bounds below upper bounds, and both tight for odd n", "[experiment]") {
  const Sweep sweep(small());
  for (const SweepRow& row : run_all(sweep)) {
    CHECK(row.settled());
    CHECK(row.lower_bounds.size() == 4);  // two restarts, two analytic starts
    CHECK(row.tightness() >= 1.0);
    CHECK(row.tightness() <= 1.0 + 1e-9);
    CHECK(row.lower_bound_witness > 0.0);
  }
}

TEST_CASE("Sweep: a row does not depend on the rest of the grid nor on threads", "[experiment]") {
  SweepSettings both = small();
  SweepSettings one = small();
  one.tokens = {5};
  const ThreadLimit limit(1);
  const SweepRow alone = Sweep(one).run(0);
  const auto rows = run_all(Sweep(both));
  CHECK(alone.lower_bounds == rows[1].lower_bounds);
  CHECK(alone.lower_bound_median == rows[1].lower_bound_median);
}

TEST_CASE("Sweep: refuses what is out of range or contradicts itself, by name", "[experiment]") {
  SweepSettings s = small();
  SECTION("empty list") {
    s.tokens.clear();
    CHECK_THROWS_WITH(Sweep(s), "sweep: tokens must not be empty");
  }
  SECTION("twice") {
    s.tokens = {3, 3};
    CHECK_THROWS_WITH(Sweep(s), "sweep: tokens must not name a value twice");
  }
  SECTION("zero tokens") {
    s.tokens = {0};
    CHECK_THROWS_WITH(Sweep(s), "sweep: tokens must be at least 1, got 0");
  }
  SECTION("heads") {
    s.heads = {2};
    CHECK_THROWS_WITH(Sweep(s), "sweep: heads must divide dim = 1, got 2");
  }
  SECTION("radius") {
    s.radii = {-1.0};
    CHECK_THROWS_WITH(Sweep(s), "sweep: radius must be positive, got -1");
  }
  SECTION("weights") {
    s.weights = "gaussian:0";
    CHECK_THROWS_WITH(Sweep(s), Catch::StartsWith("weights must be identity"));
    s.weights = "nowhere.npz";
    CHECK_THROWS_AS(Sweep(s), std::runtime_error);
  }
  SECTION("input and tokens") {
    s.input = "X.npy";
    CHECK_THROWS_WITH(Sweep(s), "sweep: tokens must not be given with input, which has its own");
  }
}

TEST_CASE("Sweep: at tokens of a file gives the norm there, between its bounds", "[experiment]") {
  const TemporaryFolder folder;
  Rng rng(81);
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, {4, 3, 2, 2, 2, 3}, false);
  const Matrix x = normal_matrix(rng, 4, 3);
  write_npz(folder / "layer.npz", {{"W_Q", to_array(layer.W_Q)},
                                   {"W_V", to_array(layer.W_V)},
                                   {"W_O", to_array(layer.W_O)},
                                   {"heads", to_array(2.0)},
                                   {"X", to_array(x)}});
  SweepSettings s;
  s.norms = {Norm::one, Norm::two, Norm::inf};
  s.weights = (folder / "layer.npz").string();
  s.input = folder / "layer.npz";
  const Sweep sweep(s);
  CHECK(sweep.size() == 3);
  for (const SweepRow& row : run_all(sweep)) {
    CAPTURE(to_string(row.norm));
    CHECK(row.n == 4);
    CHECK(row.D == 3);
    CHECK(row.d == 2);
    CHECK(row.settled());
    CHECK(row.residual <= 1e-11);
    REQUIRE(row.lower_bounds.size() == 1);
    CHECK(row.lower_bounds[0] <= row.local_norm * (1.0 + 1e-12));
    CHECK(row.lower_bounds[0] >= row.local_norm * (1.0 - 1e-9));
    if (row.norm != Norm::one) {
      CHECK(row.tightness() >= 1.0);
    }
  }
  SweepSettings narrow = s;
  write_npy(folder / "narrow.npy", to_array(Matrix(x.leftCols(2))));
  narrow.input = folder / "narrow.npy";
  CHECK_THROWS_WITH(Sweep(narrow),
                    Catch::Contains("expected tokens of 3 features as the layer has, found 2"));
}

TEST_CASE("fit_growth: finds the power in made-up rows", "[experiment]") {
  std::vector<SweepRow> rows;
  for (const double radius : {1.0, 10.0, 100.0, 1000.0, 10000.0}) {
    SweepRow row{.attention = AttentionKind::dot, .n = 3, .D = 1, .H = 1, .d = 1, .radius = radius};
    row.lower_bounds = {5.0 * std::pow(radius, 1.7)};
    row.lower_bound_witness = 2.0 * radius;
    rows.push_back(row);
  }
  const auto fits = fit_growth(rows);
  REQUIRE(fits.size() == 1);
  CHECK(fits[0].slope == Approx(1.7).epsilon(1e-12));
  CHECK(fits[0].slope_witness == Approx(1.0).epsilon(1e-12));
  CHECK(fits[0].radius_from == 100.0);
  rows.resize(2);
  CHECK(fit_growth(rows).empty());
}

TEST_CASE("dot-growth: the slope over the radius is 2", "[experiment]") {
  SweepSettings s;
  s.attention = {AttentionKind::dot};
  s.tokens = {3, 16};
  s.radii = {1.0, 10.0, 31.6, 100.0, 316.0, 1000.0};
  s.restarts = 2;
  const Sweep sweep(s);
  const auto fits = fit_growth(run_all(sweep));
  REQUIRE(fits.size() == 2);
  for (const GrowthFit& fit : fits) {
    CHECK(fit.slope == Approx(2.0).margin(0.05));
    CHECK(fit.slope_witness == Approx(2.0).margin(0.05));
  }
}

}  // namespace
}  // namespace lipsa
