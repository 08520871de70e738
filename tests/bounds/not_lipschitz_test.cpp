#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Bound two_norm(const MultiHead& layer, Index n, const Mask& mask = Mask::none(),
               double radius = infinity) {
  return find_entry(layer.kind == AttentionKind::dot ? "dot_not_lipschitz_2"
                                                     : "l2_untied_not_lipschitz_2")
      .evaluate({layer, mask, n, radius});
}

/// D × D weights of a layer, each a multiple of the identity.
MultiHead scalar_layer(AttentionKind kind, double q, double k, double v = 1.0, double o = 1.0) {
  const auto matrix = [](double a) -> Matrix { return a * Matrix::Identity(1, 1); };
  return {.kind = kind, .W_Q = matrix(q), .W_K = matrix(k), .W_V = matrix(v), .W_O = matrix(o)};
}

/// Two heads side by side in one layer of width one.
MultiHead two_heads(AttentionKind kind, const Eigen::RowVector2d& q, const Eigen::RowVector2d& k,
                    const Eigen::Vector2d& o) {
  return {.kind = kind, .heads = 2, .W_Q = q, .W_K = k, .W_V = Matrix::Ones(1, 2), .W_O = o};
}

void check_unbounded(const Bound& bound) {
  CAPTURE(bound.reason);
  CHECK(bound.holds);
  CHECK(bound.value == infinity);
  CHECK(bound.log10_value == infinity);
  CHECK_THAT(bound.reason, Catch::StartsWith("no finite constant exists"));
}

void check_silent(const Bound& bound, const std::string& why) {
  CHECK_FALSE(bound.holds);
  CHECK(std::isnan(bound.value));
  CHECK(std::isnan(bound.log10_value));
  CHECK_THAT(bound.reason, Catch::Contains(why));
}

TEST_CASE("not_lipschitz: random layers of every shape and scale have no finite constant",
          "[bounds]") {
  const auto kind = GENERATE(AttentionKind::dot, AttentionKind::l2_untied);
  const auto shape = GENERATE(from_range(test::shapes));
  const bool biases = GENERATE(false, true);
  const double size = GENERATE(1e-200, 1.0, 1e200);
  CAPTURE(to_string(kind), shape, biases, size);
  Rng rng(1);
  MultiHead layer = test::random_layer(rng, kind, shape, biases);
  layer.W_Q *= size, layer.W_K *= size, layer.W_V *= size, layer.W_O *= size;
  layer.b_Q *= size, layer.b_K *= size;
  const Bound bound = two_norm(layer, shape.n);
  shape.n == 1 ? check_silent(bound, "affine") : check_unbounded(bound);
  check_unbounded(two_norm(layer, 1000, Mask::causal()));
}

TEST_CASE("not_lipschitz: dot-product attention without scores or values is affine", "[bounds]") {
  const auto dot = AttentionKind::dot;
  check_unbounded(two_norm(scalar_layer(dot, 1, 1), 2));
  check_silent(two_norm(scalar_layer(dot, 1, 1), 1), "one token attends to itself alone");
  check_silent(two_norm(scalar_layer(dot, 0, 1), 2), "all scores of a token are equal");
  check_silent(two_norm(scalar_layer(dot, 1, 0), 2), "all scores of a token are equal");
  check_silent(two_norm(scalar_layer(dot, 1, 1, 0), 2), "W_V W_O = 0");
  check_silent(two_norm(scalar_layer(dot, 1, 1, 1, 0), 2), "W_V W_O = 0");
  MultiHead biased = scalar_layer(dot, 0, 1);
  biased.b_Q = Vector::Ones(1);
  check_silent(two_norm(biased, 2), "no head has certainly W_Q W_K^T");
  MultiHead orthogonal{.kind = dot,
                       .W_Q = Matrix{{1.0, 1.0}},
                       .W_K = Matrix{{1.0, -1.0}},
                       .W_V = Matrix::Ones(1, 1)};
  check_silent(two_norm(orthogonal, 2), "no head has certainly W_Q W_K^T");
}

