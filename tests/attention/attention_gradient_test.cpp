#include "lipsa/attention/attention_gradient.hpp"

#include <catch2/catch.hpp>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/core/parallel.hpp"
#include "piece_checks.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::kinds;
using test::random_layer;
using test::random_mask;
using test::Shape;
using test::shapes;
using test::vec;

constexpr Index sequences = 3;

Mask mask_of(int which, Rng& rng, Index n) {
  return which == 0 ? Mask::none() : which == 1 ? Mask::causal() : random_mask(rng, n);
}

TEST_CASE("AttentionAt: every derivative, for every kind, shape and mask", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto shape = GENERATE(from_range(shapes));
  const auto which_mask = GENERATE(0, 1, 2);
  const auto biases = GENERATE(true, false);
  CAPTURE(to_string(kind), shape, which_mask, biases);
  Rng rng(21);
  MultiHead layer = random_layer(rng, kind, shape, biases);
  if (!biases && shape.H == 1) {
    layer.W_O.resize(0, 0);
  }
  const Mask mask = mask_of(which_mask, rng, shape.n);
  const Matrix x = normal_matrix(rng, sequences * shape.n, shape.D);
  const double gain = 0.7;
  const AttentionAt at(layer, x, shape.n, mask, gain);

  SECTION("each sequence is attended to alone") {
    for (Index s = 0; s < sequences; ++s) {
      const Matrix alone = x.middleRows(s * shape.n, shape.n);
      const Matrix expected = gain * attend(layer, alone, mask);
      CHECK((at.output().middleRows(s * shape.n, shape.n) - expected).norm() <=
            1e-13 * (1.0 + expected.norm()));
    }
  }
  SECTION("J v, against the closed form") {
    const Matrix v = normal_matrix(rng, x.rows(), shape.D);
    const Matrix jv = at.apply(v);
    for (Index s = 0; s < sequences; ++s) {
      const Jacobian jacobian(layer, x.middleRows(s * shape.n, shape.n), mask);
      const Matrix j = jacobian.dense();
      const Vector expected = gain * j * vec(v.middleRows(s * shape.n, shape.n));
      CHECK((vec(jv.middleRows(s * shape.n, shape.n)) - expected).norm() <=
            1e-13 * (1.0 + j.norm()) * v.norm());
    }
    CHECK(test::input_derivative_error(
              [&](const Matrix& at_x) { return AttentionAt(layer, at_x, shape.n, mask, gain); }, x,
              rng) <= test::difference_tolerance);
  }
  SECTION("the adjoint") {
    CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
  }
  SECTION("the gradient in the weights and biases") {
    const auto make = [&](const MultiHead& weights) {
      return AttentionAt(weights, x, shape.n, mask, gain);
    };
    CHECK(test::backward_error(layer, make, rng) <= test::difference_tolerance);
  }
  SECTION("the gradient in the gain") {
    const Matrix u = normal_matrix(rng, x.rows(), at.output_width());
    MultiHead gradient = zeros_like(layer);
    double by_gain = 1.0;
    at.backward(u, gradient, &by_gain);
    const double expected = u.cwiseProduct(at.output()).sum() / gain;
    CHECK(std::abs(by_gain - 1.0 - expected) <= 1e-13 * u.norm() * at.output().norm() / gain);
  }
}

TEST_CASE("AttentionAt: a gradient that is wrong in one array is seen", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  const Shape shape{5, 4, 2, 3, 2, 4};
  Rng rng(22);
  const MultiHead layer = random_layer(rng, kind, shape);
  const Matrix x = normal_matrix(rng, 10, shape.D);
  const auto make = [&](const MultiHead& weights) { return AttentionAt(weights, x, 5); };
  const Matrix u = normal_matrix(rng, 10, shape.D_out);
  MultiHead gradient = zeros_like(layer);
  make(layer).backward(u, gradient);
  CHECK(test::parameter_gradient_error(layer, make, u, gradient, rng) <=
        test::difference_tolerance);
  for (Parameter& array : parameters(gradient)) {
    CAPTURE(to_string(kind), array.name);
    array.values(0) += 1e-5;
    CHECK(test::parameter_gradient_error(layer, make, u, gradient, rng) >
          test::difference_tolerance);
    array.values(0) -= 1e-5;
  }
}

