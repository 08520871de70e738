/// \file
/// What holds of every section of paper_tables.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "lipsa/experiment/report.hpp"
#include "lipsa/experiment/table.hpp"

namespace lipsa::test {

inline const Table& table_of(const ReportSection& section, const std::string& name) {
  const auto found = std::find_if(section.tables.begin(), section.tables.end(),
                                  [&](const ReportTable& t) { return t.name == name; });
  REQUIRE(found != section.tables.end());
  return found->table;
}

inline const Cell& cell(const Table& table, std::size_t row, const std::string& column) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), column);
  REQUIRE(found != table.columns.end());
  return table.rows.at(row).at(static_cast<std::size_t>(found - table.columns.begin()));
}

inline double real(const Table& table, std::size_t row, const std::string& column) {
  return std::get<double>(cell(table, row, column));
}

inline std::string word(const Table& table, std::size_t row, const std::string& column) {
  return std::get<std::string>(cell(table, row, column));
}

/// Whole tables, labelled pictures, no NaN anywhere, and no lower bound above an upper bound.
inline void check_section(const ReportSection& section) {
  CHECK_FALSE(section.title.empty());
  CHECK_FALSE(section.claim.empty());
  CHECK_FALSE(section.method.empty());
  CHECK(section.command.starts_with("lipsa "));
  CHECK_FALSE(section.verdict.empty());
  CHECK(section.verdict.find("nan") == std::string::npos);
  CHECK(section.verdict.find("a bound or a measurement is wrong") == std::string::npos);
  for (const ReportTable& table : section.tables) {
    CAPTURE(table.name);
    CHECK_FALSE(table.caption.empty());
    REQUIRE_FALSE(table.table.rows.empty());
    const auto& columns = table.table.columns;
    for (const auto& row : table.table.rows) {
      REQUIRE(row.size() == columns.size());
      double lower = 0.0;
      double upper = std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < columns.size(); ++c) {
        if (const auto* x = std::get_if<double>(&row[c])) {
          CAPTURE(columns[c], *x);
          CHECK_FALSE(std::isnan(*x));
          if (columns[c].starts_with("lower_bound")) {
            lower = std::max(lower, *x);
          }
          if (columns[c].starts_with("upper_bound")) {
            upper = std::min(upper, *x);
          }
        }
      }
      CHECK(lower <= upper);
    }
    CHECK(format_table(table.table, TableFormat::csv).find("nan") == std::string::npos);
  }
  for (const ReportFigure& figure : section.figures) {
    CAPTURE(figure.name);
    CHECK_FALSE(figure.caption.empty());
    for (const char* part : {"set terminal svg size 900,520", "set xlabel \"", "set ylabel \"",
                             "plot ", " << EOD\n"}) {
      CHECK_THAT(figure.script, Catch::Contains(part));
    }
    CHECK_THAT(figure.script, Catch::Contains("set output \"" + figure.name + ".svg\""));
    CHECK_THAT(figure.script, !Catch::Contains("nan") && !Catch::Contains(" inf\n"));
  }
}

}  // namespace lipsa::test
