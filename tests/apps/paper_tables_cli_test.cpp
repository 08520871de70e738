/// \file
/// `lipsa paper-tables` as a user meets it: the page, its files, what is refused.
#include <catch2/catch.hpp>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli.hpp"
#include "grammar_text.hpp"

namespace lipsa {
namespace {

using Catch::Contains;
using Fields = std::vector<std::string>;

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

/// The numbers among some fields.
std::vector<double> numbers_of(const Fields& fields) {
  std::vector<double> numbers;
  for (const std::string& field : fields) {
    char* end = nullptr;
    const double x = std::strtod(field.c_str(), &end);
    if (!field.empty() && end == field.c_str() + field.size()) {
      numbers.push_back(x);
    }
  }
  return numbers;
}

/// Rows of a CSV, quotes taken off; without the first.
std::vector<Fields> csv_rows(const std::string& csv) {
  std::vector<Fields> rows;
  Fields row(1);
  bool quoted = false;
  for (const char c : csv) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      row.emplace_back();
    } else if (c == '\n' && !quoted) {
      rows.push_back(std::move(row));
      row = Fields(1);
    } else {
      row.back() += c;
    }
  }
  rows.erase(rows.begin());
  return rows;
}

/// Rows of the cells of a table of the page that are marked as numbers.
std::vector<Fields> page_rows(const std::string& page, const std::string& name) {
  const std::size_t table = page.find("<tbody>", page.find("id=\"table-" + name + "\""));
  REQUIRE(table != std::string::npos);
  std::istringstream body(page.substr(table, page.find("</tbody>", table) - table));
  std::vector<Fields> rows;
  std::string line;
  std::getline(body, line);
  while (std::getline(body, line)) {
    rows.emplace_back();
    const std::string open = "<td class=\"number\">";
    for (std::size_t at = line.find(open); at != std::string::npos; at = line.find(open, at + 1)) {
      const std::size_t begin = at + open.size();
      rows.back().push_back(line.substr(begin, line.find("</td>", begin) - begin));
    }
  }
  return rows;
}

/// Names of the tables of a page.
std::set<std::string> tables_of(const std::string& page) {
  std::set<std::string> names;
  const std::regex id("class=\"caption\" id=\"table-([^\"]+)\"");
  for (std::sregex_iterator at(page.begin(), page.end(), id), end; at != end; ++at) {
    CHECK(names.insert((*at)[1]).second);
  }
  return names;
}

/// Each number that the page shows of a table is, to the digits printed, one of the same row of its
/// CSV.
void check_numbers(const std::string& page, const std::string& name, const std::string& csv) {
  CAPTURE(name);
  const std::vector<Fields> shown = page_rows(page, name);
  const std::vector<Fields> whole = csv_rows(csv);
  REQUIRE(shown.size() == whole.size());
  for (std::size_t k = 0; k < shown.size(); ++k) {
    const std::vector<double> all = numbers_of(whole[k]);
    for (const double x : numbers_of(shown[k])) {
      CAPTURE(k, x);
      CHECK(std::any_of(all.begin(), all.end(),
                        [&](double y) { return x == y || std::abs(x - y) <= 1e-6 * std::abs(y); }));
    }
  }
}

/// Links inside lead somewhere, names are there once, nothing comes from elsewhere.
void check_links(const std::string& page) {
  std::multiset<std::string> ids;
  const std::regex id(" id=[\"']([^\"']+)[\"']");
  for (std::sregex_iterator at(page.begin(), page.end(), id), end; at != end; ++at) {
    ids.insert((*at)[1]);
  }
  for (const std::string& name : ids) {
    CAPTURE(name);
    CHECK(ids.count(name) == 1);
  }
  std::size_t links = 0;
  const std::regex link("(href|aria-labelledby)=[\"']#?([^\"']+)[\"']");
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at, ++links) {
    CAPTURE((*at)[2]);
    CHECK(ids.count((*at)[2]) == 1);
  }
  CHECK(links > 0);
  CHECK_THAT(page, !Contains("src=") && !Contains("<script") && !Contains("url(http") &&
                       !Contains("@import") && !Contains("<link"));
}

/// A picture each, with curves in it, and a page that a checker has nothing to say about.
void check_page(const std::string& page, const std::filesystem::path& folder) {
  if (installed("gnuplot")) {
    CHECK_THAT(page, !Contains("No picture"));
    std::size_t pictures = 0;
    for (std::size_t at = page.find("<figure>"); at != std::string::npos;
         at = page.find("<figure>", at + 1), ++pictures) {
      const std::string figure = page.substr(at, page.find("</figure>", at) - at);
      CHECK_THAT(figure, Contains("<svg role=\"img\" aria-label=\"") && Contains("<text"));
      // Axes have ticks and names; marks and lines stand beside them.
      const std::regex drawn("<(path|use|circle)[ \t\n]");
      CHECK(std::distance(std::sregex_iterator(figure.begin(), figure.end(), drawn),
                          std::sregex_iterator()) > 20);
    }
    CHECK(pictures > 0);
  }
  if (installed("tidy")) {
    const std::string check = "tidy -q -e -utf8 '" + (folder / "report.html").string() + "' 2>'" +
                              (folder / "tidy.txt").string() + "'";
    std::system(check.c_str());
    CHECK(get_bytes(folder / "tidy.txt") == "");
  }
}

