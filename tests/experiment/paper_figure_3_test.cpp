#include "experiment/paper_figure_3.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "files.hpp"
#include "lipsa/core/npz.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

Figure3Sizes small_sizes() {
  return {.tokens = 12,
          .dim = 16,
          .heads = 4,
          .batch = 2,
          .ranges = {1.0, 10.0},
          .grid = {4, 8},
          .grid_batch = 1,
          .draws = 2};
}

Figure3Row row_of(AttentionKind kind, double range, const std::string& status) {
  return {.n = 4,
          .batch = 1,
          .found = {.attention = kind,
                    .contraction = 0.5,
                    .range = range,
                    .errors = {1.0, 0.1},
                    .error_upper_bound = 1e-14,
                    .status = status}};
}

Figure3Result result_of(const std::string& l2, const std::string& dot_near,
                        const std::string& dot_far) {
  return {.undivided = {row_of(AttentionKind::l2, 1.0, l2),
                        row_of(AttentionKind::dot, 1.0, dot_near),
                        row_of(AttentionKind::dot, 10.0, dot_far)}};
}

const PaperFact l2_fact{"Figure 3", "outcome for L2 attention", "inverts", "sure", ""};
const PaperFact dot_fact{"Figure 3", "outcome for dot-product attention", "does not invert", "sure",
                         ""};

TEST_CASE("figure 3: L2 attention inverts, dot-product does not, and divided errors are proved",
          "[experiment]") {
  const Figure3Result result = compute_figure_3(small_sizes(), 2);
  REQUIRE(result.undivided.size() == 24);
  CHECK(result.undivided[0].seed == 2);
  CHECK(result.undivided[12].seed == 3);
  CHECK(result.undivided[12].found.errors != result.undivided[0].found.errors);
  REQUIRE(result.grid.size() == 16);
  REQUIRE(result.divided.size() == 6);
  for (const Figure3Row& row : result.undivided) {
    CAPTURE(row.found.contraction, row.found.range, row.found.status);
    if (row.found.attention == AttentionKind::l2) {
      CHECK(inverts(row));
    } else if (row.found.range == 10.0) {
      CHECK_FALSE(inverts(row));
      CHECK(row.found.errors.back() > 0.1);
    }
  }
  for (const Figure3Row& row : result.divided) {
    CHECK(inverts(row));
    CHECK(row.found.error_upper_bound < 1e-12);
    // At the input itself y is rounded: an ulp of |y| beside the proved distance.
    CHECK(row.found.errors.back() <= row.found.error_upper_bound / (1.0 - 0.9) + 1e-14);
  }
}

TEST_CASE("figure 3: layers of files are inverted as dot-product attention", "[experiment]") {
  const TemporaryFolder folder;
  Npz arrays{{"heads", to_array(2.0)}};
  for (const char* name : {"W_Q", "W_K", "W_V", "W_O"}) {
    arrays.emplace(name, to_array(Matrix(Matrix::Zero(6, 6))));
  }
  write_npz(folder / "none.npz", arrays);
  Figure3Sizes sizes = small_sizes();
  sizes.draws = 1;
  sizes.contractions = {0.5};
  sizes.grid = {4};
  const Figure3Result result = compute_figure_3(sizes, 0, {folder / "none.npz"});
  REQUIRE(result.trained.size() == 2);  // a row a range
  for (const Figure3Row& row : result.trained) {
    CHECK(row.weights == "none.npz");
    CHECK(row.found.D == 6);
    CHECK(row.found.status == "converged");
    CHECK(row.found.errors.back() == 0.0);  // F = 0
  }
  CHECK_THAT(figure_3_verdict(result),
             Contains("With weights of files dot-product attention inverts in 2 of 2"));
}

TEST_CASE("figure 3: at its sizes and draws", "[experiment]") {
  const Figure3Sizes full = figure_3_sizes(true);
  CHECK(full.tokens == 64);
  CHECK(full.dim == 64);
  CHECK(full.heads == 8);
  CHECK(full.batch == 128);
  CHECK(full.iterations == 25);
  CHECK(full.contractions == std::vector<double>{0.5, 0.7, 0.9});
  CHECK(full.ranges == std::vector<double>{1.0, 3.0, 10.0});
  CHECK(figure_3_sizes(false).batch == 8);
  CHECK(figure_3_sizes(false).draws == 3);
}

