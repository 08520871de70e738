#include "lipsa/model/language_model.hpp"

#include <catch2/catch.hpp>

#include "lipsa/model/cross_entropy.hpp"
#include "piece_checks.hpp"
#include "random_pieces.hpp"

namespace lipsa {
namespace {

const std::vector<Index> ids{0, 3, 1, 1, 2, 3, 0, 0};
const std::vector<Index> targets{3, 1, 1, -1, 3, 0, 0, -1};

double loss(const LanguageModel& model, const std::optional<DropoutStream>& dropout) {
  return cross_entropy(LanguageModelAt(model, ids, 4, dropout).output(), targets).nats;
}

TEST_CASE("LanguageModelAt: the gradient of the loss in every array", "[model]") {
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  const auto kind = GENERATE(from_range(test::kinds));
  const auto rate = GENERATE(0.0, 0.4);
  CAPTURE(to_string(placement), to_string(kind), rate);
  Rng rng(1);
  LanguageModel model =
      test::random_language_model(rng, {.placement = placement, .attention = kind}, 2, 4, 6);
  model.dropout = rate;
  model.stack.blocks[1].dropout = rate;
  const std::optional<DropoutStream> stream = DropoutStream{.seed = 1, .step = 2};
  const LanguageModelAt at(model, ids, 4, stream);
  LanguageModel gradient = zeros_like(model);
  at.backward(cross_entropy(at.output(), targets).gradient, gradient);

  const auto arrays = parameters(model);
  const auto gradients = parameters(gradient);
  CHECK(arrays.front().name == "embedding.tokens");
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    CAPTURE(arrays[k].name);
    auto values = arrays[k].values;
    const Vector start = values;
    const Vector direction = normal_matrix(rng, start.size(), 1);
    const Matrix slope = test::central_difference([&](double t) -> Matrix {
      values = start + t * direction;
      return Matrix::Constant(1, 1, loss(model, stream));
    });
    values = start;
    const double found = gradients[k].values.dot(direction);
    CHECK(std::abs(found - slope(0, 0)) <= test::difference_tolerance * (1.0 + std::abs(found)));
  }
}

TEST_CASE("LanguageModelAt: dropout off is no dropout", "[model]") {
  Rng rng(2);
  LanguageModel model = test::random_language_model(rng, {}, 2, 4, 6);
  const double plain = loss(model, {});
  CHECK(loss(model, DropoutStream{.seed = 1}) == plain);
  model.dropout = 0.4;
  CHECK(loss(model, {}) == plain);
  CHECK(loss(model, DropoutStream{.seed = 1}) != plain);
}

TEST_CASE("LanguageModelAt: with causal masks later tokens do not count", "[model]") {
  Rng rng(3);
  const LanguageModel model = test::random_language_model(rng, {}, 2, 4, 6);
  std::vector<Index> changed = ids;
  changed[3] = 2;
  const Matrix y = LanguageModelAt(model, ids, 4).output();
  const Matrix z = LanguageModelAt(model, changed, 4).output();
  CHECK(y.topRows(3) == z.topRows(3));
  CHECK(y.row(3) != z.row(3));
  CHECK(y.bottomRows(4) == z.bottomRows(4));
  const Matrix shorter = LanguageModelAt(model, std::span(ids).first(2), 2).output();
  CHECK((shorter - y.topRows(2)).norm() <= 1e-13 * y.norm());
}

}  // namespace
}  // namespace lipsa
