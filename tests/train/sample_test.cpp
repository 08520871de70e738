#include "lipsa/train/sample.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "random_pieces.hpp"

namespace lipsa {
namespace {

using Ids = std::vector<CharacterId>;

/// Logits b whatever the text: no block, no embedding.
LanguageModel constant_model(const Vector& b, Index positions) {
  LanguageModel model;
  model.embedding.tokens = Matrix::Zero(b.size(), 2);
  model.embedding.positions = Matrix::Zero(positions, 2);
  model.stack.output = Linear{.W = Matrix::Zero(2, b.size()), .b = b};
  return model;
}

TEST_CASE("sample: characters come as often as they are probable", "[train]") {
  const double temperature = GENERATE(1.0, 0.5, 3.0);
  const Vector b = (Vector(4) << 1.0, -1.0, 0.5, -800.0 * temperature).finished();
  const Ids ids = sample(constant_model(b, 3), Ids{0},
                         {.length = 20000, .temperature = temperature, .seed = 1});
  REQUIRE(ids.size() == 20000);
  const Vector p = (b / temperature).array().exp() / (b / temperature).array().exp().sum();
  for (Index id = 0; id < 4; ++id) {
    const auto count = static_cast<double>(std::count(ids.begin(), ids.end(), id));
    // Five standard deviations, at most 0.5/√20000 each.
    CHECK(std::abs(count / 20000.0 - p(id)) <= 5.0 * std::sqrt(p(id) * (1.0 - p(id)) / 20000.0));
  }
}

TEST_CASE("sample: at temperature 0 the most probable, the first of equals", "[train]") {
  const Vector b = (Vector(3) << 0.0, 2.0, 2.0).finished();
  CHECK(sample(constant_model(b, 3), Ids{0}, {.length = 3, .temperature = 0.0}) == Ids{1, 1, 1});
  CHECK(sample(constant_model(b, 3), Ids{0}, {.length = 0}).empty());
}

TEST_CASE("sample: the seed decides, and only as many characters count as there are positions",
          "[train]") {
  Rng rng(1);
  const LanguageModel model = test::random_language_model(rng, {}, 2, 5, 6);
  const Ids ids = sample(model, Ids{1, 2}, {.length = 40, .seed = 3});
  CHECK(sample(model, Ids{1, 2}, {.length = 40, .seed = 3}) == ids);
  CHECK(sample(model, Ids{1, 2}, {.length = 40, .seed = 4}) != ids);
  const Ids end{0, 4, 1, 1, 2, 3};
  Ids longer{2, 2, 3};
  longer.insert(longer.end(), end.begin(), end.end());
  CHECK(sample(model, longer, {.seed = 3}) == sample(model, end, {.seed = 3}));
}

TEST_CASE("sample: refuses what makes no sense", "[train]") {
  const LanguageModel model = constant_model(Vector::Zero(3), 3);
  CHECK_THROWS_WITH(sample(model, {}), "sample: prompt must not be empty, got no characters");
  CHECK_THROWS_AS(sample(model, Ids{3}), std::invalid_argument);
  CHECK_THROWS_AS(sample(model, Ids{0}, {.length = -1}), std::invalid_argument);
  CHECK_THROWS_AS(sample(model, Ids{0}, {.temperature = -1.0}), std::invalid_argument);
  CHECK_THROWS_AS(sample(model, Ids{0}, {.temperature = NAN}), std::invalid_argument);
  CHECK_THROWS_AS(sample(constant_model(Vector::Constant(3, NAN), 3), Ids{0}), std::runtime_error);
}

}  // namespace
}  // namespace lipsa
