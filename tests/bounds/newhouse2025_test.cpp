#include "lipsa/bounds/newhouse2025.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "dense_norms.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::measurement_error;

/// max_i |x_i|_2/√d.
double rms(const Matrix& x) {
  return x.rowwise().norm().maxCoeff() / std::sqrt(static_cast<double>(x.cols()));
}

/// A point (q, k, v) of functional attention, or a direction.
struct Triple {
  Matrix q, k, v;

  double sum() const { return rms(q) + rms(k) + rms(v); }
};

Triple random_triple(Rng& rng, Index n, Index d, Index d_v) {
  return {normal_matrix(rng, n, d), normal_matrix(rng, n, d), normal_matrix(rng, n, d_v)};
}

/// |DF(δ)|_RMS of F(q, k, v) = softmax(s q kᵀ) v at x, by the product rule.
double derivative(double s, const Triple& x, const Triple& delta, const Mask& mask) {
  const Index n = x.q.rows();
  const Matrix scores = s * x.q * x.k.transpose();
  const Matrix change = s * (delta.q * x.k.transpose() + x.q * delta.k.transpose());
  Matrix p = Matrix::Zero(n, n);
  Matrix dp = Matrix::Zero(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      p(i, j) = mask.visible(i, j) ? std::exp(scores(i, j) - scores.row(i).maxCoeff()) : 0.0;
    }
    const double sum = p.row(i).sum();
    p.row(i) /= sum > 0.0 ? sum : 1.0;
    const double mean = p.row(i).dot(change.row(i));
    for (Index j = 0; j < n; ++j) {
      dp(i, j) = p(i, j) * (change(i, j) - mean);
    }
  }
  return rms(dp * x.v + p * delta.v);
}

double corrected(double s, const Triple& x) {
  return newhouse2025_functional(s * static_cast<double>(x.q.cols()), rms(x.q), rms(x.k), rms(x.v))
      .value();
}
double printed(double s, const Triple& x) {
  return newhouse2025_functional_printed(s * static_cast<double>(x.q.cols()), rms(x.q), rms(x.k),
                                         rms(x.v))
      .value();
}

Triple scalars(double q, double k, double v) {
  return {Matrix::Constant(1, 1, q), Matrix::Constant(1, 1, k), Matrix::Constant(1, 1, v)};
}

TEST_CASE("newhouse2025_functional: by hand", "[bounds]") {
  CHECK(newhouse2025_functional(0.5, 3.0, 2.0, 4.0) == UpRounded(6.0));
  CHECK(newhouse2025_functional(0.5, 2.0, 3.0, 4.0) == UpRounded(6.0));
  CHECK(newhouse2025_functional(0.01, 3.0, 2.0, 4.0) == UpRounded(1.0));
  CHECK(newhouse2025_functional(1.0, 1.0, 1.0, 1.0) == UpRounded(1.0));
  CHECK(newhouse2025_functional_printed(4.0, 3.0, 2.0, 4.0) == UpRounded(24.0));
  CHECK(newhouse2025_functional_printed(4.0, 0.0, 0.0, 4.0) == UpRounded(2.0));
}

TEST_CASE("newhouse2025_functional_printed: refuted by s d = 0.01 and q = k = v = 0", "[bounds]") {
  const Triple zero = scalars(0.0, 0.0, 0.0);
  const Triple delta = scalars(0.0, 0.0, 1.0);
  CHECK(derivative(0.01, zero, delta, Mask::none()) == 1.0);
  CHECK(delta.sum() == 1.0);
  CHECK(printed(0.01, zero) == Approx(0.1).epsilon(1e-14));
  CHECK(corrected(0.01, zero) == 1.0);
}

