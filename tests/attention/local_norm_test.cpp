#include "lipsa/attention/local_norm.hpp"

#include <catch2/catch.hpp>

#include "lipsa/linalg/spectral_norm.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::kinds;
using test::random_layer;
using test::random_mask;
using test::Shape;
using test::shapes;

TEST_CASE("lower_bound_local_norm: just below |Jv|/|v|, for every kind, shape, mask and norm",
          "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto shape = GENERATE(from_range(shapes));
  const auto which_mask = GENERATE(0, 1, 2);
  const auto p = GENERATE(Norm::one, Norm::two, Norm::inf, Norm::max_token);
  CAPTURE(to_string(kind), shape, which_mask, to_string(p));
  Rng rng(41);
  const MultiHead layer = random_layer(rng, kind, shape);
  const Mask mask = which_mask == 0   ? Mask::none()
                    : which_mask == 1 ? Mask::causal()
                                      : random_mask(rng, shape.n);
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  const Vector v = normal_matrix(rng, shape.n * shape.D, 1);
  const Jacobian jacobian(layer, x, mask);
  Vector jv(jacobian.rows());
  jacobian.apply(v, jv);
  const auto norm = [&](const Vector& y, Index width) {
    if (p == Norm::max_token) {
      return mixed_norm(Eigen::Map<const Matrix>(y.data(), shape.n, width), Norm::inf);
    }
    return p == Norm::one ? y.lpNorm<1>() : p == Norm::two ? y.norm() : y.lpNorm<Eigen::Infinity>();
  };
  const double gain = norm(jv, shape.D_out) / norm(v, shape.D);
  const double bound = lower_bound_local_norm(layer, x, mask, p, v);
  CHECK(bound <= gain * (1.0 + 1e-12));  // gain itself is rounded
  CHECK(bound >= gain * (1.0 - 1e-10));
}

TEST_CASE("lower_bound_local_norm: below closed forms that are exact", "[attention]") {
  // One token: J = W_V W_O = 3. Equal tokens under L2: J = A/n in each block, |J|_inf = 25/2 · 2.
  MultiHead dot = test::unit_layer(AttentionKind::dot);
  dot.W_V *= 3.0;
  const double one =
      lower_bound_local_norm(dot, Matrix::Ones(1, 1), Mask::none(), Norm::two, Vector::Ones(1));
  CHECK(one <= 3.0);
  CHECK(one >= 3.0 * (1.0 - 1e-14));
  MultiHead l2 = test::unit_layer(AttentionKind::l2);
  l2.W_Q *= 5.0;
  for (const Norm p : {Norm::one, Norm::two, Norm::inf, Norm::max_token}) {
    const double bound =
        lower_bound_local_norm(l2, Matrix::Zero(2, 1), Mask::none(), p, Vector::Ones(2));
    CHECK(bound <= 25.0);
    CHECK(bound >= 25.0 * (1.0 - 1e-14));
  }
}

TEST_CASE("lower_bound_local_norm: of cosine with a tiny epsilon, tokens of zero, sigmoid tails",
          "[attention]") {
  const auto check = [](const MultiHead& layer, const Matrix& x) {
    const Vector v = Vector::LinSpaced(x.size(), -1.0, 2.0);
    const Jacobian jacobian(layer, x);
    Vector jv(jacobian.rows());
    jacobian.apply(v, jv);
    const double gain = jv.stableNorm() / v.norm();
    const double bound = lower_bound_local_norm(layer, x, Mask::none(), Norm::two, v);
    CHECK(bound <= gain * (1.0 + 1e-12));
    CHECK(bound >= gain * (1.0 - 1e-10));
  };
  Rng rng(43);
  for (const double epsilon : {1.0, 1e-6, 1e-30}) {
    CAPTURE(epsilon);
    for (const Index d : {1, 3}) {
      MultiHead layer = random_layer(rng, AttentionKind::cosine, {5, 3, 2, d, d, 3}, false);
      layer.epsilon = epsilon;
      Matrix x = normal_matrix(rng, 5, 3);
      check(layer, x);
      x.row(2).setZero();
      check(layer, x);
    }
  }
  for (const double score : {-600.0, -40.0, 40.0, 600.0}) {
    CAPTURE(score);
    MultiHead layer = random_layer(rng, AttentionKind::sigmoid, {5, 3, 2, 2, 2, 3});
    layer.score_bias = score;
    check(layer, normal_matrix(rng, 5, 3));
  }
}

TEST_CASE("lower_bound_local_norm: below closed forms of cosine and sigmoid attention",
          "[attention]") {
  // One token. Cosine: dv̂ = ε/(1 + ε)^{3/2} at x = 1. Sigmoid at x = 0: J = σ(β) = 3/4.
  MultiHead cosine = test::unit_layer(AttentionKind::cosine);
  cosine.epsilon = 3.0;
  const double one =
      lower_bound_local_norm(cosine, Matrix::Ones(1, 1), Mask::none(), Norm::two, Vector::Ones(1));
  CHECK(one <= 0.375);
  CHECK(one >= 0.375 * (1.0 - 1e-14));
  MultiHead sigmoid = test::unit_layer(AttentionKind::sigmoid);
  sigmoid.score_bias = std::log(3.0);
  const double weight =
      lower_bound_local_norm(sigmoid, Matrix::Zero(1, 1), Mask::none(), Norm::two, Vector::Ones(1));
  CHECK(weight == Approx(0.75).epsilon(1e-14));
  CHECK(weight <= 0.75);
}

TEST_CASE("lower_bound_local_norm: says nothing rather than too much where digits are lost",
          "[attention]") {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  const Matrix x = (Matrix(3, 1) << 1e9, 1e9 + 1.0, -1e9).finished();
  const Vector v = (Vector(3) << 1.0, -1.0, 1.0).finished();
  const double bound = lower_bound_local_norm(layer, x, Mask::none(), Norm::two, v);
  CHECK(bound >= 0.0);
  CHECK(std::isfinite(bound));
}

TEST_CASE("lower_bound_local_norm: a part of the outputs gives no more than all", "[attention]") {
  Rng rng(42);
  const Shape shape{6, 3, 2, 2, 2, 3};
  const MultiHead layer = random_layer(rng, AttentionKind::l2, shape);
  const Matrix x = normal_matrix(rng, 6, 3);
  const AttainedNorm inf = Jacobian(layer, x).norm_inf();
  const Index token = inf.index / 3;
  const Vector signs = Jacobian(layer, x).dense().row(inf.index).cwiseSign().transpose();
  const double all = lower_bound_local_norm(layer, x, Mask::none(), Norm::inf, signs);
  const double own = lower_bound_local_norm(layer, x, Mask::none(), Norm::inf, signs, {token, 1});
  CHECK(own == Approx(inf.value).epsilon(1e-12));
  CHECK(own <= inf.value * (1.0 + 1e-14));
  CHECK(own <= all * (1.0 + 1e-14));
}

TEST_CASE("lower_bound_local_norm: refuses a direction that is none", "[attention]") {
  const MultiHead layer = test::unit_layer(AttentionKind::dot);
  CHECK_THROWS_WITH(
      lower_bound_local_norm(layer, Matrix::Ones(2, 1), Mask::none(), Norm::two, Vector::Zero(2)),
      "lower_bound_local_norm: v must be finite, not zero and of length 2, got length 2");
}

}  // namespace
}  // namespace lipsa
