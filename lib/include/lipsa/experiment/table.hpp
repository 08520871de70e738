/// \file
/// Tables of results, and the texts they are written as.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lipsa {

/// Nothing, a word, a whole number or a number.
using Cell = std::variant<std::monostate, std::string, std::int64_t, double>;

struct Table {
  std::vector<std::string> columns{};
  std::vector<std::vector<Cell>> rows{};  ///< each of one cell a column
};

enum class TableFormat { text, csv, json, markdown, latex };

/// \throws std::invalid_argument  none of "text", "csv", "json", "markdown", "latex"
TableFormat parse_table_format(std::string_view text);

/// The table as text ending with a line break. CSV and JSON give numbers in full (17 digits, or the
/// fewest that read back the same), the formats for people seven, those of columns with
/// lower_bound in their name rounded down and those with upper_bound rounded up, so that what is
/// printed is a bound too. Infinities and NaN are spelled inf, -inf and nan, in JSON as strings;
/// nothing is an empty cell, in JSON null. Columns without any content are left out of the formats
/// for people.
///
/// \test tests/experiment/table_test.cpp
std::string format_table(const Table& table, TableFormat format);

/// A cell of a column of that name as the formats for people print it.
std::string printed_cell(const Cell& cell, std::string_view column);

}  // namespace lipsa
