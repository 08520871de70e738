#include "lipsa/train/language_model_norms.hpp"

#include <Eigen/SVD>
#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/attention/jacobian.hpp"
#include "random_pieces.hpp"

namespace lipsa {
namespace {

const std::vector<Index> ids{0, 3, 1, 1, 2};

double dense_norm(const Matrix& j) {
  return Eigen::JacobiSVD<Matrix>(j).singularValues()(0);
}

TEST_CASE("language_model_norms: the norms of dense Jacobians, each below its bound", "[train]") {
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  const auto kind = GENERATE(AttentionKind::dot, AttentionKind::l2, AttentionKind::l2_untied);
  CAPTURE(to_string(placement), to_string(kind));
  Rng rng(1);
  const LanguageModel model =
      test::random_language_model(rng, {.placement = placement, .attention = kind}, 2, 4, 6);
  const auto norms = language_model_norms(model, ids);
  REQUIRE(norms.size() == 3);
  CHECK(norms[0].part == "blocks.0.attention");
  CHECK(norms[2].part == "network");

  // The network: differences of logits in each entry of the embedded tokens.
  const Matrix embedded = EmbeddingAt(model.embedding, ids, 5).output();
  Matrix j(5 * 4, 5 * 4);
  const double step = 1e-5;
  for (Index k = 0; k < j.cols(); ++k) {
    const auto logits = [&](double t) -> Matrix {
      Matrix x = embedded;
      x.data()[k] += t;
      return StackAt(model.stack, x, 5).output();
    };
    j.col(k) = ((logits(step) - logits(-step)) / (2.0 * step)).reshaped<Eigen::RowMajor>();
  }
  CHECK(norms[2].estimate.value == Approx(dense_norm(j)).epsilon(1e-7));  // step² and 1e-16/step
  CHECK(std::isnan(norms[2].upper_bound));

  // The first attention layer, whose input is known.
  const Block& block = model.stack.blocks[0];
  const Matrix x = placement == NormPlacement::post
                       ? embedded
                       : LayerNormAt(block.attention_norm, embedded).output();
  const Jacobian jacobian(block.attention.weights, x, block.attention.mask);
  CHECK(norms[0].estimate.value ==
        Approx(block.attention.gain * dense_norm(jacobian.dense())).epsilon(1e-10));
  for (const std::size_t k : {0U, 1U}) {
    CHECK(norms[k].estimate.converged());
    if (kind != AttentionKind::l2_untied) {
      CHECK_FALSE(norms[k].bound.empty());
    }
    if (!norms[k].bound.empty()) {
      CHECK(norms[k].estimate.value <= norms[k].upper_bound);
    }
  }
}

TEST_CASE("language_model_norms: one token, no gain, and numbers that are not finite", "[train]") {
  Rng rng(2);
  LanguageModel model = test::random_language_model(rng, {}, 2, 4, 6);
  model.stack.blocks[0].attention.gain = 0.0;
  const auto one = language_model_norms(model, std::span(ids).first(1));
  CHECK(one[0].estimate.value == 0.0);
  CHECK(one[0].upper_bound == 0.0);
  CHECK(one[2].estimate.converged());

  model.embedding.tokens.setConstant(1e308);
  model.embedding.positions.setConstant(1e308);
  const auto huge = language_model_norms(model, ids);
  CHECK(huge[0].estimate.termination == Termination::non_finite);
  CHECK(huge[0].bound.empty());
  CHECK(huge[2].estimate.termination == Termination::non_finite);
}

TEST_CASE("language_model_norms: of the recurrent model that of its dense Jacobian", "[train]") {
  Rng rng(3);
  const LstmModel model =
      initial_lstm_model({.vocabulary = 4, .width = 3, .hidden_width = 5, .layers = 2}, rng);
  const auto norms = language_model_norms(model, ids);
  REQUIRE(norms.size() == 1);
  CHECK(norms[0].part == "network");
  CHECK(norms[0].bound.empty());
  const LstmModelAt at(model, ids, 5);
  Matrix j(5 * 4, 5 * 3);
  for (Index k = 0; k < j.cols(); ++k) {
    Matrix unit = Matrix::Zero(5, 3);
    unit.data()[k] = 1.0;
    j.col(k) = at.apply(unit).reshaped<Eigen::RowMajor>();
  }
  CHECK(norms[0].estimate.value == Approx(dense_norm(j)).epsilon(1e-10));
}

}  // namespace
}  // namespace lipsa
