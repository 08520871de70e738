#include "lipsa/model/initial_weights.hpp"

#include <catch2/catch.hpp>

namespace lipsa {
namespace {

TEST_CASE("parse_initialiser: reads what to_string writes", "[model]") {
  for (const char* text : {"identity", "glorot", "gaussian:0.1", "gaussian:2"}) {
    CHECK(to_string(parse_initialiser(text)) == text);
  }
  for (const char* text : {"", "gaussian", "gaussian:", "gaussian:0", "gaussian:-1", "gaussian:x",
                           "gaussian:1x", "gaussian:inf", "Glorot"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_initialiser(text), Catch::StartsWith("weights must be identity"));
  }
}

TEST_CASE("initial_layer: identity gives each head its own features", "[model]") {
  const MultiHead layer = initial_layer({}, AttentionKind::dot, 4, 2, 0);
  CHECK(layer.W_Q == Matrix::Identity(4, 4));
  CHECK(layer.head_width() == 2);
  CHECK(layer.W_K.rows() == 4);
  CHECK(initial_layer({}, AttentionKind::l2, 4, 2, 0).W_K.size() == 0);
}

TEST_CASE("initial_layer: random weights have the spread they name", "[model]") {
  const MultiHead glorot = initial_layer({Initialiser::Kind::glorot}, AttentionKind::dot, 64, 8, 1);
  CHECK(glorot.W_V.cwiseAbs().maxCoeff() <= std::sqrt(6.0 / 128.0));
  CHECK(glorot.W_V.cwiseAbs().maxCoeff() >= 0.99 * std::sqrt(6.0 / 128.0));
  const MultiHead gaussian =
      initial_layer({Initialiser::Kind::gaussian, 0.3}, AttentionKind::dot, 64, 8, 1);
  // 4096 entries: the mean square has a relative standard error of √(2/4096) = 0.022
  CHECK(gaussian.W_K.squaredNorm() / 4096.0 == Approx(0.09).epsilon(5.0 * 0.022));
  CHECK((gaussian.W_K - gaussian.W_Q).norm() > 1.0);
}

TEST_CASE("initial_layer: seeds differ, the kind does not change shared matrices", "[model]") {
  const Initialiser glorot{Initialiser::Kind::glorot};
  const MultiHead dot = initial_layer(glorot, AttentionKind::dot, 6, 2, 1);
  const MultiHead l2 = initial_layer(glorot, AttentionKind::l2, 6, 2, 1);
  CHECK(dot.W_V == l2.W_V);
  const MultiHead cosine = initial_layer(glorot, AttentionKind::cosine, 6, 2, 1);
  const MultiHead sigmoid = initial_layer(glorot, AttentionKind::sigmoid, 6, 2, 1);
  CHECK(cosine.W_K == dot.W_K);
  CHECK(cosine.epsilon == 1e-6);
  CHECK(sigmoid.W_O == dot.W_O);
  CHECK(sigmoid.score_bias == 0.0);
  require_valid(cosine);
  require_valid(sigmoid);
  CHECK(dot.W_V != initial_layer(glorot, AttentionKind::dot, 6, 2, 2).W_V);
  CHECK_THROWS_WITH(initial_layer(glorot, AttentionKind::dot, 6, 4, 1),
                    "initial_layer: H must divide D = 6, got 4");
}

}  // namespace
}  // namespace lipsa
