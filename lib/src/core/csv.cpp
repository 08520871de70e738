#include "core/csv.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/input_file.hpp"

namespace lipsa {
namespace {

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

void Csv::Row::refuse(std::string_view what) const {
  malformed(table_->origin_, "row {}: {}", line_, what);
}

const std::string& Csv::Row::text(std::string_view column) const {
  const auto& columns = table_->columns_;
  const auto at = std::find(columns.begin(), columns.end(), column);
  return fields_.at(static_cast<std::size_t>(at - columns.begin()));
}

double Csv::Row::number(std::string_view column) const {
  const std::string& field = text(column);
  if (field.empty()) {
    return std::nan("");
  }
  char* end = nullptr;
  const double value = std::strtod(field.c_str(), &end);
  if (end != field.c_str() + field.size()) {
    refuse(fmt::format("expected a number for {}, found {:?}", column, field));
  }
  return value;
}

Index Csv::Row::index(std::string_view column) const {
  const double value = number(column);
  if (!(value >= 0.0 && value <= 0x1p53) || value != std::floor(value)) {
    refuse(fmt::format("expected a whole number for {}, found {:?}", column, text(column)));
  }
  return static_cast<Index>(value);
}

Csv::Csv(std::string_view text, std::string origin, std::vector<std::string> columns)
    : origin_(std::move(origin)), columns_(std::move(columns)) {
  const std::string expected = fmt::format("{}", fmt::join(columns_, ","));
  for (std::size_t line = 1; line == 1 || !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line == 1) {
      if (content != expected) {
        malformed(origin_, "row 1: expected {:?}, found {:?}", expected, content);
      }
      continue;
    }
    Row row;
    row.table_ = this;
    row.line_ = line;
    row.fields_ = split(content);
    if (row.fields_.size() != columns_.size()) {
      row.refuse(fmt::format("expected {} fields, found {}", columns_.size(), row.fields_.size()));
    }
    rows_.push_back(std::move(row));
  }
}

}  // namespace lipsa
