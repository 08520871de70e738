#include "lipsa/experiment/inversion.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/core/parallel.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/model/initial_weights.hpp"
#include "small_inversion.hpp"

namespace lipsa {
namespace {

using Catch::Contains;
using test::run_all;
using test::small_inversion;

std::size_t column(const Table& table, const std::string& name) {
  const auto at = std::find(table.columns.begin(), table.columns.end(), name);
  CAPTURE(name);
  REQUIRE(at != table.columns.end());
  return static_cast<std::size_t>(at - table.columns.begin());
}

TEST_CASE("Inversion: contractive attention comes back, within the error it proves",
          "[experiment]") {
  const auto divisor = GENERATE("kim2021", "sharp", "two");
  CAPTURE(divisor);
  InversionSettings settings = small_inversion();
  settings.attention = {AttentionKind::l2};
  settings.divisor = divisor;
  settings.log_det = true;
  const Inversion inversion(settings);
  REQUIRE(inversion.size() == 4);
  for (const InversionRow& row : run_all(inversion)) {
    CAPTURE(row.contraction, row.range);
    CHECK(row.status == "converged");
    CHECK(row.contraction_upper_bound == row.contraction);
    CHECK(row.gain < row.contraction);
    REQUIRE(row.errors.size() == 26);
    CHECK(row.errors.front() > 1e-4);
    CHECK(row.errors.back() < 1e-14);
    CHECK(row.error_upper_bound >= 0.0);
    CHECK(row.error_upper_bound < 1e-10);
    CHECK(row.rate < row.contraction);
    CHECK(row.log_det.status == LogDetStatus::converged);
  }
}

TEST_CASE("Inversion: undivided, each error is that of a loop by hand", "[experiment]") {
  InversionSettings settings = small_inversion();
  settings.iterations = 4;
  const Inversion inversion(settings);
  const auto rows = run_all(inversion);
  REQUIRE(rows.size() == 8);
  CHECK(rows[0].attention == AttentionKind::l2);
  CHECK(rows[4].attention == AttentionKind::dot);
  CHECK(rows[1].range == 10.0);
  CHECK(rows[2].contraction == 0.9);
  for (const InversionRow& row : rows) {
    CAPTURE(to_string(row.attention), row.contraction, row.range);
    CHECK(row.gain == row.contraction);
    CHECK(std::isnan(row.error_upper_bound));
    const MultiHead layer = initial_layer(parse_initialiser("glorot"), row.attention, 4, 2, 0);
    std::vector<double> errors(5, 0.0);
    for (std::uint64_t b = 0; b < 3; ++b) {
      Rng rng(0, 0x696e707574730000U, b);
      Matrix x = row.range * uniform_matrix(rng, 6, 4, -1.0, 1.0);
      x.row(0).setZero();
      const Matrix y = x + row.contraction * attend(layer, x);
      Matrix back = y;
      for (double& error : errors) {
        error = std::fmax(error, (back - x).cwiseAbs().maxCoeff());
        back = y - row.contraction * attend(layer, back);
      }
    }
    for (std::size_t k = 0; k < 5; ++k) {
      CHECK(row.errors[k] == Approx(errors[k]).epsilon(1e-12).margin(1e-15));
    }
  }
}

TEST_CASE("Inversion: says which maps do not come back, and how", "[experiment]") {
  InversionSettings settings = small_inversion();
  settings.attention = {AttentionKind::dot};
  settings.contractions = {0.9};
  settings.dim = 1;
  settings.heads = 1;
  settings.batch = 20;
  settings.iterations = 200;
  const auto status = [&](std::uint64_t seed, double range) {
    settings.seed = seed;
    settings.ranges = {range};
    return Inversion(settings).run(0);
  };
  CHECK(status(0, 3.0).status == "converged");
  const InversionRow grown = status(1, 3.0);
  CHECK(grown.status == "not contractive");
  CHECK(grown.rate > 1.1);
  CHECK(grown.errors.back() > 1e3);
  CHECK(status(5, 30.0).status == "another solution");
  settings.iterations = 10;
  settings.tolerance = 1e-14;
  CHECK(status(0, 3.0).status == "converging");
  settings.weights = "gaussian:1e160";
  CHECK(status(0, 3.0).status == "non-finite");
}

TEST_CASE("inversion_table: one row an iteration, every number under a word of trust",
          "[experiment]") {
  InversionSettings settings = small_inversion();
  settings.iterations = 7;
  const Inversion inversion(settings);
  const auto rows = run_all(inversion);
  const Table table = inversion_table(inversion, rows);
  REQUIRE(table.rows.size() == 8 * 8);
  const std::size_t iteration = column(table, "iteration");
  const std::size_t error = column(table, "reconstruction_error_estimate");
  CHECK(column(table, "status") == table.columns.size() - 1);
  for (const char* name : {"rate_estimate", "upper_bound_error", "upper_bound_contraction"}) {
    CHECK(std::holds_alternative<std::monostate>(table.rows[0][column(table, name)]) ==
          (std::string(name) != "rate_estimate"));
  }
  CHECK(std::get<std::int64_t>(table.rows[9][iteration]) == 1);
  CHECK(std::get<double>(table.rows[9][error]) == rows[1].errors[1]);
  const Table summary = inversion_summary(inversion, rows);
  REQUIRE(summary.rows.size() == 8);
  CHECK(std::get<double>(summary.rows[3][column(summary, "reconstruction_error_estimate_7")]) ==
        rows[3].errors[7]);
  const std::string json = inversion_json(inversion, rows);
  CHECK_THAT(json,
             Contains("\"divisor\": \"none\"") && Contains("\"reconstruction_error_estimate\""));
}

TEST_CASE("Inversion: the same rows whatever the number of threads", "[experiment]") {
  InversionSettings settings = small_inversion();
  settings.log_det = true;
  settings.anderson = 2;
  const Inversion inversion(settings);
  const auto text = [&](Index threads) {
    const ThreadLimit limit(threads);
    return inversion_json(inversion, run_all(inversion));
  };
  CHECK(text(1) == text(2));
}

TEST_CASE("Inversion: refuses what is out of range before it computes", "[experiment]") {
  const auto refused = [](const auto& change) -> std::string {
    InversionSettings settings = small_inversion();
    change(settings);
    try {
      const Inversion inversion(settings);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "accepted";
  };
  using S = InversionSettings;
  CHECK_THAT(refused([](S& s) { s.attention.clear(); }), Contains("attention must not be empty"));
  CHECK_THAT(refused([](S& s) { s.contractions = {0.5, 0.5}; }), Contains("twice"));
  CHECK_THAT(refused([](S& s) { s.contractions = {1.0}; }),  // case D3
             Contains("contraction must be between 0 and 1, got 1"));
  CHECK_THAT(refused([](S& s) { s.contractions = {-0.1}; }), Contains("between 0 and 1"));
  CHECK_THAT(refused([](S& s) { s.ranges = {0.0}; }), Contains("range must be positive"));
  CHECK_THAT(refused([](S& s) { s.tokens = 0; }), Contains("tokens must be at least 1"));
  CHECK_THAT(refused([](S& s) { s.batch = 0; }), Contains("batch must be at least 1"));
  CHECK_THAT(refused([](S& s) { s.iterations = 0; }), Contains("iterations must be at least 1"));
  CHECK_THAT(refused([](S& s) {
               s.batch = 1000000;
               s.iterations = 1000000;
             }),
             Contains("batch times iterations must be at most"));
  CHECK_THAT(refused([](S& s) { s.heads = 3; }), Contains("heads must divide dim = 4, got 3"));
  CHECK_THAT(refused([](S& s) { s.tolerance = -1.0; }), Contains("tolerance"));
  CHECK_THAT(refused([](S& s) { s.anderson = -1; }), Contains("anderson"));
  CHECK_THAT(refused([](S& s) { s.weights = "xavier"; }), Contains("weights must be identity"));
  CHECK_THAT(refused([](S& s) { s.divisor = "sharp"; }),
             Contains("it speaks of l2 attention, the layer is dot"));
  CHECK_THAT(refused([](S& s) { s.tokens = 100000000; }), Contains("GB of memory"));
}

TEST_CASE("Inversion: figure 3 of Kim et al., L2 attention inverts and dot-product does not",
          "[experiment][slow]") {
  // As the preset kim2021-fig3, with a smaller batch. The paper says no more than the verdicts.
  InversionSettings settings;
  settings.ranges = {1.0, 3.0, 10.0};
  settings.batch = 6;
  settings.seed = 2;
  const Inversion inversion(settings);
  for (const InversionRow& row : run_all(inversion)) {
    CAPTURE(to_string(row.attention), row.contraction, row.range, row.status, row.errors);
    if (row.attention == AttentionKind::l2) {
      CHECK(row.status == "converged");
      CHECK(row.errors[5] < 5e-4);
      CHECK(row.errors[25] < 1e-14);
    } else if (row.range == 1.0 && row.contraction < 0.9) {
      CHECK(row.status == "converging");
      CHECK(row.errors[25] < 1e-3);
    } else {
      CHECK((row.status == "not contractive" || row.status == "not converging"));
      CHECK(row.errors[25] > 0.05);
    }
  }
}

}  // namespace
}  // namespace lipsa
