#include "lipsa/train/bound_gradient.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "lipsa/model/attention_layer.hpp"
#include "piece_checks.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::Shape;

const std::vector<std::string> entries{"kim2021_inf", "sharp_l2_inf", "kim2021_2", "l2_2_fused"};

/// A bound of spectral norms is above them by up to 1e-12, which differences of step 1e-3 enlarge
/// to 1e-9; the fifth derivative of a logarithm along directions no longer than the weights, some
/// 1e2, adds 1e-12 a part.
constexpr double step = 1e-3;
constexpr double tolerance = 1e-8;

MultiHead l2_layer(Rng& rng, const Shape& shape, bool with_output) {
  MultiHead layer = test::random_layer(rng, AttentionKind::l2, shape);
  if (!with_output) {
    layer.W_O.resize(0, 0);
    layer.b_O.resize(0);
  }
  return layer;
}

/// The worst difference, over the arrays, of log_gradient to differences of log L.
double log_gradient_error(const std::string& entry, MultiHead layer, const Mask& mask, Index n,
                          const MultiHead& gradient, Rng& rng) {
  double worst = 0.0;
  const auto arrays = parameters(layer);
  const auto gradients = parameters(gradient);
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    auto values = arrays[k].values;
    const Vector start = values;
    Vector direction = normal_matrix(rng, start.size(), 1).normalized();
    direction *= std::min(1.0, start.norm());
    const Matrix slope = test::central_difference(
        [&](double t) -> Matrix {
          values = start + t * direction;
          return Matrix::Constant(1, 1,
                                  std::log(bound_gradient(entry, layer, mask, n).upper_bound));
        },
        step);
    values = start;
    worst = std::max(worst, std::abs(gradients[k].values.dot(direction) - slope(0, 0)));
  }
  return worst;
}

TEST_CASE("bound_gradient: the catalogue's value, and differences of its logarithm", "[train]") {
  const auto entry = GENERATE(from_range(entries));
  const auto shape = GENERATE(Shape{7, 1, 1, 1, 1, 1}, Shape{5, 4, 2, 3, 2, 5},
                              Shape{3, 6, 3, 2, 2, 6}, Shape{1, 3, 1, 5, 4, 2});
  const auto with_output = GENERATE(true, false);
  const auto causal = GENERATE(false, true);
  CAPTURE(entry, shape, with_output, causal);
  Rng rng(1);
  const MultiHead layer = l2_layer(rng, shape, with_output);
  const Mask mask = causal ? Mask::causal() : Mask::none();
  const BoundGradient bound = bound_gradient(entry, layer, mask, shape.n);
  CHECK(bound.upper_bound ==
        find_entry(entry).evaluate({.layer = layer, .mask = mask, .tokens = shape.n}).value);
  CHECK(log_gradient_error(entry, layer, mask, shape.n, bound.log_gradient, rng) <= tolerance);
  CHECK(bound.log_gradient.b_Q.isZero(0.0));

  MultiHead faulty = bound.log_gradient;
  for (Parameter& array : parameters(faulty)) {
    array.values(0) += 1e-3;  // a gradient that is wrong in one entry is seen
    CHECK(log_gradient_error(entry, layer, mask, shape.n, faulty, rng) > tolerance);
    array.values(0) -= 1e-3;
  }
}

TEST_CASE("bound_gradient: the degrees of the formulas, by Euler's theorem", "[train]") {
  const auto entry = GENERATE(from_range(entries));
  Rng rng(2);
  const MultiHead layer = l2_layer(rng, {5, 4, 2, 3, 2, 5}, true);
  const MultiHead g = bound_gradient(entry, layer, Mask::none(), 5).log_gradient;
  CHECK(g.W_Q.cwiseProduct(layer.W_Q).sum() == Approx(2.0).epsilon(1e-9));
  CHECK(g.W_V.cwiseProduct(layer.W_V).sum() == Approx(1.0).epsilon(1e-9));
  CHECK(g.W_O.cwiseProduct(layer.W_O).sum() == Approx(1.0).epsilon(1e-9));
}