TEST_CASE("figure_3_verdict: follows the numbers, whichever way they fall", "[experiment]") {
  const auto verdict = [](const std::string& l2, const std::string& near, const std::string& far) {
    return figure_3_verdict(result_of(l2, near, far));
  };
  const std::string as_printed = verdict("converged", "not contractive", "non-finite");
  CHECK_THAT(as_printed, Contains("As in the paper, L2 attention inverts"));
  CHECK_THAT(as_printed, Contains("As in the paper, dot-product attention does not"));
  CHECK_THAT(as_printed, !Contains("gainst"));
  CHECK_THAT(verdict("converged", "converging", "not converging"),
             Contains("does not in 1 of 2") && Contains("it does at c = 0.5, r = 1"));
  CHECK_THAT(verdict("converged", "converged", "converging"),
             Contains("Against the paper, dot-product attention inverts too"));
  CHECK_THAT(verdict("another solution", "not converging", "not converging"),
             Contains("Against the paper, L2 attention does not invert at c = 0.5, r = 1"));

  Figure3Result divided = result_of("converged", "converged", "converged");
  divided.divided = {row_of(AttentionKind::l2, 1.0, "converged")};
  CHECK_THAT(figure_3_verdict(divided), Contains("within 1e-14 of the solution, proved"));
  divided.divided.front().found.error_upper_bound = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(figure_3_verdict(divided), Contains("not all of them proved"));
}

TEST_CASE("figure_3_verdict: draws of weights that differ are counted", "[experiment]") {
  Figure3Result result = result_of("converged", "converging", "not converging");
  result.undivided.push_back(row_of(AttentionKind::dot, 1.0, "not converging"));
  result.undivided.push_back(row_of(AttentionKind::dot, 10.0, "not converging"));
  CHECK_THAT(
      figure_3_verdict(result),
      Contains("does not in 3 of 4") &&
          Contains(
              "it does at c = 0.5, r = 1 (1 of 2), with errors of 0.10001 at most at the end."));
}

TEST_CASE("figure_3_agreements: a row for each fact with a verdict, computed", "[experiment]") {
  const std::vector<PaperFact> facts{
      {"Figure 3", "N and D and H and batch", "64 and 64 and 8 and 128", "recalled", ""},
      {"Figure 3", "c", "0.5; 0.7; 0.9", "recalled", ""},
      l2_fact,
      dot_fact};
  const auto rows = figure_3_agreements(facts, figure_3_sizes(true),
                                        result_of("converged", "converging", "not converging"));
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].agreement == "same setting");
  CHECK(rows[1].agreement == "same setting");
  CHECK(rows[2].agreement == "agrees");
  CHECK(rows[3].agreement == "agrees but for c = 0.5, r = 1");
  const auto others = figure_3_agreements(facts, figure_3_sizes(false),
                                          result_of("not converging", "converged", "converged"));
  CHECK(others[0].agreement == "another setting");
  CHECK(others[2].agreement == "does not agree");
  CHECK(others[3].agreement == "does not agree");
}

TEST_CASE("figure_3_section: tables, a labelled figure and a command, the same for the same seed",
          "[experiment]") {
  Figure3Sizes sizes = small_sizes();
  sizes.contractions = {0.9};
  sizes.grid = {4};
  const PaperTableOptions options{.facts = {l2_fact, dot_fact}};
  const ReportSection section = figure_3_section(options, sizes);
  REQUIRE(section.tables.size() == 3);
  for (const ReportTable& table : section.tables) {
    CHECK_FALSE(table.table.rows.empty());
    CHECK_THAT(format_table(table.table, TableFormat::csv), !Contains("nan"));
    CHECK(table.table.columns.back() == "status");
  }
  REQUIRE(section.figures.size() == 1);
  CHECK_THAT(section.figures[0].script,
             Contains("set xlabel \"iteration k\"") && Contains("set ylabel \"largest") &&
                 Contains("figure-3.svg") && Contains("dot-product attention"));
  CHECK_THAT(section.tables[0].caption, Contains("2 inputs, where the paper takes 128"));
  CHECK(section.command == "lipsa paper-tables --only figure-3 --quick --seed 0");
  CHECK(section.agreements.size() == 2);
  const ReportSection again = figure_3_section(options, sizes);
  CHECK(again.verdict == section.verdict);
  CHECK(again.tables[0].table.rows == section.tables[0].table.rows);
  CHECK(figure_3_gnuplot({}).empty());
}

}  // namespace
}  // namespace lipsa
