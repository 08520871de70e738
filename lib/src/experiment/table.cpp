#include "lipsa/experiment/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/check.hpp"

namespace lipsa {
namespace {

bool is_empty(const Cell& cell) {
  return std::holds_alternative<std::monostate>(cell);
}
bool is_text(const Cell& cell) {
  return std::holds_alternative<std::string>(cell);
}

/// A cell as plain text; doubles with so many digits.
enum class Rounding { nearest, down, up };

/// A bound stays one as it is printed: its name says to which side it may err.
Rounding rounding_of(std::string_view column) {
  const auto has = [&](std::string_view word) {
    return column.find(word) != std::string_view::npos;
  };
  return has("lower_bound")   ? Rounding::down
         : has("upper_bound") ? Rounding::up
                              : Rounding::nearest;
}

/// x with so many digits, on the side of x that `rounding` names.
std::string digits_of(double x, int digits, Rounding rounding) {
  std::string text = fmt::format("{:.{}g}", x, digits);
  const long double printed = std::strtold(text.c_str(), nullptr);
  const bool wrong =
      (rounding == Rounding::down && printed > x) || (rounding == Rounding::up && printed < x);
  if (!wrong) {
    return text;
  }
  // The next decimal: one unit of the last digit away.
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(x))) - digits + 1);
  const auto near = static_cast<double>(printed);
  return fmt::format("{:.{}g}", rounding == Rounding::down ? near - unit : near + unit, digits);
}

std::string plain(const Cell& cell, int digits, Rounding rounding = Rounding::nearest) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return *text;
  }
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    return fmt::format("{}", *whole);
  }
  if (const auto* real = std::get_if<double>(&cell)) {
    return std::isnan(*real) ? "nan" : digits_of(*real, digits, rounding);
  }
  return {};
}

/// RFC 4180: quotes where a separator, a quote or a line break would end the cell.
std::string csv(const Cell& cell) {
  std::string text = plain(cell, 17);
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') {
      quoted += c;
    }
  }
  return quoted + "\"";
}

nlohmann::ordered_json json(const Cell& cell) {
  if (const auto* real = std::get_if<double>(&cell)) {
    return std::isfinite(*real) ? nlohmann::ordered_json(*real)
                                : nlohmann::ordered_json(plain(cell, 17));
  }
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    return *whole;
  }
  return is_empty(cell) ? nlohmann::ordered_json() : nlohmann::ordered_json(plain(cell, 17));
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

std::string escaped_markdown(std::string_view text) {
  return escaped(text, R"(|\*_<)");
}

/// In any font encoding: some characters have no escape, only a name.
std::string escaped_latex(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '<':
        out += "\\textless{}";
        break;
      case '>':
        out += "\\textgreater{}";
        break;
      case '|':
        out += "\\textbar{}";
        break;
      default:
        out += escaped(std::string_view(&c, 1), "_&%#${}");
    }
  }
  return out;
}

std::string unescaped(std::string_view text) {
  return std::string(text);
}

/// Cells with content as texts of people's digits, the columns' widths, and which are words.
struct Layout {
  std::vector<std::string> columns{};
  std::vector<std::vector<std::string>> rows{};
  std::vector<bool> words{};
  std::vector<std::size_t> widths{};
};

Layout layout_of(const Table& table, std::string (*escape)(std::string_view)) {
  Layout layout;
  layout.rows.resize(table.rows.size());
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const auto in_column = [&](auto test) {
      return std::any_of(table.rows.begin(), table.rows.end(),
                         [&](const auto& row) { return test(row[c]); });
    };
    if (!table.rows.empty() && !in_column([](const Cell& cell) { return !is_empty(cell); })) {
      continue;
    }
    layout.columns.push_back(escape(table.columns[c]));
    layout.words.push_back(in_column(is_text));
    std::size_t width = layout.columns.back().size();
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      layout.rows[r].push_back(escape(printed_cell(table.rows[r][c], table.columns[c])));
      width = std::max(width, layout.rows[r].back().size());
    }
    layout.widths.push_back(width);
  }
  return layout;
}

/// Numbers to the right, words to the left.
std::string line(const Layout& layout, const std::vector<std::string>& cells,
                 std::string_view before, std::string_view between, std::string_view after) {
  std::string out(before);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    out += c == 0 ? "" : between;
    out += layout.words[c] ? fmt::format("{:<{}}", cells[c], layout.widths[c])
                           : fmt::format("{:>{}}", cells[c], layout.widths[c]);
  }
  if (after.empty()) {
    out.erase(out.find_last_not_of(' ') + 1);
  }
  out += after;
  return out + "\n";
}

std::string format_csv(const Table& table) {
  std::string out = fmt::format("{}\n", fmt::join(table.columns, ","));
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      out += c == 0 ? "" : ",";
      out += csv(row[c]);
    }
    out += "\n";
  }
  return out;
}

std::string format_json(const Table& table) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    auto object = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      object[table.columns[c]] = json(row[c]);
    }
    rows.push_back(std::move(object));
  }
  return rows.dump(1) + "\n";
}

}  // namespace

std::string printed_cell(const Cell& cell, std::string_view column) {
  return plain(cell, 7, rounding_of(column));
}

TableFormat parse_table_format(std::string_view text) {
  constexpr std::array names{
      std::pair{std::string_view("text"), TableFormat::text},
      std::pair{std::string_view("csv"), TableFormat::csv},
      std::pair{std::string_view("json"), TableFormat::json},
      std::pair{std::string_view("markdown"), TableFormat::markdown},
      std::pair{std::string_view("latex"), TableFormat::latex},
  };
  for (const auto& [name, format] : names) {
    if (text == name) {
      return format;
    }
  }
  throw std::invalid_argument(
      fmt::format("format must be text, csv, json, markdown or latex, got '{}'", text));
}

std::string format_table(const Table& table, TableFormat format) {
  for (const auto& row : table.rows) {
    require(row.size() == table.columns.size(), "format_table: a row must have {} cells, got {}",
            table.columns.size(), row.size());
  }
  switch (format) {
    case TableFormat::csv:
      return format_csv(table);
    case TableFormat::json:
      return format_json(table);
    case TableFormat::text: {
      const Layout layout = layout_of(table, &unescaped);
      std::string out = line(layout, layout.columns, "", "  ", "");
      for (const auto& row : layout.rows) {
        out += line(layout, row, "", "  ", "");
      }
      return out;
    }
    case TableFormat::markdown: {
      const Layout layout = layout_of(table, &escaped_markdown);
      std::string out = line(layout, layout.columns, "| ", " | ", " |");
      for (std::size_t c = 0; c < layout.columns.size(); ++c) {
        const std::string dashes(std::max<std::size_t>(layout.widths[c], 2) - 1, '-');
        out += fmt::format("| {}{}{} ", layout.words[c] ? ":" : "", dashes,
                           layout.words[c] ? "" : ":");
      }
      out += "|\n";
      for (const auto& row : layout.rows) {
        out += line(layout, row, "| ", " | ", " |");
      }
      return out;
    }
    case TableFormat::latex: {
      const Layout layout = layout_of(table, &escaped_latex);
      std::string columns;
      for (const bool words : layout.words) {
        columns += words ? 'l' : 'r';
      }
      std::string out = fmt::format("\\begin{{tabular}}{{{}}}\n", columns);
      out += line(layout, layout.columns, "", " & ", R"( \\ \hline)");
      for (const auto& row : layout.rows) {
        out += line(layout, row, "", " & ", R"( \\)");
      }
      return out + "\\end{tabular}\n";
    }
  }
  return {};
}

}  // namespace lipsa
