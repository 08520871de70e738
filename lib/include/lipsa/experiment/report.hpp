/// \file
/// What was computed, beside what a paper reports: sections of text, tables and pictures.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lipsa/experiment/table.hpp"

namespace lipsa {

/// A number, formula or claim as a paper has it: a row of a file in datasets/papers.
struct PaperFact {
  std::string place{};       ///< "Table 1"
  std::string quantity{};    ///< what it is of
  std::string as_printed{};  ///< the number or the words
  std::string confidence{};  ///< "sure", "recalled", "low": how sure we are of the print
  std::string remark{};
};

/// The rows of such a file, whose first line names the five columns.
///
/// \throws std::runtime_error  another first line, a row of another number of fields: `origin`, row
/// \test   tests/experiment/report_test.cpp
std::vector<PaperFact> parse_paper_facts(std::string_view csv, const std::string& origin);

/// A table of ours. Its columns say what their numbers are, as everywhere: estimate, lower_bound,
/// upper_bound, certified.
struct ReportTable {
  std::string name{};     ///< of its files, NAME.csv, NAME.md and NAME.tex: lower case, hyphens
  std::string caption{};  ///< one sentence
  Table table{};
  std::vector<std::string> shown{};  ///< columns that the report shows; empty: all
};

struct ReportFigure {
  std::string name{};     ///< of its file, NAME.svg
  std::string caption{};  ///< one sentence
  std::string script{};   ///< for gnuplot: writes NAME.svg into its folder
};

/// A number or a claim of the paper and ours beside it.
struct Agreement {
  PaperFact fact{};
  Cell ours{};
  std::string kind{};       ///< of ours: "estimate", "lower bound", "upper bound", "certified", ""
  std::string agreement{};  ///< "4 digits", "inside", "outside", "agrees", "does not agree", …
};

/// How many significant digits two numbers share: the largest k with |a − b| ≤ ½ 10^{−k} |b|, from
/// 0 to 15, as "k digits"; "0 digits" where either is not finite or b = 0 ≠ a.
/// \test tests/experiment/report_test.cpp
std::string shared_digits(double a, double b);

/// A table or figure of the paper, again.
struct ReportSection {
  std::string name{};     ///< "figure-2": what --only takes
  std::string title{};    ///< "Figure 2: tightness of the bound"
  std::string claim{};    ///< what the paper says, in our words
  std::string method{};   ///< what was computed and how: settings, seed
  std::string command{};  ///< that repeats it alone
  std::vector<ReportTable> tables{};
  std::vector<ReportFigure> figures{};
  std::vector<Agreement> agreements{};
  std::string verdict{};  ///< computed from the numbers
};

/// The agreements of a section as a table SECTION-paper: place, quantity, paper,
/// confidence_in_print, remark, ours, kind, agreement; all as they are printed.
///
/// \test tests/experiment/report_test.cpp
ReportTable paper_and_ours(const ReportSection& section);

struct Report {
  std::string title{};
  std::string version{};
  std::string settings{};  ///< "quick" or "full", seed
  std::vector<ReportSection> sections{};
};

/// A section as JSON, and back to the same bits.
///
/// \throws std::runtime_error  it is none: `origin` and what is wrong
/// \test   tests/experiment/report_test.cpp
std::string section_json(const ReportSection& section);
ReportSection parse_section_json(std::string_view json_text, const std::string& origin);

/// One HTML page that needs nothing else: style and pictures inside, no script. Text of sections is
/// escaped.
///
/// \param svg  the picture of a figure as an <svg> element, or "" where there is none: the page
///             says so
/// \test  tests/experiment/report_test.cpp
std::string report_html(const Report& report,
                        const std::function<std::string(const ReportFigure&)>& svg);

/// A picture as it can stand in a page among others: from its <svg> on, each name of a part with
/// NAME and a hyphen before it, `label` for those who do not see it. Empty when it is none.
///
/// \test tests/experiment/report_test.cpp
std::string inline_svg(std::string_view svg, const std::string& name, const std::string& label);

/// The heading of a column as people read it, and the kind of number it holds: "lower bound,
/// witness" and "lower bound" for lower_bound_witness. The kind is "estimate", "lower bound",
/// "upper bound", "certified", "refuted" or "".
struct ColumnHeading {
  std::string text{};
  std::string kind{};
};
ColumnHeading heading_of(const std::string& column);

}  // namespace lipsa
