#include "lipsa/experiment/table.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <sstream>
#include <string>

namespace lipsa {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

Table sample() {
  return {{"name", "n", "value", "empty"},
          {{std::string("a,\"b\""), std::int64_t{3}, 0.1, Cell()},
           {std::string("c|d_e"), std::int64_t{-1}, inf, Cell()},
           {Cell(), Cell(), std::numeric_limits<double>::quiet_NaN(), Cell()}}};
}

TEST_CASE("format_table: CSV quotes, keeps 17 digits, spells infinities", "[experiment]") {
  CHECK(format_table(sample(), TableFormat::csv) ==
        "name,n,value,empty\n\"a,\"\"b\"\"\",3,0.10000000000000001,\nc|d_e,-1,inf,\n,,nan,\n");
}

TEST_CASE("format_table: JSON keeps numbers, spells what it cannot say", "[experiment]") {
  CHECK(format_table(sample(), TableFormat::json) == R"([
 {
  "name": "a,\"b\"",
  "n": 3,
  "value": 0.1,
  "empty": null
 },
 {
  "name": "c|d_e",
  "n": -1,
  "value": "inf",
  "empty": null
 },
 {
  "name": null,
  "n": null,
  "value": "nan",
  "empty": null
 }
]
)");
}

TEST_CASE("format_table: text aligns words left and numbers right", "[experiment]") {
  CHECK(format_table(sample(), TableFormat::text) ==
        "name    n  value\n"
        "a,\"b\"   3    0.1\n"
        "c|d_e  -1    inf\n"
        "             nan\n");
}

TEST_CASE("format_table: Markdown and LaTeX escape what they would read", "[experiment]") {
  CHECK(format_table(sample(), TableFormat::markdown) ==
        "| name    |  n | value |\n"
        "| :------ | -: | ----: |\n"
        "| a,\"b\"   |  3 |   0.1 |\n"
        "| c\\|d\\_e | -1 |   inf |\n"
        "|         |    |   nan |\n");
  CHECK(format_table(sample(), TableFormat::latex) ==
        "\\begin{tabular}{lrr}\n"
        "name            &  n & value \\\\ \\hline\n"
        "a,\"b\"           &  3 &   0.1 \\\\\n"
        "c\\textbar{}d\\_e & -1 &   inf \\\\\n"
        "                &    &   nan \\\\\n"
        "\\end{tabular}\n");
  const Table signs{{"formula"}, {{std::string("a^2 <= ~b > \\c {5 %}")}}};
  CHECK_THAT(format_table(signs, TableFormat::latex),
             Catch::Contains("a\\textasciicircum{}2 \\textless{}= \\textasciitilde{}b "
                             "\\textgreater{} \\textbackslash{}c \\{5 \\%\\}"));
}

TEST_CASE("format_table: a bound is one as printed, too", "[experiment]") {
  const auto x = GENERATE(17.065499876, 9.9999999999, 1.0000000001, 123456789.4, 1.23456789e-200,
                          5.0, 0.1, 0.3);
  CAPTURE(x);
  const Table table{{"estimate", "lower_bound_best", "upper_bound_sharp", "certified_upper_bound"},
                    {{x, x, x, x}}};
  std::istringstream line(format_table(table, TableFormat::text));
  std::string heading;
  std::getline(line, heading);
  double estimate = 0.0;
  double lower = 0.0;
  double upper = 0.0;
  double certified = 0.0;
  line >> estimate >> lower >> upper >> certified;
  CHECK(lower <= x);
  CHECK(x <= upper);
  CHECK(certified == upper);
  CHECK(upper - lower <= 2.01e-6 * x);
  CHECK(estimate == Approx(x).epsilon(1e-6));
}

TEST_CASE("format_table: refuses a ragged table and an unknown format", "[experiment]") {
  CHECK_THROWS_WITH(format_table({{"a", "b"}, {{1.0}}}, TableFormat::csv),
                    "format_table: a row must have 2 cells, got 1");
  CHECK_THROWS_WITH(parse_table_format("html"),
                    "format must be text, csv, json, markdown or latex, got 'html'");
}

}  // namespace
}  // namespace lipsa
