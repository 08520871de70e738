#include "common/list.hpp"

#include <catch2/catch.hpp>

namespace lipsa::cli {
namespace {

TEST_CASE("parse_reals: values, ranges and both together", "[cli]") {
  CHECK(parse_reals("x", "8,-16,3e2") == std::vector<double>{8.0, -16.0, 300.0});
  CHECK(parse_reals("x", "8:256:2x") == std::vector<double>{8.0, 16.0, 32.0, 64.0, 128.0, 256.0});
  CHECK(parse_reals("x", "0:100:25") == std::vector<double>{0.0, 25.0, 50.0, 75.0, 100.0});
  CHECK(parse_reals("x", "-2:2:2,inf") ==
        std::vector<double>{-2.0, 0.0, 2.0, std::numeric_limits<double>::infinity()});
  CHECK(parse_reals("x", "0:0.3:0.1").size() == 4);
  const auto decades = parse_reals("x", "1:1000:3.1622776601683795x");
  REQUIRE(decades.size() == 7);
  CHECK(decades[2] == 10.0);
  CHECK(decades[6] == 1000.0);
}

TEST_CASE("parse_reals, parse_indices: name the option and the part at fault", "[cli]") {
  for (const char* text : {"", ",", "1,,2", "1:2", "1:2:3:4", "2:1:1", "1:2:0", "1:2:-1", "0:8:2x",
                           "1:8:1x", "1:inf:1", "nan", "1 ", "0x10", "1:1e9:1"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_reals("radius", text), Catch::StartsWith("--radius must be"));
  }
  CHECK(parse_indices("tokens", "2:8:2x") == std::vector<Index>{2, 4, 8});
  CHECK_THROWS_WITH(parse_indices("tokens", "1:2:0.5"),
                    "--tokens must be whole numbers up to 1e9, got '1:2:0.5'");
  CHECK_THROWS_AS(parse_indices("tokens", "1e10"), std::invalid_argument);
}

TEST_CASE("parse_words: none empty", "[cli]") {
  CHECK(parse_words("norm", "inf,2") == std::vector<std::string_view>{"inf", "2"});
  CHECK_THROWS_WITH(parse_words("norm", "inf,"), "--norm must be words between commas, got 'inf,'");
}

}  // namespace
}  // namespace lipsa::cli
