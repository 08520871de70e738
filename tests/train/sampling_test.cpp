#include "lipsa/train/sampling.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace lipsa {
namespace {

TEST_CASE("sample: each index as often as the softmax says", "[train]") {
  const auto temperature = GENERATE(0.5, 1.0, 3.0);
  CAPTURE(temperature);
  const Vector logits = (Vector(4) << 1.0, -2.0, 0.0, 1.5).finished();
  const Vector weights = (logits / temperature).array().exp();
  constexpr int draws = 200000;
  Vector count = Vector::Zero(4);
  Rng rng(1);
  for (int k = 0; k < draws; ++k) {
    count(sample(logits, temperature, rng)) += 1.0;
  }
  for (Index k = 0; k < 4; ++k) {
    const double p = weights(k) / weights.sum();
    // Five standard deviations.
    CHECK(std::abs(count(k) / draws - p) < 5.0 * std::sqrt(p * (1.0 - p) / draws));
  }
}

TEST_CASE("sample: temperature 0 takes the first of the largest", "[train]") {
  Rng rng(2);
  const Vector logits = (Vector(4) << 1.0, 3.0, 3.0, -1.0).finished();
  for (int k = 0; k < 20; ++k) {
    CHECK(sample(logits, 0.0, rng) == 1);
  }
  Rng other(2);
  for (int k = 0; k < 20; ++k) {
    static_cast<void>(other.uniform());
  }
  CHECK(rng.next() == other.next());
}

TEST_CASE("sample: logits and temperatures of any size", "[train]") {
  Rng rng(3);
  const double huge = std::numeric_limits<double>::max();
  const Vector apart = (Vector(3) << -huge, huge, -huge).finished();
  const auto temperature = GENERATE(5e-324, 1e-300, 1e-3, 1.0, 1e300);
  CAPTURE(temperature);
  for (int k = 0; k < 100; ++k) {
    CHECK(sample(apart, temperature, rng) == 1);
  }
  CHECK(sample(Vector::Constant(1, -huge), temperature, rng) == 0);
  bool seen[2] = {false, false};
  for (int k = 0; k < 100; ++k) {
    seen[sample(Vector::Constant(2, huge), temperature, rng)] = true;
  }
  CHECK((seen[0] && seen[1]));
}

TEST_CASE("sample: refuses what is no prediction", "[train]") {
  Rng rng(4);
  CHECK_THROWS_WITH(sample(Vector(), 1.0, rng), "sample: logits must be at least one, got none");
  CHECK_THROWS_AS(sample(Vector::Constant(2, std::nan("")), 1.0, rng), std::invalid_argument);
  CHECK_THROWS_AS(sample(Vector::Constant(2, HUGE_VAL), 1.0, rng), std::invalid_argument);
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL}) {
    CHECK_THROWS_AS(sample(Vector::Ones(2), bad, rng), std::invalid_argument);
  }
}

}  // namespace
}  // namespace lipsa
