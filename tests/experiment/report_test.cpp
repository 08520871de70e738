#include "lipsa/experiment/report.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace lipsa {
namespace {

using Catch::Contains;

ReportSection section() {
  return {
      .name = "figure-2",
      .title = "Figure 2: <tight> & true",
      .claim = "A \"claim\"",
      .method = "50 restarts, seed 0",
      .command = "lipsa bound-sweep --preset kim2021-fig2",
      .tables =
          {{.name = "figure-2",
            .caption = "Bounds by n",
            .table = {{"n", "upper_bound_kim2021_inf", "lower_bound", "hidden", "status"},
                      {{std::int64_t{100}, 11.5146451, 10.0946811, 1.5, std::string("converged")},
                       {std::int64_t{200}, HUGE_VAL, {}, std::nan(""), std::string("a < b")}}},
            .shown = {"n", "upper_bound_kim2021_inf", "lower_bound", "status"}}},
      .figures = {{.name = "figure-2", .caption = "Bounds", .script = "plot sin(x)\n"}},
      .agreements = {{.fact = {"Figure 2", "slope", "same", "sure", "a remark"},
                      .ours = 1.25,
                      .kind = "estimate",
                      .agreement = "3 digits"}},
      .verdict = "It is so."};
}

TEST_CASE("parse_paper_facts: rows of five fields, and what is none", "[experiment]") {
  const auto facts = parse_paper_facts(
      "place,quantity,as_printed,confidence,remark\nTable 1,loss,1.061,recalled,\n"
      "Figure 2,N,100 to 1000,sure,log axis\n",
      "k.csv");
  REQUIRE(facts.size() == 2);
  CHECK(facts[0].as_printed == "1.061");
  CHECK(facts[0].remark.empty());
  CHECK(facts[1].confidence == "sure");
  CHECK_THROWS_WITH(parse_paper_facts("a,b\n", "k.csv"),
                    Contains("k.csv") && Contains("row 1: expected"));
  CHECK_THROWS_WITH(
      parse_paper_facts("place,quantity,as_printed,confidence,remark\na,b,c,d\n", "k.csv"),
      Contains("row 2: expected 5 fields, found 4"));
  CHECK_THROWS_AS(parse_paper_facts("", "k.csv"), std::runtime_error);
}

TEST_CASE("shared_digits: by half a unit of the last digit", "[experiment]") {
  CHECK(shared_digits(1.0, 1.0) == "15 digits");
  CHECK(shared_digits(1.04, 1.0) == "1 digit");
  CHECK(shared_digits(1.06, 1.0) == "0 digits");
  CHECK(shared_digits(-1.00049, -1.0) == "3 digits");
  CHECK(shared_digits(0.0, 0.0) == "15 digits");
  CHECK(shared_digits(1e-300, 0.0) == "0 digits");
  CHECK(shared_digits(std::nan(""), 1.0) == "0 digits");
  CHECK(shared_digits(HUGE_VAL, HUGE_VAL) == "0 digits");
}

TEST_CASE("heading_of: the words of a column and the kind of its numbers", "[experiment]") {
  const auto [column, text, kind] = GENERATE(table<std::string, std::string, std::string>(
      {{"n", "n", ""},
       {"lower_bound", "", "lower bound"},
       {"lower_bound_witness", "witness", "lower bound"},
       {"upper_bound_kim2021_inf", "kim2021_inf", "upper bound"},
       {"local_norm_estimate", "local norm", "estimate"},
       {"reconstruction_error_estimate_5", "reconstruction_error_5", "estimate"},
       {"ratio_certified_lower_bound", "ratio", "certified lower bound"},
       {"refuted_kim2021_2_printed", "kim2021_2_printed", "refuted"},
       {"test_loss", "test loss", ""}}));
  CHECK(heading_of(column).text == text);
  CHECK(heading_of(column).kind == kind);
}

TEST_CASE("section_json: back to the same bits", "[experiment]") {
  const ReportSection before = section();
  const std::string json = section_json(before);
  const ReportSection after = parse_section_json(json, "s.json");
  CHECK(section_json(after) == json);
  CHECK(after.tables[0].table.rows[0] == before.tables[0].table.rows[0]);
  CHECK(std::isnan(std::get<double>(after.tables[0].table.rows[1][3])));
  CHECK(after.agreements[0].fact.remark == "a remark");
  CHECK(format_table(after.tables[0].table, TableFormat::csv) ==
        format_table(before.tables[0].table, TableFormat::csv));
  for (const std::string& bad : {std::string("{"), std::string("[]"), std::string("{\"name\": 1}"),
                                 json.substr(0, json.size() / 2), std::string()}) {
    CHECK_THROWS_AS(parse_section_json(bad, "s.json"), std::runtime_error);
  }
  std::string ragged = json;
  ragged.replace(ragged.find("\"n\",\n"), 4, "");
  CHECK_THROWS_AS(parse_section_json(ragged, "s.json"), std::runtime_error);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = json;
    text.replace(text.rfind(from), from.size(), to);
    return text;
  };
  CHECK_THROWS_WITH(parse_section_json(changed("\"figure-2\"", "\"../figure-2\""), "s.json"),
                    Contains("s.json") && Contains("is no name of lower case"));
  CHECK_THROWS_WITH(parse_section_json(changed("\"0x1.4p+0\"", "\"abc\""), "s.json"),
                    Contains("\"abc\" is no number"));
}

