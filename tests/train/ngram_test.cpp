#include "lipsa/train/ngram.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

using Ids = std::vector<CharacterId>;

TEST_CASE("bigram_nll: three characters by hand", "[train]") {
  const Ids train{0, 1, 0, 1, 0, 2};  // 01 twice, 10 twice, 02 once
  // p(1|0) = 3/6, p(1|1) = 1/5, p(0|1) = 3/5, p(2|0) = 2/6, p(0|2) = 1/3
  const Ids text{0, 1, 1, 0, 2, 0};
  CHECK(bigram_nll(train, text, 3) == Approx(-(std::log(0.5) + std::log(0.2) + std::log(0.6) +
                                               std::log(2.0 / 6) + std::log(1.0 / 3)) /
                                             5)
                                          .epsilon(1e-15));
}

TEST_CASE("bigram_nll: nothing seen predicts nothing, and the same at once what never changes",
          "[train]") {
  CHECK(bigram_nll({}, Ids{0, 1, 2, 0}, 7) == Approx(std::log(7.0)).epsilon(1e-15));
  const Ids alternating = [] {
    Ids ids(2001);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      ids[k] = static_cast<CharacterId>(k % 2);
    }
    return ids;
  }();
  CHECK(bigram_nll(alternating, alternating, 2) == Approx(std::log(1002.0 / 1001)).epsilon(1e-12));
}

TEST_CASE("bigram_nll: near the entropy rate of a chain that it can learn", "[train]") {
  // From each of 3 characters the next with probability 1/2, the one after it and itself 1/4.
  Rng rng(1);
  Ids ids(200001);
  for (std::size_t k = 1; k < ids.size(); ++k) {
    const auto u = rng.next() % 4;
    ids[k] = static_cast<CharacterId>((ids[k - 1] + (u < 2 ? 1 : u == 2 ? 2 : 0)) % 3);
  }
  const std::span<const CharacterId> all(ids);
  // 1.04 nats, standard deviation 0.35 a character: 0.0011 over 1e5 of them.
  CHECK(bigram_nll(all.first(100001), all.last(100001), 3) ==
        Approx(1.5 * std::log(2.0)).margin(0.005));
}

TEST_CASE("unigram_nll: three characters by hand", "[train]") {
  const Ids train{0, 1, 0, 1, 0, 2};  // p = 4/9, 3/9, 2/9
  CHECK(unigram_nll(train, Ids{2, 0, 1, 2}, 3) ==
        Approx(-(std::log(4.0 / 9) + std::log(3.0 / 9) + std::log(2.0 / 9)) / 3).epsilon(1e-15));
  CHECK_THROWS_WITH(unigram_nll(train, Ids{0}, 3),
                    "unigram_nll: text must have at least 2 characters, got 1");
}

TEST_CASE("bigram_nll: refuses what has no pairs or other ids", "[train]") {
  CHECK_THROWS_AS(bigram_nll({}, Ids{0}, 3), std::invalid_argument);
  CHECK_THROWS_AS(bigram_nll({}, {}, 3), std::invalid_argument);
  CHECK_THROWS_WITH(bigram_nll(Ids{0, 3}, Ids{0, 1}, 3),
                    "bigram_nll: ids must be from 0 below 3, got 3");
  CHECK_THROWS_AS(bigram_nll(Ids{0, 1}, Ids{-1, 1}, 3), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