TEST_CASE("AttentionAt: gradients that vanish identically are exactly zero", "[attention]") {
  const auto kind = GENERATE(AttentionKind::dot, AttentionKind::l2);
  const Shape shape{5, 4, 2, 3, 2, 4};
  Rng rng(23);
  const MultiHead layer = random_layer(rng, kind, shape);
  const AttentionAt at(layer, normal_matrix(rng, 10, 4), 5);
  MultiHead gradient = zeros_like(layer);
  at.backward(normal_matrix(rng, 10, 4), gradient);
  CHECK((kind == AttentionKind::dot ? gradient.b_K : gradient.b_Q).isZero(0.0));
  CHECK(gradient.b_V.norm() > 0.1);
}

TEST_CASE("AttentionAt: a batch of three is three batches of one", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto n = GENERATE(Index{1}, Index{6}, Index{70});
  CAPTURE(to_string(kind), n);
  const Shape shape{n, 4, 2, 2, 2, 4};
  Rng rng(24);
  const MultiHead layer = random_layer(rng, kind, shape);
  const Matrix x = normal_matrix(rng, 3 * n, 4);
  const Matrix u = normal_matrix(rng, 3 * n, 4);
  const AttentionAt at(layer, x, n, Mask::causal());
  MultiHead gradient = zeros_like(layer);
  const Matrix dx = at.backward(u, gradient);
  MultiHead sum = zeros_like(layer);
  for (Index s = 0; s < 3; ++s) {
    const AttentionAt one(layer, x.middleRows(s * n, n), n, Mask::causal());
    CHECK((one.output() - at.output().middleRows(s * n, n)).norm() <= 1e-14 * at.output().norm());
    const Matrix dx_one = one.backward(u.middleRows(s * n, n), sum);
    CHECK((dx_one - dx.middleRows(s * n, n)).norm() <= 1e-13 * (1.0 + dx.norm()));
  }
  const auto together = parameters(gradient);
  const auto apart = parameters(sum);
  for (std::size_t k = 0; k < together.size(); ++k) {
    CAPTURE(together[k].name);
    CHECK((together[k].values - apart[k].values).norm() <=
          1e-13 * (1.0 + together[k].values.norm()));
  }
}

TEST_CASE("AttentionAt: the same bits whatever the number of threads", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  CAPTURE(to_string(kind));
  Rng rng(25);
  const MultiHead layer = random_layer(rng, kind, {100, 16, 4, 4, 4, 16});
  const Matrix x = normal_matrix(rng, 300, 16);
  const Matrix u = normal_matrix(rng, 300, 16);
  const auto all = [&] {
    const AttentionAt at(layer, x, 100, Mask::causal());
    MultiHead gradient = zeros_like(layer);
    Matrix dx = at.backward(u, gradient);
    dx += at.output() + at.apply(u) + at.apply_adjoint(u);
    for (const Parameter& array : parameters(gradient)) {
      dx(0, 0) += array.values.sum();
    }
    return dx;
  };
  const Matrix many = all();
  const ThreadLimit limit(1);
  CHECK(all() == many);
}

TEST_CASE("AttentionAt: L2 forgets a common offset of a sequence, however large", "[attention]") {
  const auto kind = GENERATE(AttentionKind::l2, AttentionKind::l2_untied);
  Rng rng(26);
  MultiHead layer = random_layer(rng, kind, {6, 3, 2, 2, 2, 3});
  if (kind == AttentionKind::l2_untied) {
    layer.W_K = layer.W_Q;
  }
  const Matrix x = (normal_matrix(rng, 12, 3) * 1024.0).array().round() / 1024.0;
  Matrix moved = x;
  moved.topRows(6).array() += 1e8;  // exact: ten binary places each
  const AttentionAt at(layer, x, 6);
  const AttentionAt there(layer, moved, 6);
  const Matrix u = normal_matrix(rng, 12, 3);
  CHECK((at.apply(u) - there.apply(u)).norm() <= 1e-10 * u.norm());
  CHECK((at.apply_adjoint(u) - there.apply_adjoint(u)).norm() <= 1e-10 * u.norm());
}