TEST_CASE("inline_svg: names of parts are made its own, and all that means them", "[experiment]") {
  const std::string picture =
      "<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n<svg width='9' viewBox='0 0 9 9'><defs><path "
      "id='gpDot'/><g id=\"a\"/></defs><use xlink:href='#gpDot' fill='#ffffff'/><g "
      "clip-path='url(#a)'/></svg>\n";
  CHECK(inline_svg(picture, "fig", "what & why") ==
        "<svg role=\"img\" aria-label=\"what &amp; why\" width='9' viewBox='0 0 9 9'><defs><path "
        "id='fig-gpDot'/><g id=\"fig-a\"/></defs><use xlink:href='#fig-gpDot' fill='#ffffff'/><g "
        "clip-path='url(#fig-a)'/></svg>");
  CHECK(inline_svg("no picture", "fig", "").empty());
}

TEST_CASE("paper_and_ours: the agreements as a table, each number on its side", "[experiment]") {
  ReportSection one = section();
  one.name = "theorem-3.2";
  one.agreements.push_back(
      {.fact = {"Figure 2", "bound", "1", "low", ""}, .ours = 1.00000001, .kind = "upper bound"});
  one.agreements.push_back(
      {.fact = {"Figure 2", "bound", "1", "low", ""}, .ours = 0.99999999, .kind = "lower bound"});
  const ReportTable table = paper_and_ours(one);
  CHECK(table.name == "theorem-3-2-paper");
  CHECK(format_table(table.table, TableFormat::csv) ==
        "place,quantity,paper,confidence_in_print,remark,ours,kind,agreement\n"
        "Figure 2,slope,same,sure,a remark,1.25,estimate,3 digits\n"
        "Figure 2,bound,1,low,,1.000001,upper bound,\nFigure 2,bound,1,low,,0.9999999,lower "
        "bound,\n");
}

TEST_CASE("report_html: everything inside, text escaped, kinds in words, numbers as printed",
          "[experiment]") {
  const Report report{
      .title = "Again", .version = "0.1", .settings = "quick", .sections = {section()}};
  const std::string page =
      report_html(report, [](const ReportFigure&) { return "<svg viewBox='0 0 1 1'></svg>"; });
  for (const char* part :
       {"<!DOCTYPE html>", "Figure 2: &lt;tight&gt; &amp; true", "<a href=\"#figure-2\">",
        "<section id=\"figure-2\">", "A &quot;claim&quot;", "▲ upper bound", "▼ lower bound",
        "<td class=\"number\">11.51465</td>", "<td class=\"number\">10.09468</td>", "a &lt; b",
        "<td class=\"number\">inf</td>", "<svg role=\"img\"", "3 digits", "It is so.",
        "lipsa bound-sweep --preset kim2021-fig2", "figure-2.csv, figure-2.md, figure-2.tex",
        "figure-2-paper.csv", "slope <span class=\"remark\">(a remark)</span>", "≈ estimate"}) {
    CHECK_THAT(page, Contains(part));
  }
  CHECK_THAT(page, !Contains("hidden") && !Contains("http://") && !Contains("https://") &&
                       !Contains("<script"));
  CHECK_THAT(report_html(report, [](const ReportFigure&) { return ""; }), Contains("No picture"));
}

}  // namespace
}  // namespace lipsa
