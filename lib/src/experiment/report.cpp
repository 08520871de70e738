#include "lipsa/experiment/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "core/csv.hpp"
#include "core/input_file.hpp"

namespace lipsa {
namespace {

using Json = nlohmann::ordered_json;

// ---- JSON -------------------------------------------------------------------------------------

/// Doubles as their hexadecimal text, so that all of them, NaN too, come back to the same bits.
Json json_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return {{"text", *text}};
  }
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    return *whole;
  }
  if (const auto* real = std::get_if<double>(&cell)) {
    return {{"real", fmt::format("{:a}", *real)}};
  }
  return nullptr;
}

Cell cell_of(const Json& json) {
  if (json.is_null()) {
    return {};
  }
  if (json.is_number_integer()) {
    return json.get<std::int64_t>();
  }
  if (json.contains("text")) {
    return json.at("text").get<std::string>();
  }
  const auto text = json.at("real").get<std::string>();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) {
    throw std::invalid_argument(fmt::format("{:?} is no number", text));
  }
  return value;
}

/// A name that may be one of a file.
std::string file_name_of(const Json& json) {
  auto name = json.get<std::string>();
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
    throw std::invalid_argument(
        fmt::format("{:?} is no name of lower case, digits and hyphens", name));
  }
  return name;
}

Json json_of(const PaperFact& fact) {
  return {{"place", fact.place},
          {"quantity", fact.quantity},
          {"as_printed", fact.as_printed},
          {"confidence", fact.confidence},
          {"remark", fact.remark}};
}

PaperFact fact_of(const Json& json) {
  return {.place = json.at("place"),
          .quantity = json.at("quantity"),
          .as_printed = json.at("as_printed"),
          .confidence = json.at("confidence"),
          .remark = json.at("remark")};
}

// ---- HTML -------------------------------------------------------------------------------------

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// Text with `commands` in it.
std::string with_code(std::string_view text) {
  std::string out;
  bool code = false;
  for (const char c : escaped(text)) {
    if (c == '`') {
      out += code ? "</code>" : "<code>";
      code = !code;
    } else {
      out += c;
    }
  }
  return out + (code ? "</code>" : "");
}

// Kinds have a sign besides their word and colour: ▲ not below, ▼ not above, ≈ near, ✓ proved.
std::string badge(const std::string& kind) {
  if (kind.empty()) {
    return {};
  }
  const auto has = [&](std::string_view word) { return kind.find(word) != std::string::npos; };
  const char* const style = has("upper")      ? "upper"
                            : has("lower")    ? "lower"
                            : has("refuted")  ? "refuted"
                            : has("estimate") ? "estimate"
                                              : "certified";
  const char* const sign = has("upper")      ? "▲"
                           : has("lower")    ? "▼"
                           : has("refuted")  ? "✗"
                           : has("estimate") ? "≈"
                                             : "✓";
  return fmt::format("<span class=\"kind {}\">{} {}</span>", style, sign, escaped(kind));
}

bool is_number(const Cell& cell) {
  return std::holds_alternative<std::int64_t>(cell) || std::holds_alternative<double>(cell);
}

/// The columns that the report shows and that have content.
std::vector<std::size_t> columns_of(const ReportTable& table) {
  std::vector<std::size_t> list;
  for (std::size_t c = 0; c < table.table.columns.size(); ++c) {
    const bool shown = table.shown.empty() ||
                       std::find(table.shown.begin(), table.shown.end(), table.table.columns[c]) !=
                           table.shown.end();
    const bool any = std::any_of(
        table.table.rows.begin(), table.table.rows.end(),
        [&](const auto& row) { return !std::holds_alternative<std::monostate>(row[c]); });
    if (shown && any) {
      list.push_back(c);
    }
  }
  return list;
}

/// A table that scrolls by itself where it is wider than the page, under a caption that does not.
std::string framed(const std::string& name, const std::string& caption, const std::string& head,
                   const std::string& body, std::string_view attributes = "") {
  return fmt::format(
      "<p class=\"caption\" id=\"table-{0}\">{1} <span class=\"files\">{0}.csv, {0}.md, "
      "{0}.tex</span></p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-labelledby=\"table-{0}\">\n<table{4} aria-labelledby=\"table-{0}\">\n"
      "<thead><tr>{2}</tr></thead>\n<tbody>\n{3}</tbody>\n</table>\n</div>\n",
      escaped(name), escaped(caption), head, body, attributes);
}

