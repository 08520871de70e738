#include "lipsa/model/any_language_model.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>

#include "random_pieces.hpp"

namespace lipsa {
namespace {

const std::vector<Index> ids{0, 3, 1, 1, 2, 3};
const DropoutStream stream{.seed = 1, .step = 2};

template <class At, class Model>
void check_alike(const Model& model) {
  const AnyLanguageModel any = model;
  const auto dropout = GENERATE(std::optional<DropoutStream>{}, std::optional(stream));
  At at(model, ids, 3, dropout);
  AnyLanguageModelAt any_at(any, ids, 3, dropout);
  CHECK(any_at.output() == at.output());
  Rng rng(2);
  const Matrix dy = normal_matrix(rng, 6, 4);
  Model gradient = zeros_like(model);
  AnyLanguageModel any_gradient = zeros_like(any);
  at.backward(dy, gradient);
  any_at.backward(dy, any_gradient);
  const auto expected = parameters(gradient);
  const auto found = parameters(any_gradient);
  REQUIRE(found.size() == expected.size());
  double largest = 0.0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    CHECK(found[k].name == expected[k].name);
    CHECK(found[k].values == expected[k].values);
    largest = std::max(largest, found[k].values.cwiseAbs().maxCoeff());
  }
  CHECK(largest > 0.0);
  CHECK(any_at.take_output() == at.take_output());
}

TEST_CASE("AnyLanguageModelAt: to the bit what the model it holds gives", "[model]") {
  Rng rng(1);
  LanguageModel transformer = test::random_language_model(rng, {}, 2, 4, 3);
  transformer.dropout = 0.3;
  LstmModel lstm = initial_lstm_model({.vocabulary = 4, .width = 3, .hidden_width = 5}, rng);
  lstm.dropout = 0.3;
  check_alike<LanguageModelAt>(transformer);
  check_alike<LstmModelAt>(lstm);
}

TEST_CASE("most_tokens: the positions there are, without which any length will do", "[model]") {
  Rng rng(1);
  LanguageModel transformer = test::random_language_model(rng, {}, 1, 4, 3);
  CHECK(most_tokens(transformer) == 3);
  transformer.embedding.positions.resize(0, 0);
  CHECK(most_tokens(transformer) == std::nullopt);
  CHECK(most_tokens(initial_lstm_model({.vocabulary = 4}, rng)) == std::nullopt);
}

TEST_CASE("AnyLanguageModelAt: a gradient of the other architecture is refused", "[model]") {
  Rng rng(1);
  const AnyLanguageModel transformer = test::random_language_model(rng, {}, 1, 4, 3);
  AnyLanguageModel lstm = initial_lstm_model({.vocabulary = 4}, rng);
  const AnyLanguageModelAt at(transformer, ids, 3);
  CHECK_THROWS_AS(at.backward(Matrix::Zero(6, 4), lstm), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