TEST_CASE("newhouse2025_functional: both of its parts are attained, above s d = 1 not by the print",
          "[bounds]") {
  // Two keys of zero, values ±1, query 1: δk = ±1 moves the weights by ±s/2.
  const double s = GENERATE(1.0, 1.5, 4.0, 100.0);
  CAPTURE(s);
  const Triple x{Matrix::Ones(2, 1), Matrix::Zero(2, 1), Matrix{{1.0}, {-1.0}}};
  const Triple delta{Matrix::Zero(2, 1), Matrix{{1.0}, {-1.0}}, Matrix::Zero(2, 1)};
  const double gain = derivative(s, x, delta, Mask::none()) / delta.sum();
  CHECK(gain == Approx(s).epsilon(1e-14));
  CHECK(gain <= corrected(s, x) * (1.0 + measurement_error));
  CHECK(gain >= corrected(s, x) * (1.0 - measurement_error));
  CHECK(printed(s, x) == Approx(std::sqrt(s)).epsilon(1e-14));
}

TEST_CASE("newhouse2025_functional: above the gain of random directions under all masks",
          "[bounds]") {
  double closest = 0.0;
  int printed_violated = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    Rng rng(seed, 3);
    const Index n = 1 + static_cast<Index>(rng.next() % 5);
    const Index d = 1 + static_cast<Index>(rng.next() % 3);
    const Index d_v = 1 + static_cast<Index>(rng.next() % 3);
    const double s = std::pow(10.0, rng.uniform(-2.0, 1.0));
    Triple x = random_triple(rng, n, d, d_v);
    Triple delta = random_triple(rng, n, d, d_v);
    x.k *= std::pow(10.0, rng.uniform(-3.0, 0.5));
    for (Matrix* part : {&delta.q, &delta.k, &delta.v}) {
      *part *= rng.uniform() < 0.5 ? 0.0 : 1.0;
    }
    if (delta.sum() == 0.0) {
      continue;
    }
    for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, n)}) {
      CAPTURE(seed, n, d, d_v, s, to_string(mask.kind()));
      const double gain = derivative(s, x, delta, mask) / delta.sum();
      CHECK(gain <= corrected(s, x) * (1.0 + measurement_error));
      closest = std::max(closest, gain / corrected(s, x));
      printed_violated += gain > printed(s, x) * (1.0 + 1e-9) ? 1 : 0;
    }
  }
  CHECK(closest > 0.9);
  CHECK(printed_violated > 100);
}

TEST_CASE("newhouse2025: the catalogue refutes equation 23 by a map that averages", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  layer.W_Q.setZero();
  layer.W_K.setZero();
  layer.scale = 0.01;
  const Mask open = Mask::none();
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 3, .radius = 1.0};
  const double norm = Jacobian(layer, Matrix::Zero(3, 1)).norm_inf().value;  // D = 1: of tokens too
  CHECK(norm == Approx(1.0).epsilon(1e-14));
  const Bound claim = find_entry("newhouse2025_eq23").evaluate(setting);
  CHECK(claim.refuted);
  CHECK_FALSE(claim.holds);
  CHECK(claim.value == Approx(0.1).epsilon(1e-12));
  const Bound bound = find_entry("newhouse2025").evaluate(setting);
  CHECK(bound.holds);
  CHECK(bound.value >= norm * (1.0 - 1e-15));
  CHECK(bound.value == Approx(1.0).epsilon(1e-12));
}

