/// \file
/// Tables that format_table wrote as CSV, read again. Private to lib/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lipsa/core/types.hpp"

namespace lipsa {

/// Rows of fields without quotes, under a first line that names the columns.
class Csv {
 public:
  /// Its messages name the table, the row (from 1, the line of columns) and the column.
  class Row {
   public:
    /// \throws std::runtime_error  always: "ORIGIN: row N: " and what
    [[noreturn]] void refuse(std::string_view what) const;
    const std::string& text(std::string_view column) const;
    /// NaN for an empty field.
    /// \throws std::runtime_error  no number
    double number(std::string_view column) const;
    /// \throws std::runtime_error  no whole number from 0 to 2^53
    Index index(std::string_view column) const;

   private:
    friend class Csv;
    const Csv* table_ = nullptr;
    std::size_t line_ = 0;
    std::vector<std::string> fields_{};
  };

  /// \throws std::runtime_error  another first line, or a row of another number of fields
  /// \test   tests/core/csv_test.cpp
  Csv(std::string_view text, std::string origin, std::vector<std::string> columns);
  Csv(const Csv&) = delete;  // rows point into it
  Csv& operator=(const Csv&) = delete;
  Csv(Csv&&) = delete;
  Csv& operator=(Csv&&) = delete;
  ~Csv() = default;

  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::string origin_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_{};
};

}  // namespace lipsa