TEST_CASE_METHOD(CliTest, "lipsa paper-tables: the report's numbers are those of its files",
                 "[cli]") {
  const Outcome whole = lipsa("paper-tables --only layer-norm,figure-4 --threads 1 --format csv");
  CHECK(whole.code == 0);
  CHECK_THAT(whole.out, Catch::StartsWith("section,tables,figures,verdict\nfigure-4,") &&
                            Contains("\nlayer-norm,"));
  const auto out = folder / "paper-tables";
  const std::string page = get_bytes(out / "report.html");
  CHECK_THAT(page, Catch::StartsWith("<!DOCTYPE html>"));
  CHECK(tables_of(page) == std::set<std::string>{"figure-4", "figure-4-cells", "figure-4-paper",
                                                 "layer-norm", "layer-norm-paper"});
  CHECK(page_rows(page, "figure-4").size() == 25);
  for (const std::string& name : tables_of(page)) {
    check_numbers(page, name, get_bytes(out / (name + ".csv")));
    CHECK_THAT(get_bytes(out / (name + ".md")), Contains("| :-") || Contains("-: |"));
    CHECK_THAT(get_bytes(out / (name + ".tex")), Contains("\\begin{tabular}"));
  }
  check_links(page);
  check_page(page, out);
  CHECK_FALSE(std::filesystem::exists(out / "sections"));
  const Outcome again =
      lipsa("paper-tables --only layer-norm,figure-4 --threads 2 --format csv --out again --quiet");
  CHECK(again.out == whole.out);
  CHECK(again.err.empty());
  CHECK(get_bytes(folder / "again/report.html") == page);
}

TEST_CASE_METHOD(CliTest, "lipsa paper-tables: all of it", "[cli][slow]") {
  REQUIRE(lipsa("paper-tables --quick --out all --quiet").code == 0);
  const auto out = folder / "all";
  const std::string page = get_bytes(out / "report.html");
  for (const char* name : {"theorem-3.1", "theorem-3.2", "figure-2", "appendix-ascent", "figure-3",
                           "table-1", "output-variance", "layer-norm", "all-bounds"}) {
    CHECK_THAT(page, Contains("<section id=\"" + std::string(name) + "\">"));
  }
  CHECK_THAT(page, !Contains("Not computed"));
  CHECK(tables_of(page).size() > 30);
  for (const std::string& name : tables_of(page)) {
    check_numbers(page, name, get_bytes(out / (name + ".csv")));
  }
  check_links(page);
  check_page(page, out);
  // On one thread the same bytes.
  const std::string some = "theorem-3.1,theorem-3.2,figure-2,figure-3";
  REQUIRE(lipsa("paper-tables --only " + some + " --threads 1 --out one --quiet").code == 0);
  for (const char* name : {"theorem-3-1-growth.csv", "theorem-3-2-two.csv", "figure-2.csv",
                           "figure-3.csv", "figure-3-contractive.csv"}) {
    CAPTURE(name);
    CHECK(get_bytes(folder / "one" / name) == get_bytes(out / name));
  }
}

