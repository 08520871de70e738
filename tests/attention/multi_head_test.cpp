#include "lipsa/attention/multi_head.hpp"

#include <catch2/catch.hpp>

#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::random_layer;
using test::Shape;

/// The definition, head by head, token by token, with nothing in common with the library.
Matrix by_definition(const MultiHead& layer, const Matrix& x) {
  const Index n = x.rows();
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  Matrix heads = Matrix::Zero(n, layer.heads * d_v);
  for (Index h = 0; h < layer.heads; ++h) {
    const Matrix w_q = layer.W_Q.middleCols(h * d, d);
    const Matrix w_k =
        layer.kind == AttentionKind::l2 ? w_q : Matrix(layer.W_K.middleCols(h * d, d));
    Matrix w_v = layer.W_V.middleCols(h * d_v, d_v);
    if (layer.kind == AttentionKind::l2) {
      w_v = w_q * w_q.transpose() / std::sqrt(static_cast<double>(d)) * w_v;
    }
    const auto unit = [&](Vector z) -> Vector {
      return layer.kind == AttentionKind::cosine ? z / std::sqrt(z.dot(z) + layer.epsilon) : z;
    };
    for (Index i = 0; i < n; ++i) {
      double total = layer.kind == AttentionKind::sigmoid ? 1.0 : 0.0;
      for (Index j = 0; j < n; ++j) {
        Vector q = (x.row(i) * w_q).transpose() + layer.b_Q.segment(h * d, d);
        Vector k = (x.row(j) * w_k).transpose();
        k += layer.kind == AttentionKind::l2 ? layer.b_Q.segment(h * d, d)
                                             : layer.b_K.segment(h * d, d);
        const bool l2 = layer.kind == AttentionKind::l2 || layer.kind == AttentionKind::l2_untied;
        const double score = l2 ? -(q - k).squaredNorm() : unit(q).dot(unit(k));
        double weight = std::exp(score / std::sqrt(static_cast<double>(d)));
        if (layer.kind == AttentionKind::sigmoid) {
          weight = 1.0 / (1.0 + 1.0 / (weight * std::exp(layer.score_bias)));
        } else {
          total += weight;
        }
        const Vector v = (x.row(j) * w_v).transpose() + layer.b_V.segment(h * d_v, d_v);
        heads.row(i).segment(h * d_v, d_v) += weight * unit(v).transpose();
      }
      heads.row(i).segment(h * d_v, d_v) /= total;
    }
  }
  return (heads * layer.W_O).rowwise() + layer.b_O.transpose();
}

TEST_CASE("attend: agrees with the definition", "[attention]") {
  const auto kind = GENERATE(from_range(test::kinds));
  const auto shape = GENERATE(from_range(test::shapes));
  CAPTURE(to_string(kind), shape);
  Rng rng(21);
  const MultiHead layer = random_layer(rng, kind, shape);
  const Matrix x = 0.5 * normal_matrix(rng, shape.n, shape.D);
  const Matrix expected = by_definition(layer, x);
  CHECK((attend(layer, x) - expected).norm() <= 1e-13 * (1.0 + expected.norm()));
}

TEST_CASE("attend: heads take their own columns (case A9)", "[attention]") {
  // Values of head h are the constant 10^h: the output must read 1, 10, 100.
  MultiHead layer{.kind = AttentionKind::dot, .heads = 3};
  layer.W_Q = Matrix::Zero(1, 6);
  layer.W_K = Matrix::Zero(1, 6);
  layer.W_V = (Matrix(1, 3) << 1.0, 10.0, 100.0).finished();
  const Matrix y = attend(layer, Matrix::Ones(4, 1));
  CHECK(y == layer.W_V.replicate(4, 1));
}

TEST_CASE("value_map: tied L2 multiplies by A_h, and A_h by W_V", "[attention]") {
  Rng rng(22);
  const Shape shape{3, 4, 2, 3, 2, 4};
  const MultiHead layer = random_layer(rng, AttentionKind::l2, shape);
  const Matrix w_q = layer.W_Q.rightCols(3);
  const Matrix expected = w_q * w_q.transpose() / std::sqrt(3.0) * layer.W_V.rightCols(2);
  CHECK((value_map(layer, 1) - expected).norm() <= 1e-14);
  CHECK_THROWS_WITH(value_map(layer, 2), "value_map: head must be in [0, 2), got 2");
}