/// A cell; short texts are not broken into lines, long ones are given room.
std::string table_cell(const std::string& text, bool number) {
  constexpr std::size_t longest_unbroken = 24;
  return fmt::format("<td class=\"{}\">{}</td>",
                     number                            ? "number"
                     : text.size() <= longest_unbroken ? "short"
                                                       : "long",
                     escaped(text));
}

std::string html_of(const ReportTable& table) {
  const std::vector<std::size_t> columns = columns_of(table);
  std::string head;
  for (const std::size_t c : columns) {
    const ColumnHeading heading = heading_of(table.table.columns[c]);
    head +=
        fmt::format("<th scope=\"col\">{}{}{}</th>", escaped(heading.text),
                    heading.text.empty() || heading.kind.empty() ? "" : " ", badge(heading.kind));
  }
  std::string body;
  for (const auto& row : table.table.rows) {
    body += "<tr>";
    for (const std::size_t c : columns) {
      body += table_cell(printed_cell(row[c], table.table.columns[c]), is_number(row[c]));
    }
    body += "</tr>\n";
  }
  return framed(table.name, table.caption, head, body);
}

std::string printed_ours(const Agreement& row) {
  return printed_cell(row.ours, row.kind == "lower bound"   ? "lower_bound"
                                : row.kind == "upper bound" ? "upper_bound"
                                                            : "");
}

/// The table of the section's agreements, with signs and colours.
std::string html_of(const std::vector<Agreement>& agreements, const ReportTable& table) {
  constexpr std::array headings{"place", "of what",  "the paper", "how sure of the print",
                                "ours",  "agreement"};
  std::string head;
  for (const char* const heading : headings) {
    head += fmt::format("<th scope=\"col\">{}</th>", heading);
  }
  std::string body;
  for (const Agreement& row : agreements) {
    const PaperFact& fact = row.fact;
    const std::array cells{
        escaped(fact.place),
        escaped(fact.quantity) +
            (fact.remark.empty()
                 ? std::string()
                 : fmt::format(" <span class=\"remark\">({})</span>", escaped(fact.remark))),
        escaped(fact.as_printed),
        fmt::format("<span class=\"sure {}\">{}</span>", fact.confidence == "sure" ? "yes" : "no",
                    escaped(fact.confidence)),
        fmt::format("{} {}", escaped(printed_ours(row)), badge(row.kind)),
        escaped(row.agreement)};
    body += "<tr>";
    for (std::size_t c = 0; c < cells.size(); ++c) {
      body += fmt::format("<td data-label=\"{}\">{}</td>", headings.at(c), cells.at(c));
    }
    body += "</tr>\n";
  }
  return framed(table.name, table.caption, head, body, " class=\"words\"");
}

std::string html_of(const ReportSection& section,
                    const std::function<std::string(const ReportFigure&)>& svg) {
  std::string out = fmt::format(
      "<section id=\"{}\">\n<h2>{}</h2>\n<dl>\n<dt>The paper</dt><dd>{}</dd>\n"
      "<dt>How</dt><dd>{}</dd>\n<dt>Again</dt><dd><code>{}</code></dd>\n<dt>Verdict</dt>"
      "<dd class=\"verdict\">{}</dd>\n</dl>\n",
      escaped(section.name), escaped(section.title), escaped(section.claim),
      with_code(section.method), escaped(section.command), escaped(section.verdict));
  for (const ReportFigure& figure : section.figures) {
    const std::string picture = svg(figure);
    out += fmt::format(
        "<figure>\n<div class=\"picture\" tabindex=\"0\">\n{}\n</div>\n<figcaption>{} <span "
        "class=\"files\">{}.svg</span></figcaption>\n</figure>\n",
        picture.empty() ? "<p class=\"missing\">No picture: gnuplot is missing or failed.</p>"
                        : inline_svg(picture, figure.name, figure.caption),
        escaped(figure.caption), escaped(figure.name));
  }
  if (!section.agreements.empty()) {
    out += html_of(section.agreements, paper_and_ours(section));
  }
  for (const ReportTable& table : section.tables) {
    out += html_of(table);
  }
  return out + "</section>\n";
}

