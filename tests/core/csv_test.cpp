#include "core/csv.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace lipsa {
namespace {

using Catch::Contains;

TEST_CASE("Csv: fields by the name of their column", "[core]") {
  const Csv table("name,x,n\na,-1.5e300,0\nb,,9007199254740992\n", "t.csv", {"name", "x", "n"});
  REQUIRE(table.rows().size() == 2);
  CHECK(table.rows()[0].text("name") == "a");
  CHECK(table.rows()[0].number("x") == -1.5e300);
  CHECK(table.rows()[0].index("n") == 0);
  CHECK(std::isnan(table.rows()[1].number("x")));
  CHECK(table.rows()[1].index("n") == Index{1} << 53);
  CHECK(Csv("a", "t.csv", {"a"}).rows().empty());
}

TEST_CASE("Csv: what is none is refused with its place", "[core]") {
  const auto [text, message] = GENERATE(
      table<std::string, std::string>({{"", "t.csv: row 1: expected \"a,b\", found \"\""},
                                       {"a;b\n1;2\n", "row 1: expected"},
                                       {"a,b\n1,2\n3\n", "row 3: expected 2 fields, found 1"},
                                       {"a,b\n1,2,3\n", "row 2: expected 2 fields, found 3"},
                                       {"a,b\n1,2\n\n", "row 3: expected 2 fields, found 1"}}));
  CAPTURE(text);
  const auto read = [&, t = text] { return Csv(t, "t.csv", {"a", "b"}).rows().size(); };
  CHECK_THROWS_WITH(read(), Contains(message));
}

TEST_CASE("Csv: a field that is no number is refused with row and column", "[core]") {
  const Csv table("a\n1x\n-1\n1.5\nnan\n1e300\n", "t.csv", {"a"});
  CHECK_THROWS_WITH(table.rows()[0].number("a"),
                    Contains("t.csv: row 2: expected a number for a, found \"1x\""));
  for (const std::size_t row : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    CHECK_THROWS_WITH(table.rows()[row].index("a"), Contains("expected a whole number for a"));
  }
}

}  // namespace
}  // namespace lipsa