TEST_CASE("bound_gradient: a loss through the contractive bound", "[train]") {
  const auto entry = GENERATE(from_range(entries));
  const auto causal = GENERATE(false, true);
  CAPTURE(entry, causal);
  const Shape shape{5, 4, 2, 3, 2, 4};
  const Mask mask = causal ? Mask::causal() : Mask::none();
  Rng rng(3);
  MultiHead layer = l2_layer(rng, shape, true);
  const Matrix x = normal_matrix(rng, 15, 4);
  const Matrix u = normal_matrix(rng, 15, 4);
  const auto contractive = [&](const MultiHead& weights) {
    return AttentionLayer{.weights = weights,
                          .mask = mask,
                          .gain = contractive_gain(bound_gradient(entry, weights, mask, 5), 0.9)};
  };
  const AttentionLayer piece = contractive(layer);
  AttentionLayer gradient = zeros_like(piece);
  gradient.gain = 0.0;
  AttentionLayerAt(piece, x, 5).backward(u, gradient);
  const MultiHead held_fixed = gradient.weights;
  add_gain_gradient(bound_gradient(entry, layer, mask, 5), piece.gain, gradient.gain,
                    gradient.weights);

  const auto arrays = parameters(layer);
  const auto gradients = parameters(gradient.weights);
  const auto without = parameters(held_fixed);
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    CAPTURE(arrays[k].name);
    auto values = arrays[k].values;
    const Vector start = values;
    const Vector direction = normal_matrix(rng, start.size(), 1).normalized();
    const Matrix slope = test::central_difference(
        [&](double t) -> Matrix {
          values = start + t * direction;
          return AttentionLayerAt(contractive(layer), x, 5).output();
        },
        step);
    values = start;
    const double expected = u.cwiseProduct(slope).sum();
    CHECK(std::abs(gradients[k].values.dot(direction) - expected) <= tolerance);
    if (arrays[k].name.starts_with("W_")) {  // and without the part through the bound it is wrong
      CHECK(std::abs(without[k].values.dot(direction) - expected) > 100.0 * tolerance);
    }
  }
}

TEST_CASE("contractive_gain: the layer contracts with its factor", "[train]") {
  const auto entry = GENERATE(from_range(entries));
  const auto size = GENERATE(0.1, 1.0, 1000.0);
  CAPTURE(entry, size);
  Rng rng(4);
  MultiHead layer = l2_layer(rng, {8, 4, 2, 2, 2, 4}, true);
  const double gain = contractive_gain(bound_gradient(entry, layer, Mask::causal(), 8), 0.9);
  const Jacobian jacobian(layer, size * normal_matrix(rng, 8, 4), Mask::causal());
  const bool inf = entry.ends_with("inf");
  CHECK(gain * (inf ? jacobian.norm_inf().value : spectral_norm(jacobian).value) <= 0.9);
}

TEST_CASE("contractive_gain: c/L to the last bit that keeps the product below c", "[train]") {
  // One token: F(x) = v x has the Lipschitz constant |v|, and the bound is that.
  const auto v = GENERATE(3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 0.1, 1e-300);
  const auto factor = GENERATE(0.5, 0.9, 0.99, 1.0);
  CAPTURE(v, factor);
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  layer.W_V(0, 0) = v;
  const BoundGradient bound = bound_gradient("kim2021_inf", layer, Mask::none(), 1);
  CHECK(bound.upper_bound == v);
  const double gain = contractive_gain(bound, factor);
  CHECK(std::fma(gain, v, -factor) <= 0.0);
  CHECK(gain * v >= factor * (1.0 - 4.0 * std::numeric_limits<double>::epsilon()));
}

TEST_CASE("contractive_gain: at the steepest tokens the sharp bound leaves nothing over",
          "[train]") {
  // sharp_l2_inf is attained for odd n: a gain one percent larger would break the promise.
  const MultiHead layer = test::unit_layer(AttentionKind::l2);
  const Index n = 101;
  const double gain = contractive_gain(bound_gradient("sharp_l2_inf", layer, Mask::none(), n), 0.9);
  // Three clusters of theory: |J|_inf there is the bound, by a search over the two distances.
  double largest = 0.0;
  for (int k = 50; k < 600; ++k) {
    const double z = 0.01 * k;
    Matrix x = Matrix::Zero(n, 1);
    x.topRows(n / 2).setConstant(z);
    x.middleRows(n / 2, n / 2).setConstant(-z);
    largest = std::max(largest, gain * Jacobian(layer, x).norm_inf().value);
  }
  CHECK(largest <= 0.9 * (1.0 + 1e-12));
  CHECK(largest * 1.01 > 0.9);
}

