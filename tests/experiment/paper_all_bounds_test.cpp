#include "experiment/paper_all_bounds.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "lipsa/bounds/catalog.hpp"
#include "lipsa/model/initial_weights.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

const AllBoundsSizes small_sizes{.tokens = 3, .dim = 4, .heads = 2, .restarts = 1};

const AllBounds& small_bounds() {
  static const AllBounds found = compute_all_bounds(small_sizes, 0);
  return found;
}

BoundsCell cell_of(double value, bool refuted) {
  BoundsCell cell;
  cell.answer.lower_bound = 2.0;
  cell.answer.bounds = {{.name = "b",
                         .value = value,
                         .log10_value = std::log10(value),
                         .holds = !refuted,
                         .refuted = refuted,
                         .reason = refuted ? std::string("refuted: by hand") : std::string()}};
  return cell;
}

TEST_CASE("all bounds: every entry of the catalogue is asked", "[experiment]") {
  std::set<std::string> asked;
  for (const BoundsCell& cell : small_bounds().cells) {
    for (const Bound& bound : cell.answer.bounds) {
      asked.insert(bound.name);
    }
  }
  for (const OtherBounds& other : small_bounds().others) {
    for (const Bound& bound : other.bounds) {
      asked.insert(bound.name);
      CHECK((bound.holds || bound.refuted));
    }
  }
  for (const CatalogEntry& entry : catalog()) {
    CAPTURE(entry.name);
    CHECK(asked.count(std::string(entry.name)) == 1);
  }
}

TEST_CASE("all bounds: none that holds is below what is measured", "[experiment]") {
  int compared = 0;
  for (const BoundsCell& cell : small_bounds().cells) {
    CAPTURE(to_string(cell.attention), to_string(cell.norm), to_string(cell.asked));
    CHECK(cell.answer.lower_bound > 0.0);
    for (const Bound& bound : cell.answer.bounds) {
      CAPTURE(bound.name);
      if (bound.holds) {
        ++compared;
        CHECK(bound.value >= cell.answer.lower_bound);
      }
    }
  }
  CHECK(compared > 60);
  CHECK_THAT(all_bounds_verdict(small_bounds().cells),
             Contains("None of those that hold is below"));
}

TEST_CASE("all bounds: lower bounds name where they are from, and X is in the ball",
          "[experiment]") {
  for (const BoundsCell& cell : small_bounds().cells) {
    CAPTURE(to_string(cell.attention), to_string(cell.norm), to_string(cell.asked));
    CHECK(cell.answer.lower_bound > 0.0);
    CHECK_FALSE(cell.answer.lower_bound_source.empty());
    if (cell.asked == Domain::point) {
      CHECK(cell.answer.lower_bound_source == "x");
    }
  }
}

TEST_CASE("all bounds: an answer is that of lipsa bounds with the same settings", "[experiment]") {
  const MultiHead layer =
      initial_layer({.kind = Initialiser::Kind::glorot}, AttentionKind::dot, 4, 2, 0);
  const BoundAnswer alone =
      answer({.layer = layer, .norm = Norm::two, .tokens = 3, .radius = 2.0, .restarts = 1});
  const auto cell = std::find_if(small_bounds().cells.begin(), small_bounds().cells.end(),
                                 [](const BoundsCell& c) {
                                   return c.attention == AttentionKind::dot &&
                                          c.norm == Norm::two && c.asked == Domain::token_ball;
                                 });
  REQUIRE(cell != small_bounds().cells.end());
  CHECK(cell->answer.lower_bound == alone.lower_bound);
  CHECK(cell->answer.bounds.front().name == alone.bounds.front().name);
  CHECK(cell->answer.bounds.front().value == alone.bounds.front().value);
}

TEST_CASE("all_bounds_verdict: says so when a bound is below what is measured", "[experiment]") {
  CHECK_THAT(all_bounds_verdict({cell_of(3.0, false)}),
             Contains("None of those that hold") && Contains("b for p = 2 (at most 1.5001 times"));
  CHECK_THAT(all_bounds_verdict({cell_of(1.98, false)}),  // one per cent too small
             Contains("Below the norm measured, though said to hold: b (l2 attention, p = 2"));
  CHECK_THAT(all_bounds_verdict({cell_of(1.0, true)}), Contains("below it here: b (all X)"));
  CHECK_THAT(all_bounds_verdict({cell_of(3.0, true)}),
             Contains("None of the refuted is below it here"));
  CHECK_THAT(all_bounds_verdict({}), Contains("Of 0 entries"));
  BoundsCell elsewhere = cell_of(3.0, true);
  CHECK_THAT(all_bounds_verdict({elsewhere}),
             Contains("1 are refuted, and the hypotheses of 0 are not met"));
  elsewhere.answer.bounds.front().reason = "is a claim about causal masks";  // what the table says
  CHECK_THAT(all_bounds_verdict({elsewhere}),
             Contains("0 are refuted, and the hypotheses of 1 are not met"));
}

TEST_CASE("all_bounds_section: tables, figures with axes, no NaN", "[experiment]") {
  const ReportSection section = all_bounds_section({}, small_sizes);
  CHECK(section.tables.size() > 10);
  std::set<std::string> names;
  for (const ReportTable& table : section.tables) {
    CAPTURE(table.name);
    CHECK(names.insert(table.name).second);
    CHECK_FALSE(table.table.rows.empty());
    CHECK(table.table.columns.back() == "status");
    CHECK_THAT(format_table(table.table, TableFormat::csv), !Contains("nan,"));
    for (const auto& row : table.table.rows) {
      CHECK(row.size() == table.table.columns.size());
    }
  }
  CHECK(section.figures.size() == 4);
  for (const ReportFigure& figure : section.figures) {
    CHECK_THAT(figure.script, Contains("set xlabel \"upper bound / lower bound\"") &&
                                  Contains("set label \"bound, norm p") &&
                                  Contains(figure.name + ".svg") && !Contains("inf \n"));
  }
  CHECK(all_bounds_gnuplot({}, AttentionKind::l2, "x").empty());
  CHECK(section.command == "lipsa paper-tables --only all-bounds --quick --seed 0");
  CHECK(all_bounds_section({}, small_sizes).verdict == section.verdict);
}

}  // namespace
}  // namespace lipsa
