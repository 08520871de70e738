#include "lipsa/model/lstm_model.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "lipsa/linalg/spectral_norm.hpp"
#include "lipsa/model/cross_entropy.hpp"
#include "piece_checks.hpp"

namespace lipsa {
namespace {

const std::vector<Index> ids{0, 3, 1, 1, 2, 3, 0, 0};
const std::vector<Index> targets{3, 1, 1, -1, 3, 0, 0, -1};

LstmModel small_model(Index layers, double dropout) {
  Rng rng(1);
  LstmModel model =
      initial_lstm_model({.vocabulary = 4, .width = 3, .hidden_width = 5, .layers = layers}, rng);
  model.dropout = dropout;
  return model;
}

double loss(const LstmModel& model, const std::optional<DropoutStream>& dropout) {
  return cross_entropy(LstmModelAt(model, ids, 4, dropout).output(), targets).nats;
}

TEST_CASE("initial_lstm_model: shapes and names, nothing larger than Glorot's width", "[model]") {
  const LstmModel model = small_model(2, 0.0);
  std::vector<std::string> names;
  for (const ConstParameter& array : parameters(model)) {
    names.push_back(array.name);
  }
  CHECK(names == std::vector<std::string>{"embedding.tokens", "layers.0.W_X", "layers.0.W_H",
                                          "layers.0.b", "layers.1.W_X", "layers.1.W_H",
                                          "layers.1.b", "output.W", "output.b"});
  CHECK(model.layers[1].width() == 5);
  CHECK(model.output.W.cwiseAbs().maxCoeff() <= std::sqrt(6.0 / 9));
  CHECK(model.embedding.tokens.cwiseAbs().maxCoeff() > 0.0);
  Rng rng(1);
  CHECK_THROWS_AS(initial_lstm_model({.vocabulary = 0}, rng), std::invalid_argument);
  CHECK_THROWS_AS(initial_lstm_model({.layers = -1}, rng), std::invalid_argument);
}

TEST_CASE("LstmModelAt: the gradient of the loss in every array", "[model]") {
  const auto layers = GENERATE(Index{0}, Index{1}, Index{3});
  const auto rate = GENERATE(0.0, 0.4);
  CAPTURE(layers, rate);
  LstmModel model = small_model(layers, rate);
  Rng rng(2);
  const std::optional<DropoutStream> stream = DropoutStream{.seed = 1, .step = 2};
  const LstmModelAt at(model, ids, 4, stream);
  LstmModel gradient = zeros_like(model);
  at.backward(cross_entropy(at.output(), targets).gradient, gradient);

  const auto arrays = parameters(model);
  const auto gradients = parameters(gradient);
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

TEST_CASE("LstmModelAt: the map from embedded tokens to logits has that Jacobian", "[model]") {
  const auto rate = GENERATE(0.0, 0.4);
  LstmModel model = small_model(2, rate);
  Rng rng(3);
  const std::optional<DropoutStream> stream = DropoutStream{.seed = 3};
  // Six tokens that are each there once: their embedding is the input, row by row.
  const std::vector<Index> all{0, 1, 2, 3, 4, 5};
  const auto make = [&](const Matrix& x) {
    model.embedding.tokens = x;
    return LstmModelAt(model, all, 3, stream);
  };
  const Matrix x = normal_matrix(rng, 6, 3);
  CHECK(test::input_derivative_error(make, x, rng) < test::difference_tolerance);
  const LstmModelAt at = make(x);
  CHECK(test::adjoint_error(at, rng) < test::adjoint_tolerance);
  LstmModel gradient = zeros_like(model);
  const Matrix u = normal_matrix(rng, 6, 4);
  at.backward(u, gradient);
  CHECK(gradient.embedding.tokens == at.apply_adjoint(u));

  const SpectralNorm norm = spectral_norm(JacobianOperator(at));
  REQUIRE(norm.converged());
  const Matrix v = normal_matrix(rng, 6, 3);
  CHECK(at.apply(v).norm() <= norm.value * v.norm());
}

TEST_CASE("LstmModelAt: dropout off is no dropout, and evaluation has none", "[model]") {
  LstmModel model = small_model(2, 0.0);
  const double plain = loss(model, {});
  CHECK(loss(model, DropoutStream{.seed = 1}) == plain);
  model.dropout = 0.4;
  CHECK(loss(model, {}) == plain);
  CHECK(loss(model, DropoutStream{.seed = 1}) != plain);
  CHECK(loss(model, DropoutStream{.seed = 1}) != loss(model, DropoutStream{.seed = 2}));
}

TEST_CASE("LstmModelAt: later tokens and other sequences do not count", "[model]") {
  const LstmModel model = small_model(2, 0.0);
  std::vector<Index> changed = ids;
  changed[3] = 2;
  const Matrix y = LstmModelAt(model, ids, 4).output();
  const Matrix z = LstmModelAt(model, changed, 4).output();
  CHECK(y.topRows(3) == z.topRows(3));
  CHECK(y.row(3) != z.row(3));
  CHECK(y.bottomRows(4) == z.bottomRows(4));
}

TEST_CASE("LstmModelAt: refuses what does not fit", "[model]") {
  LstmModel model = small_model(2, 0.0);
  CHECK_THROWS_AS(LstmModelAt(model, ids, 3), std::invalid_argument);
  CHECK_THROWS_AS(LstmModelAt(model, std::vector<Index>{0, 4}, 2), std::invalid_argument);
  const LstmModelAt at(model, ids, 4);
  LstmModel shallow = small_model(1, 0.0);
  CHECK_THROWS_WITH(at.backward(at.output(), shallow),
                    "LstmModelAt: gradient must have 2 layers, got 1");
  std::swap(model.layers[0], model.layers[1]);
  CHECK_THROWS_AS(LstmModelAt(model, ids, 4), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