TEST_CASE_METHOD(CliTest, "lipsa paper-tables: what was finished is not computed again", "[cli]") {
  const std::string some = "paper-tables --only figure-4,layer-norm --quiet --threads 1 ";
  REQUIRE(lipsa(some + "--out whole").code == 0);
  // Stopped between two sections: the second has no place to be written to. What is there and not
  // of a run that was begun is neither taken nor lost.
  const auto sections = folder / "part/sections";
  std::filesystem::create_directories(sections / "layer-norm.json");
  put_bytes(sections / "figure-4.json", "{");
  put_bytes(sections / "thesis.tex", "mine");
  const Outcome stopped = lipsa(some + "--out part");
  CHECK(stopped.code == 5);
  CHECK_THAT(stopped.err, Contains("layer-norm.json"));
  CHECK_FALSE(std::filesystem::exists(folder / "part/report.html"));
  REQUIRE(std::filesystem::exists(sections / "figure-4.json"));
  std::filesystem::remove(sections / "layer-norm.json");

  const Outcome plain = lipsa(some + "--out part");
  CHECK(plain.code == 2);
  CHECK_THAT(plain.err, Contains("continue it with --resume"));
  const Outcome other = lipsa(some + "--out part --resume --seed 1");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Contains("was begun with other options or files, or by another version"));
  const std::string kept = get_bytes(sections / "figure-4.json");
  const std::string identity = get_bytes(sections / "identity.txt");
  CHECK(lipsa(some + "--out part --resume").code == 0);
  CHECK(get_bytes(folder / "part/report.html") == get_bytes(folder / "whole/report.html"));
  CHECK(get_bytes(folder / "part/figure-4.csv") == get_bytes(folder / "whole/figure-4.csv"));
  CHECK(get_bytes(sections / "thesis.tex") == "mine");
  CHECK_FALSE(std::filesystem::exists(sections / "figure-4.json"));

  // It is the file that is taken: a mark in it comes through, and what is no section is refused.
  put_bytes(sections / "identity.txt", identity);
  put_bytes(sections / "layer-norm.json", "{");
  const Outcome broken = lipsa(some + "--out part --resume");
  CHECK(broken.code == 3);
  CHECK_THAT(broken.err, Contains("layer-norm.json: expected a section of a report"));
  put_bytes(sections / "layer-norm.json", kept);
  CHECK_THAT(lipsa(some + "--out part --resume").err,
             Contains("layer-norm.json: expected section layer-norm, found figure-4"));
  std::filesystem::remove(sections / "layer-norm.json");
  std::string marked = kept;
  const std::size_t verdict = marked.find("\"verdict\": \"") + 12;
  marked.insert(verdict, "Marked. ");
  put_bytes(sections / "figure-4.json", marked);
  CHECK(lipsa(some + "--out part --resume").code == 0);
  CHECK_THAT(get_bytes(folder / "part/report.html"), Contains("Marked. "));
}

TEST_CASE_METHOD(CliTest, "lipsa paper-tables: table 1 recorded, or from the folder of a study",
                 "[cli]") {
  const std::string some = "paper-tables --only table-1,output-variance --format csv --quiet ";
  CHECK_THAT(lipsa(some + "--out r").out,
             Contains("dot trains to 8 blocks") && Contains("is seen at this scale"));
  CHECK_THAT(get_bytes(folder / "r/report.html"),
             Contains("Not trained now: recorded with this version"));
  check_page(get_bytes(folder / "r/report.html"), folder / "r");

  put_bytes(folder / "t.txt", test::grammar_text(1, 4000));
  REQUIRE(lipsa("lm depth-study --text t.txt --model dot,l2,lstm --depth 1 --dim 8 --heads 2 "
                "--feed-forward 8 --context 16 --batch 4 --steps 20 --out study --quiet")
              .code == 0);
  CHECK(lipsa(some + "--depth-study study").code == 0);
  CHECK_THAT(get_bytes(folder / "paper-tables/table-1.csv"), Contains("\ndot,1,1,"));
  CHECK_THAT(get_bytes(folder / "paper-tables/report.html"),
             Contains("Read from study, written by <code>lipsa lm depth-study --text t.txt"));
  put_bytes(folder / "study/depth-study.meta.json",
            R"([{"version": "0.0.1", "command_line": "lipsa"}])");
  const Outcome old = lipsa("paper-tables --only table-1 --depth-study study --out n");
  CHECK(old.code == 3);
  CHECK_THAT(old.err, Contains("expected a study by version"));
}

TEST_CASE_METHOD(CliTest, "lipsa paper-tables: refuses before it begins", "[cli]") {
  const auto [arguments, code, message] = GENERATE(table<std::string, int, std::string>(
      {{"--only figure-9", 2, "--only: there is no table or figure 'figure-9'"},
       {"--quick --full", 2, "give --quick or --full, not both"},
       {"--text t.txt", 2, "--text and --corpus are for --full"},
       {"--full --text t.txt --depth-study s", 2, "give --depth-study or a text, not both"},
       {"--full --text nowhere.txt", 3, "nowhere.txt"},
       {"--only table-1 --depth-study nowhere", 3, "nowhere"},
       {"--weights nowhere.npz", 3, "nowhere.npz"},
       {"--only ''", 2, "only"},
       {"--out ''", 2, "--out must not be empty"},
       {"--full --text short.txt", 3, "short.txt: expected at least 2 characters for training"},
       {"--full --text short.txt --only figure-2", 2, "no section of --only is trained"},
       {"--seed -1", 2, "seed"},
       {"--format html", 2, "format must be"}}));
  CAPTURE(arguments);
  put_bytes(folder / "short.txt", "abc");
  const Outcome outcome = lipsa("paper-tables " + arguments);
  CHECK(outcome.code == code);
  CHECK_THAT(outcome.err, Contains(message));
  CHECK_FALSE(std::filesystem::exists(folder / "paper-tables"));
}

}  // namespace
}  // namespace lipsa