TEST_CASE("bound_gradient: zero where w is, though no weight is", "[train]") {
  const auto entry = GENERATE("kim2021_2", "l2_2_fused");
  CAPTURE(entry);
  Rng rng(8);
  MultiHead layer = l2_layer(rng, {5, 4, 2, 2, 2, 4}, true);
  layer.W_Q.leftCols(2).setZero();
  layer.W_V.rightCols(2).setZero();
  const BoundGradient bound = bound_gradient(entry, layer, Mask::none(), 5);
  for (const ConstParameter& array : parameters(bound.log_gradient)) {
    CHECK(array.values.isZero(0.0));
  }
}

TEST_CASE("bound_gradient: weights of zero, and of sizes that overflow", "[train]") {
  const auto entry = GENERATE(from_range(entries));
  CAPTURE(entry);
  Rng rng(5);
  MultiHead layer = l2_layer(rng, {5, 4, 2, 3, 2, 5}, true);
  layer.W_Q *= 1e100;
  layer.W_V *= 1e150;
  const BoundGradient huge = bound_gradient(entry, layer, Mask::none(), 5);
  CHECK(huge.upper_bound == std::numeric_limits<double>::infinity());
  CHECK(huge.log_gradient.W_Q.allFinite());
  CHECK(contractive_gain(huge, 0.5) == 0.0);
  for (Matrix* weight : {&layer.W_Q, &layer.W_V, &layer.W_O}) {  // of which there is no direction
    MultiHead extreme = l2_layer(rng, {5, 4, 2, 3, 2, 5}, true);
    weight->setConstant(1e308);
    (weight == &layer.W_Q   ? extreme.W_Q
     : weight == &layer.W_V ? extreme.W_V
                            : extreme.W_O) = *weight;
    CHECK(bound_gradient(entry, extreme, Mask::none(), 5).log_gradient.W_Q.allFinite());
  }
  layer.W_V.setZero();
  const BoundGradient zero = bound_gradient(entry, layer, Mask::none(), 5);
  CHECK(zero.upper_bound == 0.0);
  CHECK(zero.log_gradient.W_Q.isZero(0.0));
  CHECK(contractive_gain(zero, 0.5) == 0.0);
}

TEST_CASE("bound_gradient: a head of zeros beside another", "[train]") {
  const auto entry = GENERATE(from_range(entries));
  CAPTURE(entry);
  Rng rng(6);
  MultiHead layer = l2_layer(rng, {5, 4, 2, 2, 2, 4}, true);
  layer.W_Q.leftCols(2).setZero();
  const BoundGradient bound = bound_gradient(entry, layer, Mask::none(), 5);
  for (const ConstParameter& array : parameters(bound.log_gradient)) {
    CHECK(array.values.allFinite());
  }
  CHECK(bound.log_gradient.W_Q.rightCols(2).norm() > 0.0);
}

TEST_CASE("bound_gradient: what it refuses, by name", "[train]") {
  Rng rng(7);
  const MultiHead layer = l2_layer(rng, {5, 4, 2, 3, 2, 5}, true);
  CHECK_THROWS_WITH(bound_gradient("l2_2_sum", layer, Mask::none(), 5),
                    "bound_gradient: entry must be kim2021_inf, sharp_l2_inf, kim2021_2 or "
                    "l2_2_fused, got 'l2_2_sum'");
  const MultiHead dot = test::random_layer(rng, AttentionKind::dot, {5, 4, 2, 3, 2, 5});
  CHECK_THROWS_WITH(bound_gradient("kim2021_inf", dot, Mask::none(), 5),
                    "bound_gradient: kim2021_inf must hold for the layer: it speaks of l2 "
                    "attention, the layer is dot");
  CHECK_THROWS_WITH(contractive_gain(bound_gradient("kim2021_inf", layer, Mask::none(), 5), 0.0),
                    "contractive_gain: factor must be positive, got 0");
}

}  // namespace
}  // namespace lipsa
