#include "lipsa/search/ascent.hpp"

#include <Eigen/SVD>
#include <catch2/catch.hpp>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/core/parallel.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::kinds;
using test::random_layer;
using test::Shape;
using test::unit_layer;

TEST_CASE("maximise_local_norm: finds the exact constant of L2 attention where it is known",
          "[search]") {
  const auto [n, constant] = GENERATE(table<Index, double>({{3, 2.292244}, {5, 3.107792}}));
  const auto analytic = GENERATE(true, false);
  CAPTURE(n, analytic);
  const Ascent ascent = maximise_local_norm(unit_layer(AttentionKind::l2), Mask::none(), n,
                                            {.restarts = 20, .analytic = analytic, .seed = 1});
  CHECK(ascent.best().lower_bound == Approx(constant).epsilon(1e-6));
  CHECK(ascent.best().termination == AscentTermination::converged);
}

TEST_CASE("maximise_local_norm: reaches the reference of the paper's figure 2", "[search]") {
  const auto [n, found, sharp] =
      GENERATE(table<Index, double, double>({{100, 10.077, 10.094831642015984},
                                             {300, 13.304, 13.3065 + 5e-5},
                                             {1000, 17.065, 17.065500077261127}}));
  CAPTURE(n);
  const Ascent ascent =
      maximise_local_norm(unit_layer(AttentionKind::l2), Mask::none(), n, {.restarts = 2});
  CHECK(ascent.best().lower_bound >= found);
  CHECK(ascent.best().lower_bound <= sharp);
}

TEST_CASE("maximise_local_norm: for p = 2 climbs above the analytic 2c + 1/(1+c)", "[search]") {
  const double c = 2.8861;  // W(128/e), to the digits that matter here
  const Ascent ascent = maximise_local_norm(unit_layer(AttentionKind::l2), Mask::none(), 129,
                                            {.norm = Norm::two, .restarts = 1, .steps = 30});
  CHECK(ascent.witness.lower_bound >= 5.90);
  CHECK(ascent.best().lower_bound >= ascent.witness.lower_bound);
  CHECK(ascent.witness.lower_bound >= 2.0 * c - 0.2);
}

TEST_CASE("maximise_local_norm: a lower bound is the norm at the tokens returned, and no more",
          "[search]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto p = GENERATE(Norm::one, Norm::two, Norm::inf);
  const auto causal = GENERATE(false, true);
  CAPTURE(to_string(kind), to_string(p), causal);
  Rng rng(51);
  const Shape shape{5, 3, 2, 2, 2, 3};
  const MultiHead layer = random_layer(rng, kind, shape);
  const Mask mask = causal ? Mask::causal() : Mask::none();
  const Ascent ascent =
      maximise_local_norm(layer, mask, 5, {.norm = p, .restarts = 3, .steps = 40, .radius = 2.0});
  double median_above = 0.0;
  for (const LocalMaximum& found : ascent.maxima) {
    CAPTURE(found.source);
    const Matrix j = Jacobian(layer, found.x, mask).dense();
    const double norm = p == Norm::one   ? j.cwiseAbs().colwise().sum().maxCoeff()
                        : p == Norm::inf ? j.cwiseAbs().rowwise().sum().maxCoeff()
                                         : Eigen::JacobiSVD<Matrix>(j).singularValues()(0);
    CHECK(found.lower_bound <= norm * (1.0 + 1e-12));
    CHECK(found.lower_bound >= found.estimate * (1.0 - 1e-9));
    CHECK(found.x.rowwise().norm().maxCoeff() <= 2.0);
    median_above += found.lower_bound >= ascent.median ? 1.0 : 0.0;
  }
  CHECK(median_above >= 0.5 * static_cast<double>(ascent.maxima.size()));
  CHECK(std::is_sorted(ascent.maxima.begin(), ascent.maxima.end(),
                       [](const auto& a, const auto& b) { return a.lower_bound > b.lower_bound; }));
}

TEST_CASE("maximise_local_norm: climbs, for every kind and norm", "[search]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto p = GENERATE(Norm::one, Norm::two, Norm::inf);
  CAPTURE(to_string(kind), to_string(p));
  Rng rng(52);
  const MultiHead layer = random_layer(rng, kind, {4, 2, 1, 2, 2, 2});
  const auto best = [&](Index steps) {
    return maximise_local_norm(
               layer, Mask::none(), 4,
               {.norm = p, .restarts = 4, .steps = steps, .analytic = false, .radius = 2.0})
        .best()
        .lower_bound;
  };
  CHECK(best(60) > 1.02 * best(1));
}