constexpr std::string_view style = R"css(
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 0 auto; padding: 0 1rem 4rem; max-width: 72rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; border-top: 1px solid #bbb; padding-top: 1rem; }
nav ul { padding-left: 1.2rem; } a { color: #00508c; }
dl { margin: 0; } dt { font-weight: 600; margin-top: .5rem; } dd { margin: 0; max-width: 46rem; }
dd.verdict { font-weight: 600; }
code { overflow-wrap: anywhere; background: #f3f3f3; padding: .1rem .25rem; }
figure { margin: 1.5rem 0; } figure svg { display: block; mix-blend-mode: multiply; width: 100%; min-width: 40rem; height: auto; max-width: 56rem; }
figcaption, .caption { padding: .5rem 0; margin: 1rem 0 0; } .files, .remark { color: #555; font-size: .85em; overflow-wrap: anywhere; }
.scroll, .picture { overflow-x: auto; /* a shade at an edge behind which there is more */
  background: linear-gradient(to right, #fff 50%, #fff0) left / 3rem 100% local, linear-gradient(to left, #fff 50%, #fff0) right / 3rem 100% local,
    linear-gradient(to right, #0004, #0000) left / .8rem 100% scroll, linear-gradient(to left, #0004, #0000) right / .8rem 100% scroll; background-repeat: no-repeat; }
.scroll { margin: 0 0 1rem; } table { border-collapse: collapse; font-size: .9rem; }
th:first-child, td:first-child { position: sticky; left: 0; background: #fff; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
td.long { min-width: 11rem; } td.short { white-space: nowrap; }
th { border-bottom: 2px solid #888; } td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.kind, .sure { display: inline-block; white-space: nowrap; font-size: .8em; font-weight: 600; padding: 0 .35em; border: 1px solid; border-radius: .2rem; }
.kind.upper { color: #8a3a00; } .kind.lower { color: #00508c; } .kind.estimate { color: #444; border-style: dashed; }
.kind.certified { color: #00613f; border-width: 2px; } .kind.refuted { color: #9c0030; text-decoration: line-through; }
.sure.yes { color: #00613f; } .sure.no { color: #6b5000; border-style: dotted; } .missing { color: #9c0030; }
@media screen and (max-width: 40rem) { .words thead { display: none; } .words tr { display: block; border-bottom: 1px solid #888; padding: .4rem 0; }
  .words td, .words td:first-child { display: block; position: static; border: 0; padding: .1rem 0; } .words td::before { content: attr(data-label) ": "; color: #555; } }
@media print { body { max-width: none; font-size: 10pt; } .scroll, .picture { overflow: visible; background: none; } figure svg { min-width: 0; }
  section + section { break-before: page; } tr, figure { break-inside: avoid; } .caption { break-after: avoid; } table { font-size: 7pt; }
  th, td { padding: .1rem .25rem; } td.short, td.number { white-space: normal; overflow-wrap: anywhere; } td.long { min-width: 0; }
  th:first-child, td:first-child { position: static; } }
@page { size: A4 landscape; margin: 12mm; }
)css";

}  // namespace

std::vector<PaperFact> parse_paper_facts(std::string_view csv, const std::string& origin) {
  const Csv table(csv, origin, {"place", "quantity", "as_printed", "confidence", "remark"});
  std::vector<PaperFact> facts;
  for (const Csv::Row& row : table.rows()) {
    facts.push_back({row.text("place"), row.text("quantity"), row.text("as_printed"),
                     row.text("confidence"), row.text("remark")});
  }
  return facts;
}

std::string shared_digits(double a, double b) {
  constexpr int most = 15;
  int digits = 0;
  if (std::isfinite(a) && std::isfinite(b)) {
    double allowed = 0.05 * std::abs(b);
    while (digits < most && std::abs(a - b) <= allowed) {
      ++digits;
      allowed /= 10.0;
    }
  }
  return fmt::format("{} {}", digits, digits == 1 ? "digit" : "digits");
}

ReportTable paper_and_ours(const ReportSection& section) {
  ReportTable own{.name = fmt::format("{}-paper", section.name),
                  .caption = "The paper and ours.",
                  .table = {{"place", "quantity", "paper", "confidence_in_print", "remark", "ours",
                             "kind", "agreement"},
                            {}}};
  std::replace(own.name.begin(), own.name.end(), '.', '-');
  for (const Agreement& row : section.agreements) {
    own.table.rows.push_back({row.fact.place, row.fact.quantity, row.fact.as_printed,
                              row.fact.confidence, row.fact.remark, printed_ours(row), row.kind,
                              row.agreement});
  }
  return own;
}

std::string section_json(const ReportSection& section) {
  Json json{
      {"name", section.name},     {"title", section.title},     {"claim", section.claim},
      {"method", section.method}, {"command", section.command}, {"verdict", section.verdict},
      {"tables", Json::array()},  {"figures", Json::array()},   {"agreements", Json::array()}};
  for (const ReportTable& table : section.tables) {
    Json rows = Json::array();
    for (const auto& row : table.table.rows) {
      Json cells = Json::array();
      for (const Cell& cell : row) {
        cells.push_back(json_of(cell));
      }
      rows.push_back(std::move(cells));
    }
    json["tables"].push_back({{"name", table.name},
                              {"caption", table.caption},
                              {"columns", table.table.columns},
                              {"shown", table.shown},
                              {"rows", std::move(rows)}});
  }
  for (const ReportFigure& figure : section.figures) {
    json["figures"].push_back(
        {{"name", figure.name}, {"caption", figure.caption}, {"script", figure.script}});
  }
  for (const Agreement& row : section.agreements) {
    json["agreements"].push_back({{"fact", json_of(row.fact)},
                                  {"ours", json_of(row.ours)},
                                  {"kind", row.kind},
                                  {"agreement", row.agreement}});
  }
  return json.dump(1) + "\n";
}

ReportSection parse_section_json(std::string_view json_text, const std::string& origin) {
  try {
    const Json json = Json::parse(json_text);
    ReportSection section{.name = json.at("name"),
                          .title = json.at("title"),
                          .claim = json.at("claim"),
                          .method = json.at("method"),
                          .command = json.at("command"),
                          .verdict = json.at("verdict")};
    for (const Json& table : json.at("tables")) {
      ReportTable own{.name = file_name_of(table.at("name")), .caption = table.at("caption")};
      own.table.columns = table.at("columns").get<std::vector<std::string>>();
      own.shown = table.at("shown").get<std::vector<std::string>>();
      for (const Json& row : table.at("rows")) {
        std::vector<Cell> cells;
        for (const Json& cell : row) {
          cells.push_back(cell_of(cell));
        }
        if (cells.size() != own.table.columns.size()) {
          malformed(origin, "table {:?}: expected rows of {} cells, found {}", own.name,
                    own.table.columns.size(), cells.size());
        }
        own.table.rows.push_back(std::move(cells));
      }
      section.tables.push_back(std::move(own));
    }
    for (const Json& figure : json.at("figures")) {
      section.figures.push_back({.name = file_name_of(figure.at("name")),
                                 .caption = figure.at("caption"),
                                 .script = figure.at("script")});
    }
    for (const Json& row : json.at("agreements")) {
      section.agreements.push_back({.fact = fact_of(row.at("fact")),
                                    .ours = cell_of(row.at("ours")),
                                    .kind = row.at("kind"),
                                    .agreement = row.at("agreement")});
    }
    return section;
  } catch (const Json::exception& e) {
    malformed(origin, "expected a section of a report: {}", e.what());
  } catch (const std::invalid_argument& e) {
    malformed(origin, "expected a section of a report: {}", e.what());
  }
}

ColumnHeading heading_of(const std::string& column) {
  constexpr std::array kinds{std::pair{"certified_lower_bound", "certified lower bound"},
                             std::pair{"certified_upper_bound", "certified upper bound"},
                             std::pair{"lower_bound", "lower bound"},
                             std::pair{"upper_bound", "upper bound"},
                             std::pair{"certified", "certified"},
                             std::pair{"refuted", "refuted"},
                             std::pair{"estimate", "estimate"}};
  ColumnHeading heading{.text = column};
  for (const auto& [word, kind] : kinds) {
    const std::size_t at = column.find(word);
    if (at != std::string::npos) {
      std::string before = column.substr(0, at);
      std::string after = column.substr(at + std::string_view(word).size());
      while (!before.empty() && before.back() == '_') {
        before.pop_back();
      }
      after.erase(0, after.find_first_not_of('_'));
      heading = {
          .text = fmt::format("{}{}{}", before, before.empty() || after.empty() ? "" : "_", after),
          .kind = kind};
      break;
    }
  }
  // Names of the catalogue are names; other words are words.
  if (heading.text.find_first_of("0123456789") == std::string::npos) {
    std::replace(heading.text.begin(), heading.text.end(), '_', ' ');
  }
  return heading;
}

std::string inline_svg(std::string_view svg, const std::string& name, const std::string& label) {
  const std::size_t first = svg.find("<svg");
  if (first == std::string_view::npos) {
    return {};
  }
  std::string text(svg.substr(first));
  text.erase(text.find_last_not_of(" \r\n\t") + 1);
  std::set<std::string> ids;
  for (std::size_t at = text.find(" id="); at != std::string::npos;
       at = text.find(" id=", at + 1)) {
    const char quote = text[at + 4];
    const std::size_t end = text.find(quote, at + 5);
    if (end == std::string::npos) {
      break;
    }
    ids.insert(text.substr(at + 5, end - at - 5));
  }
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    bool replaced = false;
    // id="X", '#X': where a picture names or means one of its own parts.
    if (text[at] == '#' || text.compare(at, 4, " id=") == 0) {
      const std::size_t start = text[at] == '#' ? at + 1 : at + 5;
      const std::size_t end = text.find_first_of("\"')", start);
      const std::string id = text.substr(start, end == std::string::npos ? 0 : end - start);
      if (ids.contains(id)) {
        out += fmt::format("{}{}-{}", text.substr(at, start - at), name, id);
        at = end;
        replaced = true;
      }
    }
    if (!replaced) {
      out += text[at++];
    }
  }
  return fmt::format(R"(<svg role="img" aria-label="{}"{})", escaped(label), out.substr(4));
}

std::string report_html(const Report& report,
                        const std::function<std::string(const ReportFigure&)>& svg) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n"
      "<p>lipsa {2}, {3}. Kinds of numbers: {4} computed to a tolerance, {5} not above the truth, "
      "{6} not below it, {7} proved in ball arithmetic, {8} a formula known to be false.</p>\n"
      "<p>Of the paper's numbers, <em>sure</em> ones are confirmed by independent text or code or "
      "can "
      "be derived, <em>recalled</em> ones are remembered and were not read again, <em>low</em> "
      "ones "
      "are remembered with doubt.</p>\n"
      "<p>n tokens of width D, attention F with H heads, its Jacobian J; |J|_p is the operator "
      "norm "
      "of the p-norm, p = max-token that of the largest Euclidean norm of a token. "
      "<code>lipsa bounds --explain NAME</code> gives formula, hypotheses and source of a bound. "
      "Of an "
      "ascent or an iteration, the status says whether it settled (converged) or was stopped (step "
      "limit): its lower bounds hold either way.</p>\n"
      "<nav aria-label=\"Sections\">\n<ul>\n",
      escaped(report.title), style, escaped(report.version), escaped(report.settings),
      badge("estimate"), badge("lower bound"), badge("upper bound"), badge("certified"),
      badge("refuted"));
  for (const ReportSection& section : report.sections) {
    out += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", escaped(section.name),
                       escaped(section.title));
  }
  out += "</ul>\n</nav>\n<main>\n";
  for (const ReportSection& section : report.sections) {
    out += html_of(section, svg);
  }
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace lipsa
