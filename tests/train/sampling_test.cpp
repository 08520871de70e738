#include "lipsa/train/sampling.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "random_pieces.hpp"

namespace lipsa {
namespace {

TEST_CASE("draw: each index as often as the softmax says", "[train]") {
  const auto temperature = GENERATE(0.5, 1.0, 3.0);
  CAPTURE(temperature);
  const Vector logits = (Vector(4) << 1.0, -2.0, 0.0, 1.5).finished();
  const Vector weights = (logits / temperature).array().exp();
  constexpr int draws = 200000;
  Vector count = Vector::Zero(4);
  Rng rng(1);
  for (int k = 0; k < draws; ++k) {
    count(draw(logits, temperature, rng)) += 1.0;
  }
  for (Index k = 0; k < 4; ++k) {
    const double p = weights(k) / weights.sum();
    // Five standard deviations.
    CHECK(std::abs(count(k) / draws - p) < 5.0 * std::sqrt(p * (1.0 - p) / draws));
  }
}

TEST_CASE("draw: temperature 0 takes the first of the largest", "[train]") {
  Rng rng(2);
  const Vector logits = (Vector(4) << 1.0, 3.0, 3.0, -1.0).finished();
  for (int k = 0; k < 20; ++k) {
    CHECK(draw(logits, 0.0, rng) == 1);
  }
  Rng other(2);
  for (int k = 0; k < 20; ++k) {
    static_cast<void>(other.uniform());
  }
  CHECK(rng.next() == other.next());
}

TEST_CASE("draw: logits and temperatures of any size", "[train]") {
  Rng rng(3);
  const double huge = std::numeric_limits<double>::max();
  const Vector apart = (Vector(3) << -huge, huge, -huge).finished();
  const auto temperature = GENERATE(5e-324, 1e-300, 1e-3, 1.0, 1e300);
  CAPTURE(temperature);
  for (int k = 0; k < 100; ++k) {
    CHECK(draw(apart, temperature, rng) == 1);
  }
  CHECK(draw(Vector::Constant(1, -huge), temperature, rng) == 0);
  bool seen[2] = {false, false};
  for (int k = 0; k < 100; ++k) {
    seen[draw(Vector::Constant(2, huge), temperature, rng)] = true;
  }
  CHECK((seen[0] && seen[1]));
}

TEST_CASE("draw: refuses what is no prediction", "[train]") {
  Rng rng(4);
  CHECK_THROWS_WITH(draw(Vector(), 1.0, rng), "draw: logits must be at least one, got none");
  CHECK_THROWS_AS(draw(Vector::Constant(2, std::nan("")), 1.0, rng), std::invalid_argument);
  CHECK_THROWS_AS(draw(Vector::Constant(2, HUGE_VAL), 1.0, rng), std::invalid_argument);
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL}) {
    CHECK_THROWS_AS(draw(Vector::Ones(2), bad, rng), std::invalid_argument);
  }
}

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

TEST_CASE("sample: the seed decides, and no more characters count than there are positions",
          "[train]") {
  Rng rng(1);
  const AnyLanguageModel model = test::random_language_model(rng, {}, 2, 5, 6);
  const Ids ids = sample(model, Ids{1, 2}, {.length = 40, .seed = 3});
  CHECK(sample(model, Ids{1, 2}, {.length = 40, .seed = 3}) == ids);
  CHECK(sample(model, Ids{1, 2}, {.length = 40, .seed = 4}) != ids);
  const Ids end{0, 4, 1, 1, 2, 3};
  Ids longer{2, 2, 3};
  longer.insert(longer.end(), end.begin(), end.end());
  CHECK(sample(model, longer, {.seed = 3}) == sample(model, end, {.seed = 3}));
}

TEST_CASE("sample: of a recurrent model, after no more characters than asked for", "[train]") {
  Rng rng(1);
  LstmModel lstm = initial_lstm_model({.vocabulary = 5, .width = 4, .hidden_width = 8}, rng);
  lstm.layers[0].W_X *= 4.0;  // so that what is long past is felt
  lstm.layers[0].W_H *= 4.0;
  lstm.output.W *= 10.0;
  const AnyLanguageModel model = lstm;
  const Ids end{0, 4, 1, 1, 2, 3};
  Ids longer{2, 2, 3};
  longer.insert(longer.end(), end.begin(), end.end());
  const auto after = [&](const Ids& prompt, Index context) {
    return sample(model, prompt, {.length = 100, .context = context, .seed = 3});
  };
  CHECK(after(longer, 6) == after(end, 6));
  CHECK(after(longer, 9) != after(end, 9));
}

TEST_CASE("sample: refuses what makes no sense", "[train]") {
  const AnyLanguageModel model = constant_model(Vector::Zero(3), 3);
  CHECK_THROWS_WITH(sample(model, {}), "sample: prompt must not be empty, got no characters");
  CHECK_THROWS_AS(sample(model, Ids{3}), std::invalid_argument);
  CHECK_THROWS_AS(sample(model, Ids{0}, {.length = -1}), std::invalid_argument);
  CHECK_THROWS_AS(sample(model, Ids{0}, {.temperature = -1.0}), std::invalid_argument);
  CHECK_THROWS_AS(sample(model, Ids{0}, {.temperature = NAN}), std::invalid_argument);
  CHECK_THROWS_AS(sample(model, Ids{0}, {.context = 0}), std::invalid_argument);
  CHECK_THROWS_AS(sample(constant_model(Vector::Constant(3, NAN), 3), Ids{0}), std::runtime_error);
}

}  // namespace
}  // namespace lipsa