TEST_CASE("newhouse2025: the entry by hand, weights and heads around the theorem", "[bounds]") {
  // Two heads of d = 4, d_v = 1: q = (3 R + 1)/2, k = 2 R/2, v = 5 R with R = 1.
  MultiHead layer{.heads = 2,
                  .W_Q = Matrix::Zero(8, 8),
                  .W_K = Matrix::Zero(8, 8),
                  .W_V = Matrix::Zero(8, 2),
                  .W_O = 7.0 * Matrix::Identity(2, 2),
                  .scale = 0.5};
  layer.W_Q.diagonal().setConstant(3.0);
  layer.W_K.diagonal().setConstant(2.0);
  layer.W_V(0, 0) = layer.W_V(1, 1) = 5.0;
  layer.b_Q = Vector{{1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0}};
  const Mask open = Mask::none();
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 3, .radius = 1.0};
  // s d v max(q, k) = 2 · 5 · 2, times (3 + 2)/2 + 5, times 7, twice.
  CHECK(find_entry("newhouse2025").evaluate(setting).value ==
        Approx(2.0 * 7.0 * 20.0 * 7.5).epsilon(1e-12));
  // √2 · 10 for 20.
  CHECK(find_entry("newhouse2025_eq23").evaluate(setting).value ==
        Approx(2.0 * 7.0 * std::sqrt(2.0) * 10.0 * 7.5).epsilon(1e-12));
}

TEST_CASE("large2024_unit: asks for the scale 1/d and for norms of at most one", "[bounds]") {
  const Mask causal = Mask::causal();
  MultiHead layer{.W_Q = 0.5 * Matrix::Identity(2, 2),
                  .W_K = 0.25 * Matrix::Identity(2, 2),
                  .W_V = 2.0 * Matrix::Identity(2, 2),
                  .W_O = Matrix::Identity(2, 2),
                  .scale = 0.5};
  const auto at = [&](double radius) {
    return find_entry("large2024_unit")
        .evaluate({.layer = layer, .mask = causal, .tokens = 3, .radius = radius});
  };
  CHECK(at(0.5).holds);
  CHECK(at(0.5).value == Approx(0.5 + 0.25 + 2.0).epsilon(1e-12));
  CHECK(at(0.7).holds);  // |v| ≤ 2 R/√2
  const std::string longer = "a query, key or value may be longer than 1 in the RMS norm";
  CHECK_FALSE(at(0.71).holds);
  CHECK(std::isnan(at(0.71).value));
  CHECK(at(0.71).reason == longer);
  layer.b_K = Vector{{0.0, 1.5}};
  CHECK(at(0.5).reason == longer);
  layer.b_K.resize(0);
  layer.b_V = Vector{{0.0, 0.5}};
  CHECK(at(0.45).holds);
  CHECK(at(0.5).reason == longer);
  for (const double scale : {0.0, 0.25, 1.0}) {  // 0 stands for 1/√d
    layer.scale = scale;
    CAPTURE(scale);
    CHECK_FALSE(at(0.1).holds);
    CHECK(at(0.1).reason == "it speaks of the scale 1/d");
  }
}

TEST_CASE("newhouse2025, large2024_unit: above the max-token norm of J", "[bounds]") {
  const auto shape = GENERATE(from_range(test::shapes));
  const auto seed = GENERATE(range(1U, 6U));
  CAPTURE(shape, seed);
  Rng rng(seed, 4);
  MultiHead layer = test::random_layer(rng, AttentionKind::dot, shape, seed % 2 == 0);
  layer.scale = 1.0 / static_cast<double>(shape.d);
  const double radius = std::pow(10.0, rng.uniform(-1.0, 0.5));
  const Matrix x = test::sphere_tokens(rng, shape.n, shape.D, radius);
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, shape.n)}) {
    CAPTURE(to_string(mask.kind()), radius);
    const Matrix j = Jacobian(layer, x, mask).dense();
    const double norm = test::dense_max_token(j, shape.D_out, shape.D);
    const BoundSetting setting{
        .layer = layer, .mask = mask, .tokens = shape.n, .radius = radius * (1.0 + 1e-15)};
    const Bound bound = find_entry("newhouse2025").evaluate(setting);
    CHECK(bound.holds);
    CHECK(norm <= bound.value * (1.0 + measurement_error));
    const Bound unit = find_entry("large2024_unit").evaluate(setting);
    if (unit.holds) {
      CHECK(norm <= unit.value * (1.0 + measurement_error));
      CHECK(unit.value == bound.value);
    }
  }
}

}  // namespace
}  // namespace lipsa