TEST_CASE("maximise_local_norm: the same for any number of threads, other restarts alike",
          "[search]") {
  const MultiHead layer = unit_layer(AttentionKind::l2);
  const auto run = [&](Index threads, Index restarts) {
    const ThreadLimit limit(threads);
    return maximise_local_norm(layer, Mask::none(), 20,
                               {.restarts = restarts, .steps = 50, .seed = 7, .configuration = 3});
  };
  const Ascent one = run(1, 6);
  const Ascent two = run(2, 6);
  REQUIRE(one.maxima.size() == two.maxima.size());
  for (std::size_t k = 0; k < one.maxima.size(); ++k) {
    CHECK(one.maxima[k].lower_bound == two.maxima[k].lower_bound);
    CHECK(one.maxima[k].source == two.maxima[k].source);
    CHECK(one.maxima[k].x == two.maxima[k].x);
  }
  const Ascent more = run(2, 9);
  for (const LocalMaximum& found : one.maxima) {
    CHECK(std::any_of(more.maxima.begin(), more.maxima.end(), [&](const LocalMaximum& other) {
      return other.source == found.source && other.lower_bound == found.lower_bound;
    }));
  }
}

TEST_CASE("maximise_local_norm: an option out of range names itself", "[search]") {
  const MultiHead layer = unit_layer(AttentionKind::l2);
  const auto run = [&](const AscentOptions& options, Index n = 3) {
    return maximise_local_norm(layer, Mask::none(), n, options).median;
  };
  CHECK_THROWS_WITH(run({}, 0), "maximise_local_norm: n must be at least 1, got 0");
  CHECK_THROWS_WITH(
      run({.restarts = 0, .analytic = false}),
      "maximise_local_norm: restarts must be positive without analytic starts, got 0");
  CHECK_THROWS_WITH(run({.learning_rate = -1.0}),
                    "maximise_local_norm: learning_rate must be positive, got -1");
  CHECK_THROWS_WITH(run({.radius = 0.0}), "maximise_local_norm: radius must be positive, got 0");
}

TEST_CASE("maximise_local_norm: scaling the values, or what comes of them, scales what is found",
          "[search]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto p = GENERATE(Norm::one, Norm::two, Norm::inf);
  const auto scale = GENERATE(0x1p-560, 0x1p-40, 0x1p560);
  CAPTURE(to_string(kind), to_string(p), scale);
  Rng rng(53);
  MultiHead layer = random_layer(rng, kind, {3, 2, 1, 2, 2, 2}, false);
  const auto best = [&] {
    return maximise_local_norm(layer, Mask::none(), 3,
                               {.norm = p, .restarts = 2, .steps = 60, .radius = 2.0})
        .best();
  };
  const LocalMaximum plain = best();
  (kind == AttentionKind::cosine ? layer.W_O : layer.W_V) *= scale;  // v̂ has no scale
  const LocalMaximum scaled = best();
  CHECK(scaled.lower_bound / scale == Approx(plain.lower_bound).epsilon(1e-4));
}

TEST_CASE("maximise_local_norm: an overflow ends a start, not the search", "[search]") {
  const Ascent ascent = maximise_local_norm(unit_layer(AttentionKind::dot), Mask::none(), 3,
                                            {.restarts = 2, .steps = 5, .radius = 1e200});
  CHECK(ascent.maxima.back().termination == AscentTermination::non_finite);
  CHECK(ascent.maxima.back().lower_bound == 0.0);
}

TEST_CASE("maximise_local_norm: causal dot-product attention finds no less for more tokens",
          "[search]") {
  double previous = 0.0;
  for (const Index n : {2, 3, 4}) {
    const double found = maximise_local_norm(unit_layer(AttentionKind::dot), Mask::causal(), n,
                                             {.restarts = 20, .radius = 0.3})
                             .best()
                             .lower_bound;
    CHECK(found >= previous * (1.0 - 1e-6));
    previous = found;
  }
}

TEST_CASE("maximise_local_norm: zero weights and one token are no special case", "[search]") {
  for (const AttentionKind kind : kinds) {
    CAPTURE(to_string(kind));
    MultiHead layer = unit_layer(kind);
    const double alone =
        maximise_local_norm(layer, Mask::none(), 1, {.restarts = 2, .steps = 5}).best().lower_bound;
    if (kind == AttentionKind::cosine) {
      CHECK(alone <= 1.0 / std::sqrt(layer.epsilon));
    } else if (kind == AttentionKind::sigmoid) {  // sup of σ(x²) + 2 x² σ'(x²)
      CHECK(alone <= 1.302);
    } else {
      CHECK(alone == Approx(1.0).epsilon(1e-12));
    }
    CHECK(alone > 0.0);
    layer.W_V.setZero();
    const Ascent zero = maximise_local_norm(layer, Mask::none(), 4, {.restarts = 2, .steps = 5});
    CHECK(zero.best().lower_bound == 0.0);
    CHECK(zero.best().estimate == 0.0);
    for (const Norm p : {Norm::one, Norm::two}) {
      const AscentOptions options{.norm = p, .restarts = 2, .steps = 5, .radius = 1.0};
      CHECK(maximise_local_norm(layer, Mask::none(), 4, options).best().lower_bound == 0.0);
    }
  }
}

}  // namespace
}  // namespace lipsa
