#include "lipsa/attention/mask.hpp"

#include <catch2/catch.hpp>

namespace lipsa {
namespace {

TEST_CASE("Mask: who sees whom", "[attention]") {
  CHECK(Mask::none().visible(0, 5));
  CHECK(Mask::causal().visible(5, 5));
  CHECK(Mask::causal().visible(5, 0));
  CHECK_FALSE(Mask::causal().visible(0, 5));
  Mask::Visible visible(2, 2);
  visible << true, true, false, false;
  const Mask mask = Mask::arbitrary(visible);
  CHECK(mask.visible(0, 1));
  CHECK_FALSE(mask.visible(1, 0));
  CHECK(mask.tokens() == 2);
  CHECK(mask.blind_tokens(2) == std::vector<Index>{1});
  CHECK(Mask::causal().blind_tokens(9).empty());
}

TEST_CASE("Mask: must be square", "[attention]") {
  CHECK_THROWS_WITH(Mask::arbitrary(Mask::Visible(2, 3)),
                    "Mask: visible must be square, got 2 x 3");
}

}  // namespace
}  // namespace lipsa