TEST_CASE("not_lipschitz: heads that cancel are seen, heads that do not are told apart",
          "[bounds]") {
  const auto dot = AttentionKind::dot;
  check_silent(two_norm(two_heads(dot, {1, 1}, {2, 2}, {1, -1}), 3), "uncancelled");
  check_silent(two_norm(two_heads(dot, {1, 2}, {2, 1}, {1, -1}), 3), "uncancelled");
  check_unbounded(two_norm(two_heads(dot, {1, 1}, {2, 2}, {1, 1}), 3));
  check_unbounded(two_norm(two_heads(dot, {1, 1}, {2, 2}, {1, -0.5}), 3));
  MultiHead shifted = two_heads(dot, {1, 1}, {2, 2}, {1, -1});
  shifted.b_Q = Eigen::Vector2d(0, 1);
  check_unbounded(two_norm(shifted, 3));
  MultiHead concatenated = two_heads(dot, {1, 1}, {2, 2}, {1, -1});
  concatenated.W_O.resize(0, 0);
  check_unbounded(two_norm(concatenated, 3));
  const auto untied = AttentionKind::l2_untied;
  check_silent(two_norm(two_heads(untied, {1, 1}, {2, 2}, {1, -1}), 3), "uncancelled");
  check_unbounded(two_norm(two_heads(untied, {1, 3}, {2, 2}, {1, -1}), 3));
}

TEST_CASE("not_lipschitz: the growth it speaks of is seen where the argument puts the tokens",
          "[bounds]") {
  struct Case {
    MultiHead layer{};
    double x = 0.0;  // the tokens in units of t
    double y = 0.0;
  };
  const auto dot = AttentionKind::dot;
  const auto untied = AttentionKind::l2_untied;
  MultiHead shifted = two_heads(dot, {1, 1}, {2, 2}, {1, -1});
  shifted.b_Q = Eigen::Vector2d(0, 1);
  for (const Case& c :
       {Case{scalar_layer(dot, 1, 1), 0, 1}, Case{shifted, 0, 1},
        Case{scalar_layer(untied, 1, 0.6), 1, 1.4 / 0.6}, Case{scalar_layer(untied, 0, 1), 1, -1},
        Case{two_heads(untied, {1, 3}, {2, 2}, {1, -1}), 1, 0}}) {
    check_unbounded(two_norm(c.layer, 2));
    const auto norm = [&](double t) {
      return Jacobian(c.layer, Matrix{{t * c.x}, {t * c.y}}).norm_inf().value;
    };
    CHECK(norm(1e4) / norm(1e3) == Approx(100.0).epsilon(1e-3));
  }
}

TEST_CASE("not_lipschitz: L2 attention with keys equal to its queries may be Lipschitz",
          "[bounds]") {
  const auto untied = AttentionKind::l2_untied;
  check_unbounded(two_norm(scalar_layer(untied, 1, 0.6), 2));
  check_unbounded(two_norm(scalar_layer(untied, 0, 1), 2));
  check_silent(two_norm(scalar_layer(untied, 1, 1), 2), "(W_Q - W_K) W_K^T");
  check_silent(two_norm(scalar_layer(untied, 1, 0), 2), "all scores of a token are equal");
}

TEST_CASE("not_lipschitz: masks that leave a token one to see make the map affine", "[bounds]") {
  const MultiHead layer = scalar_layer(AttentionKind::dot, 1, 1);
  Mask::Visible visible = Mask::Visible::Constant(3, 3, false);
  visible(0, 0) = visible(1, 0) = true;
  check_silent(two_norm(layer, 3, Mask::arbitrary(visible)), "no token sees two");
  visible(1, 2) = true;
  check_silent(two_norm(layer, 3, Mask::arbitrary(visible)), "no token sees itself and another");
  visible(2, 2) = visible(2, 0) = true;
  check_unbounded(two_norm(layer, 3, Mask::arbitrary(visible)));
}

TEST_CASE("not_lipschitz: says nothing about a ball", "[bounds]") {
  check_silent(two_norm(scalar_layer(AttentionKind::dot, 1, 1), 3, Mask::none(), 2.5),
               "it speaks of all X, the radius is 2.5");
}

}  // namespace
}  // namespace lipsa