TEST_CASE("attend: a hand computation of cosine and of sigmoid attention", "[attention]") {
  // Tokens 1 and −2 of one feature, all weights 1.
  const Matrix x = (Matrix(2, 1) << 1.0, -2.0).finished();
  SECTION("cosine: with eps = 3 they become 1/2 and -2/sqrt(7)") {
    MultiHead layer = test::unit_layer(AttentionKind::cosine);
    layer.epsilon = 3.0;
    const double b = -2.0 / std::sqrt(7.0);
    const double own = std::exp(0.25);
    const double other = std::exp(0.5 * b);
    CHECK(attend(layer, x)(0, 0) == Approx((own * 0.5 + other * b) / (own + other)).epsilon(1e-15));
    CHECK(attend(layer, x, Mask::causal())(0, 0) == Approx(0.5).epsilon(1e-15));
  }
  SECTION("sigmoid: with beta = 2 the scores are 3, 0 and 0, 6") {
    MultiHead layer = test::unit_layer(AttentionKind::sigmoid);
    layer.score_bias = 2.0;
    const Matrix y = attend(layer, x);
    CHECK(y(0, 0) == Approx(1.0 / (1.0 + std::exp(-3.0)) - 1.0).epsilon(1e-15));
    CHECK(y(1, 0) == Approx(0.5 - 2.0 / (1.0 + std::exp(-6.0))).epsilon(1e-15));
    CHECK(attend(layer, x, Mask::causal())(0, 0) ==
          Approx(1.0 / (1.0 + std::exp(-3.0))).epsilon(1e-15));
  }
}

TEST_CASE("MultiHead: one token makes attention the linear map X A W_V W_O (case A6)",
          "[attention]") {
  Rng rng(23);
  const Shape shape{1, 3, 2, 2, 2, 3};
  MultiHead layer = random_layer(rng, AttentionKind::l2, shape, false);
  const Matrix x = normal_matrix(rng, 1, 3);
  Matrix values(3, 4);
  values << value_map(layer, 0), value_map(layer, 1);
  CHECK((attend(layer, x) - x * values * layer.W_O).norm() <= 1e-14);
}

TEST_CASE("MultiHead: what is wrong with a layer is named", "[attention]") {
  Rng rng(24);
  const Shape shape{3, 4, 2, 3, 2, 4};
  MultiHead layer = random_layer(rng, AttentionKind::dot, shape);
  require_valid(layer);
  SECTION("heads") {
    layer.heads = 4;
    CHECK_THROWS_WITH(require_valid(layer),
                      "MultiHead: heads must divide the 6 columns of W_Q, got 4");
  }
  SECTION("keys of a tied layer") {
    layer.kind = AttentionKind::l2;
    CHECK_THROWS_WITH(require_valid(layer), Catch::Contains("W_K and b_K must be empty for l2"));
  }
  SECTION("shapes") {
    layer.W_O.resize(3, 4);
    CHECK_THROWS_WITH(require_valid(layer),
                      "MultiHead: W_O must have 4 rows (columns of W_V), got 3");
  }
  SECTION("infinity (case B14)") {
    layer.W_V(1, 2) = std::numeric_limits<double>::infinity();
    CHECK_THROWS_WITH(require_valid(layer), "MultiHead: W_V must be finite, got inf at (1, 2)");
  }
  SECTION("bias") {
    layer.b_K.resize(5);
    CHECK_THROWS_WITH(require_valid(layer), "MultiHead: b_K must be empty or of length 6, got 5");
  }
  SECTION("epsilon, of cosine alone") {
    layer.epsilon = 0.1;
    CHECK_THROWS_WITH(require_valid(layer), "MultiHead: epsilon must be 0 for dot, got 0.1");
    layer.kind = AttentionKind::cosine;
    require_valid(layer);
    layer.epsilon = 0.0;
    CHECK_THROWS_WITH(require_valid(layer),
                      "MultiHead: epsilon must be positive for cosine, got 0");
    layer.epsilon = std::numeric_limits<double>::infinity();
    CHECK_THROWS_WITH(require_valid(layer),
                      "MultiHead: epsilon must be positive for cosine, got inf");
  }
  SECTION("score_bias, of sigmoid alone") {
    layer.score_bias = -2.0;
    CHECK_THROWS_WITH(require_valid(layer), "MultiHead: score_bias must be 0 for dot, got -2");
    layer.kind = AttentionKind::sigmoid;
    require_valid(layer);
    layer.score_bias = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH(require_valid(layer),
                      "MultiHead: score_bias must be finite for sigmoid, got nan");
  }
  SECTION("kind") {
    CHECK(parse_attention_kind("l2-untied") == AttentionKind::l2_untied);
    for (const AttentionKind kind : test::kinds) {
      CHECK(parse_attention_kind(to_string(kind)) == kind);
    }
    CHECK_THROWS_WITH(parse_attention_kind("softmax"),
                      "attention must be dot, l2, l2-untied, cosine or sigmoid, got 'softmax'");
  }
}

}  // namespace
}  // namespace lipsa