TEST_CASE("AttentionAt: equal tokens, huge tokens, zero weights", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  CAPTURE(to_string(kind));
  Rng rng(27);
  MultiHead layer = random_layer(rng, kind, {4, 2, 1, 2, 2, 2});
  Matrix x = normal_matrix(rng, 1, 2).replicate(8, 1);
  x.row(5) *= 1e12;
  const AttentionAt at(layer, x, 4);
  MultiHead gradient = zeros_like(layer);
  CHECK(at.output().allFinite());
  CHECK(at.backward(Matrix::Ones(8, 2), gradient).allFinite());
  for (const Parameter& array : parameters(gradient)) {
    CHECK(array.values.allFinite());
  }
  for (Parameter& array : parameters(layer)) {
    array.values.setZero();
  }
  const AttentionAt zero(layer, x, 4);
  CHECK(zero.output().isZero(0.0));
  CHECK(zero.apply(x).isZero(0.0));
}

TEST_CASE("AttentionAt: what is not finite spoils its sequence and no other", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto causal = GENERATE(false, true);
  const auto bad = GENERATE(std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(), 1e200);
  if (kind == AttentionKind::cosine && bad == 1e200) {
    return;  // normalised: nothing overflows
  }
  CAPTURE(to_string(kind), causal, bad);
  Rng rng(28);
  const MultiHead layer = random_layer(rng, kind, {4, 2, 1, 2, 2, 2});
  const Mask mask = causal ? Mask::causal() : Mask::none();
  const Matrix x = normal_matrix(rng, 8, 2);
  Matrix spoilt = x;
  spoilt(1, 0) = bad;
  const AttentionAt at(layer, spoilt, 4, mask);
  CHECK(!at.output().topRows(4).allFinite());
  CHECK(at.output().bottomRows(4) == AttentionAt(layer, x, 4, mask).output().bottomRows(4));
}

TEST_CASE("AttentionAt: what it refuses, by name", "[attention]") {
  Rng rng(29);
  MultiHead layer = random_layer(rng, AttentionKind::dot, {3, 2, 1, 2, 2, 2});
  const Matrix x = normal_matrix(rng, 6, 2);
  CHECK_THROWS_WITH(AttentionAt(layer, x, 0), "AttentionAt: tokens must be at least 1, got 0");
  CHECK_THROWS_WITH(AttentionAt(layer, x, 4),
                    "AttentionAt: x must have a positive multiple of 4 rows, got 6");
  CHECK_THROWS_WITH(AttentionAt(layer, Matrix(0, 2), 4),
                    "AttentionAt: x must have a positive multiple of 4 rows, got 0");
  CHECK_THROWS_WITH(AttentionAt(layer, Matrix::Zero(6, 3), 3),
                    "AttentionAt: x must have 2 columns (rows of W_Q), got 3");
  CHECK_THROWS_WITH(AttentionAt(layer, x, 3, random_mask(rng, 6)),
                    "AttentionAt: mask must be for 3 tokens, got 6");
  const AttentionAt at(layer, x, 3);
  CHECK_THROWS_WITH(at.apply(Matrix::Zero(5, 2)), "AttentionAt: dx must be 6 x 2, got 5 x 2");
  MultiHead gradient = zeros_like(layer);
  CHECK_THROWS_WITH(at.backward(Matrix::Zero(6, 1), gradient),
                    "AttentionAt: dy must be 6 x 2, got 6 x 1");
  gradient.b_V.resize(0);
  CHECK_THROWS_WITH(at.backward(x, gradient), "AttentionAt: gradient must have 8 arrays, got 7");
  layer.W_Q(0, 0) = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(AttentionAt(layer, x, 3), "MultiHead: W_Q must be finite, got nan at (0, 0)");
}

}  // namespace
}  // namespace lipsa
