#include "lipsa/attention/jacobian.hpp"

#include <Eigen/SVD>
#include <catch2/catch.hpp>

#include "lipsa/core/parallel.hpp"
#include "lipsa/linalg/linear_operator.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::kinds;
using test::random_layer;
using test::random_mask;
using test::Shape;
using test::shapes;
using test::vec;

static_assert(LinearOperator<Jacobian>);

Mask mask_of(int which, Rng& rng, Index n) {
  return which == 0 ? Mask::none() : which == 1 ? Mask::causal() : random_mask(rng, n);
}

Matrix column_by_column(const Jacobian& jacobian) {
  Matrix j(jacobian.rows(), jacobian.cols());
  Vector column(jacobian.rows());
  for (Index c = 0; c < jacobian.cols(); ++c) {
    jacobian.apply(Vector::Unit(jacobian.cols(), c), column);
    j.col(c) = column;
  }
  return j;
}

double largest_singular_value(const Matrix& a) {
  return Eigen::JacobiSVD<Matrix>(a).singularValues()(0);
}

TEST_CASE("Jacobian: every way to it agrees, for every kind, shape and mask", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto shape = GENERATE(from_range(shapes));
  const auto which_mask = GENERATE(0, 1, 2);
  CAPTURE(to_string(kind), shape, which_mask);
  Rng rng(7);
  const MultiHead layer = random_layer(rng, kind, shape);
  const Mask mask = mask_of(which_mask, rng, shape.n);
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  const Jacobian jacobian(layer, x, mask);
  const Matrix j = jacobian.dense();

  SECTION("central differences") {
    const Matrix dx = normal_matrix(rng, shape.n, shape.D);
    Vector dy(jacobian.rows());
    jacobian.apply(vec(dx), dy);
    const double h = 1e-5;  // truncation O(h²), rounding O(eps / h): about 1e-10
    const Matrix difference =
        (attend(layer, x + h * dx, mask) - attend(layer, x - h * dx, mask)) / (2.0 * h);
    CHECK((dy - vec(difference)).norm() <= 1e-8 * (1.0 + dy.norm()));
  }
  SECTION("the closed form against products") {
    const Matrix columns = column_by_column(jacobian);
    CHECK((j - columns).norm() <= 1e-13 * (1.0 + columns.norm()));
    Matrix faulty = j;  // a Jacobian off in one entry is seen
    faulty(faulty.rows() - 1, 0) += 1e-6;
    CHECK((faulty - columns).norm() > 1e-13 * (1.0 + columns.norm()));
  }
  SECTION("the adjoint") {
    const Vector u = normal_matrix(rng, jacobian.cols(), 1);
    const Vector w = normal_matrix(rng, jacobian.rows(), 1);
    Vector ju(jacobian.rows());
    Vector jtw(jacobian.cols());
    jacobian.apply(u, ju);
    jacobian.apply_adjoint(w, jtw);
    CHECK(std::abs(ju.dot(w) - u.dot(jtw)) <= 1e-12 * ju.norm() * w.norm());
  }
  SECTION("row blocks and streamed norms") {
    for (Index i = 0; i < shape.n; ++i) {
      CHECK(jacobian.row_block(i) == j.middleRows(i * shape.D_out, shape.D_out));
    }
    const AttainedNorm inf = jacobian.norm_inf();
    const AttainedNorm one = jacobian.norm_1();
    CHECK(inf.value == Approx(j.cwiseAbs().rowwise().sum().maxCoeff()).epsilon(1e-13));
    CHECK(one.value == Approx(j.cwiseAbs().colwise().sum().maxCoeff()).epsilon(1e-13));
    CHECK(j.row(inf.index).cwiseAbs().sum() == Approx(inf.value).epsilon(1e-13));
    CHECK(j.col(one.index).cwiseAbs().sum() == Approx(one.value).epsilon(1e-13));
    CHECK(jacobian.norm_frobenius() == Approx(j.norm()).epsilon(1e-13));
    CHECK(spectral_norm(jacobian).value == Approx(largest_singular_value(j)).epsilon(1e-9));
  }
  SECTION("a range of output tokens is those rows of it") {
    const TokenRange range{shape.n / 2, shape.n - shape.n / 2};
    const Jacobian part(layer, x, mask, range);
    const auto rows = j.middleRows(range.first * shape.D_out, range.count * shape.D_out);
    CHECK((part.dense() - rows).norm() <= 1e-14 * (1.0 + j.norm()));
    CHECK((column_by_column(part) - rows).norm() <= 1e-13 * (1.0 + j.norm()));
    CHECK((part.output() - attend(layer, x, mask).middleRows(range.first, range.count)).norm() <=
          1e-14 * (1.0 + j.norm()));
  }
  SECTION("the second derivative") {
    const Vector u = normal_matrix(rng, jacobian.rows(), 1);
    const Vector v = normal_matrix(rng, jacobian.cols(), 1);
    const Matrix gradient = jacobian.second_derivative(u, v);
    const Matrix dx = normal_matrix(rng, shape.n, shape.D);
    const auto value = [&](const Matrix& at) {
      const Jacobian moved(layer, at, mask);
      Vector jv(moved.rows());
      moved.apply(v, jv);
      return u.dot(jv);
    };
    const double h = 1e-5;
    const double difference = (value(x + h * dx) - value(x - h * dx)) / (2.0 * h);
    CHECK(std::abs(gradient.cwiseProduct(dx).sum() - difference) <=
          1e-7 * (1.0 + u.norm() * v.norm()));
  }
}

TEST_CASE("Jacobian: golden values of three tokens", "[attention]") {
  Matrix x(3, 2);
  x << 1.0, 0.0, 0.0, 1.0, -1.0, 0.5;
  MultiHead layer{.kind = AttentionKind::dot};
  layer.W_Q = (Matrix(2, 2) << 1.0, 0.5, -0.5, 1.0).finished();
  layer.W_K = Matrix::Identity(2, 2);
  layer.W_V = Matrix::Identity(2, 2);
  layer.scale = 1.0;
  const Jacobian plain(layer, x);
  CHECK(spectral_norm(plain).value == Approx(1.5922516210136985).epsilon(1e-14));
  CHECK(plain.norm_frobenius() == Approx(2.6269452347711058).epsilon(1e-14));
  CHECK(plain.norm_inf().value == Approx(1.9075491827469897).epsilon(1e-14));
  CHECK(plain.norm_1().value == Approx(2.1930127700358115).epsilon(1e-14));
  CHECK(largest_singular_value(plain.attention_weights(0)) ==
        Approx(1.0371730446776062).epsilon(1e-14));
  const Jacobian causal(layer, x, Mask::causal());
  CHECK(spectral_norm(causal).value == Approx(1.4024768624702837).epsilon(1e-14));
  CHECK(largest_singular_value(causal.attention_weights(0)) ==
        Approx(1.0589199048682356).epsilon(1e-14));
}

TEST_CASE("Jacobian: golden values of five tokens with values narrower than tokens",
          "[attention]") {
  Matrix x(5, 4);
  x << 1, 0, .5, -.5, 0, 1, -1, .25, .5, .5, .5, .5, -1, 0, 0, 1, .25, -.75, 1, 0;
  MultiHead layer{.kind = AttentionKind::dot};
  layer.W_Q = Vector((Vector(4) << 1.0, -0.5, 0.25, -1.0).finished()).asDiagonal();
  layer.W_K = Matrix::Identity(4, 4);
  layer.W_V = (Matrix(3, 4) << 1, 2, 0, 0, 0, 1, 0, -1, .5, 0, 1, 0).finished().transpose();
  layer.scale = 1.0;
  CHECK(spectral_norm(Jacobian(layer, x)).value == Approx(2.5220422081845464).epsilon(1e-13));
  CHECK(spectral_norm(Jacobian(layer, x, Mask::causal())).value ==
        Approx(3.537975868471014).epsilon(1e-13));
}

TEST_CASE("Jacobian: golden values of the adversarial tokens of Castin et al.", "[attention]") {
  const auto [n, expected] = GENERATE(table<Index, double>({{2, 1.1736182497},
                                                            {5, 2.3418481444},
                                                            {10, 3.9783985098},
                                                            {50, 12.0355811069},
                                                            {100, 16.1590197578}}));
  MultiHead layer{.kind = AttentionKind::dot};
  layer.W_Q = Vector(Eigen::Vector2d(2.0, -1.0)).asDiagonal();
  layer.W_K = Matrix::Identity(2, 2);
  layer.W_V = Matrix::Identity(2, 2);
  layer.scale = 1.0;
  Matrix x = Matrix::Zero(n, 2);
  x.col(1).setConstant(1.5);
  x(0, 1) = -1.5;
  CHECK(spectral_norm(Jacobian(layer, x)).value == Approx(expected).epsilon(1e-10));
}

TEST_CASE("Jacobian: untied L2 grows as the witness says, 1/2 - t²(a-b)²", "[attention]") {
  const double t = 100.0;
  const double a = 1.0;
  const double b = 0.6;
  MultiHead layer = test::unit_layer(AttentionKind::l2_untied);
  layer.W_Q *= a;
  layer.W_K *= b;
  const Matrix x = (Matrix(2, 1) << t, t * (2.0 * a - b) / b).finished();
  const Matrix j = Jacobian(layer, x).dense();
  CHECK(j(0, 1) == Approx(0.5 - t * t * (a - b) * (a - b)).epsilon(1e-12));
  CHECK(j(0, 1) == Approx(-1599.5).epsilon(1e-12));
}

TEST_CASE("Jacobian: permuting tokens permutes its blocks", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  CAPTURE(to_string(kind));
  const Shape shape{6, 3, 2, 2, 2, 3};
  Rng rng(9);
  const MultiHead layer = random_layer(rng, kind, shape);
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  Eigen::PermutationMatrix<Eigen::Dynamic> order(shape.n);
  order.indices() << 3, 0, 5, 1, 4, 2;
  const Matrix j = Jacobian(layer, x).dense();
  const Matrix permuted = Jacobian(layer, order * x).dense();
  for (Index i = 0; i < shape.n; ++i) {
    for (Index k = 0; k < shape.n; ++k) {
      CHECK((permuted.block(order.indices()(i) * 3, order.indices()(k) * 3, 3, 3) -
             j.block(i * 3, k * 3, 3, 3))
                .norm() <= 1e-13);
    }
  }
}

TEST_CASE("Jacobian: L2 forgets a common offset, however large (case B6)", "[attention]") {
  const auto offset = GENERATE(1e5, 1e8);
  CAPTURE(offset);
  const Shape shape{6, 3, 2, 2, 2, 3};
  Rng rng(10);
  const MultiHead layer = random_layer(rng, AttentionKind::l2, shape);
  const Matrix x = (normal_matrix(rng, shape.n, shape.D) * 1024.0).array().round() / 1024.0;
  const Matrix moved = x.array() + offset;  // exact: ten binary places each
  const Matrix j = Jacobian(layer, x).dense();
  CHECK((Jacobian(layer, moved).dense() - j).norm() <= 1e-10 * j.norm());
  Vector columns = j * Vector::Constant(j.cols(), offset);  // affine along the offset
  CHECK((vec(attend(layer, moved)) - vec(attend(layer, x)) - columns).norm() <=
        1e-14 * offset * static_cast<double>(j.cols()));
}

TEST_CASE("Jacobian: tokens in tight groups far apart keep their digits (case B4)", "[attention]") {
  // Two pairs 1e6 apart, each token 1 from its twin: what a pair does depends on nothing else.
  const auto far = GENERATE(1e3, 1e6);
  CAPTURE(far);
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  const Matrix x = (Matrix(4, 1) << 0.0, 1.0, far, far + 1.0).finished();
  const Matrix pair = Jacobian(layer, x.topRows(2)).dense();
  const Jacobian jacobian(layer, x);
  Matrix expected = Matrix::Zero(4, 4);
  expected.topLeftCorner(2, 2) = pair;
  expected.bottomRightCorner(2, 2) = pair;
  CHECK((jacobian.dense() - expected).norm() <= 1e-9);
  CHECK((column_by_column(jacobian) - expected).norm() <= 1e-9);
  Matrix transposed(4, 4);
  for (Index i = 0; i < 4; ++i) {
    Vector row(4);
    jacobian.apply_adjoint(Vector::Unit(4, i), row);
    transposed.row(i) = row.transpose();
  }
  CHECK((transposed - expected).norm() <= 1e-9);
}

TEST_CASE("Jacobian: equal tokens, a huge token, zero weights", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  CAPTURE(to_string(kind));
  const Shape shape{4, 2, 1, 2, 2, 2};
  Rng rng(11);
  MultiHead layer = random_layer(rng, kind, shape, false);
  const Matrix equal = normal_matrix(rng, 1, 2).replicate(4, 1);
  const Jacobian at_equal(layer, equal);
  CHECK(at_equal.dense().allFinite());  // case B1
  if (kind != AttentionKind::l2_untied && kind != AttentionKind::sigmoid) {
    CHECK((at_equal.attention_weights(0).array() - 0.25).abs().maxCoeff() <= 1e-15);
  }
  Matrix huge = normal_matrix(rng, 4, 2);
  huge.row(2) *= 1e12;
  CHECK(Jacobian(layer, huge).dense().allFinite());
  layer.W_Q.setZero();
  layer.W_K.setZero();
  layer.W_V.setZero();
  const Jacobian zero(layer, huge);
  CHECK(zero.norm_inf().value == 0.0);
  CHECK(spectral_norm(zero).value == 0.0);  // case B17
}

TEST_CASE("Jacobian: hand computations of cosine and sigmoid attention", "[attention]") {
  // One token: N'(x) = ((‖x‖² + ε) I − xxᵀ)/(‖x‖² + ε)^{3/2}, and I/√ε at zero.
  MultiHead cosine{.kind = AttentionKind::cosine, .epsilon = 4.0};
  cosine.W_Q = cosine.W_K = cosine.W_V = Matrix::Identity(2, 2);
  const Matrix expected = (Matrix(2, 2) << 8.0, -2.0, -2.0, 5.0).finished() / 27.0;
  const Matrix token = (Matrix(1, 2) << 1.0, 2.0).finished();
  CHECK((Jacobian(cosine, token).dense() - expected).norm() <= 1e-15);
  CHECK(Jacobian(cosine, Matrix::Zero(1, 2)).dense() == 0.5 * Matrix::Identity(2, 2));

  // y_0 = σ(x_0² + β) x_0 + σ(x_0 x_1 + β) x_1 at (1, −2) with β = 2
  MultiHead sigmoid = test::unit_layer(AttentionKind::sigmoid);
  sigmoid.score_bias = 2.0;
  const Matrix j = Jacobian(sigmoid, (Matrix(2, 1) << 1.0, -2.0).finished()).dense();
  const double p = 1.0 / (1.0 + std::exp(-3.0));
  CHECK(j(0, 0) == Approx(p + 2.0 * p * (1.0 - p) + 0.25 * 4.0).epsilon(1e-14));
  CHECK(std::abs(j(0, 1)) <= 1e-15);  // 1/2 + 1/4 · 1 · (−2)
}

TEST_CASE("Jacobian: cosine at tokens of zero and with a tiny epsilon is finite and agrees",
          "[attention]") {
  const auto epsilon = GENERATE(1.0, 1e-6, 1e-30, 1e-300);
  const auto d = GENERATE(Index{1}, Index{3});
  const auto biases = GENERATE(false, true);
  CAPTURE(epsilon, d, biases);
  Rng rng(16);
  const Shape shape{4, 3, 2, d, d, 3};
  MultiHead layer = random_layer(rng, AttentionKind::cosine, shape, biases);
  layer.epsilon = epsilon;
  Matrix x = normal_matrix(rng, shape.n, shape.D);
  x.row(1).setZero();
  const Jacobian jacobian(layer, x);
  const Matrix j = jacobian.dense();
  CHECK(j.allFinite());
  CHECK((j - column_by_column(jacobian)).norm() <= 1e-13 * (1.0 + j.norm()));
  if (!biases) {  // a token of zero alone: the weights, over √ε
    const Matrix alone = Jacobian(layer, x.row(1)).dense() * std::sqrt(epsilon);
    CHECK((alone - (layer.W_V * layer.W_O).transpose()).norm() <= 1e-14 * alone.norm());
  }
  if (epsilon > 1e-300) {  // there it is the square of 1/√ε
    const Vector u = normal_matrix(rng, jacobian.rows(), 1);
    const Vector v = normal_matrix(rng, jacobian.cols(), 1);
    CHECK(jacobian.second_derivative(u, v).allFinite());
  }
}

TEST_CASE("Jacobian: a length that overflows is an overflow, not a token of zero", "[attention]") {
  MultiHead layer = test::unit_layer(AttentionKind::cosine);
  layer.W_Q = layer.W_K = layer.W_V = Matrix::Ones(1, 4);
  layer.W_O = Matrix::Ones(4, 1);
  CHECK(Jacobian(layer, Matrix::Constant(2, 1, 1e200)).dense().allFinite());
  CHECK_THROWS_WITH(Jacobian(layer, Matrix::Constant(2, 1, 1.7e308)),
                    "Jacobian: lengths of queries, keys or values overflow; scale x or the "
                    "weights down");
}

TEST_CASE("Jacobian: sigmoid with scores of 1e4 of either sign is linear, without NaN",
          "[attention]") {
  MultiHead layer = test::unit_layer(AttentionKind::sigmoid);
  const Matrix x = (Matrix(3, 1) << 100.0, -100.0, 200.0).finished();
  const Jacobian jacobian(layer, x);
  Matrix expected(3, 3);  // a token sees those of its own sign, with weight 1
  expected << 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0;
  CHECK(jacobian.dense() == expected);
  CHECK(column_by_column(jacobian) == expected);
  CHECK(jacobian.second_derivative(Vector::Ones(3), Vector::Ones(3)).isZero(0.0));
  layer.score_bias = -1e308;
  CHECK(Jacobian(layer, x).dense().isZero(0.0));
}

TEST_CASE("Jacobian: sigmoid counts what the softmax forgets: offsets of values and of scores",
          "[attention]") {
  Rng rng(17);
  const Shape shape{5, 3, 2, 2, 2, 3};
  MultiHead layer = random_layer(rng, AttentionKind::sigmoid, shape);
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  const Matrix j = Jacobian(layer, x).dense();
  MultiHead moved = layer;
  moved.b_V.array() += 1.0;
  CHECK((Jacobian(moved, x).dense() - j).norm() > 0.1);
  moved = layer;
  moved.score_bias += 1.0;
  CHECK((Jacobian(moved, x).dense() - j).norm() > 0.1);
  // σ is nearly exp far below zero: P/e^β tends to the scores' exponentials.
  moved.score_bias = -50.0;
  const Matrix p = Jacobian(moved, x).attention_weights(0);
  moved.kind = AttentionKind::dot;
  moved.score_bias = 0.0;
  Matrix softmax = Jacobian(moved, x).attention_weights(0);
  CHECK((p.array().colwise() / p.rowwise().sum().array() - softmax.array()).abs().maxCoeff() <=
        1e-14);
}

TEST_CASE("Jacobian: a token that sees nothing is a zero row, and named (case B10)",
          "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  const Shape shape{4, 3, 2, 2, 2, 3};
  Rng rng(12);
  MultiHead layer = random_layer(rng, kind, shape);
  layer.b_O.resize(0);
  const Mask mask = random_mask(rng, 4);
  const Jacobian jacobian(layer, normal_matrix(rng, 4, 3), mask);
  CHECK(jacobian.blind_tokens() == std::vector<Index>{0});
  CHECK(jacobian.dense().topRows(3).isZero(0.0));
  CHECK(jacobian.output().row(0).isZero(0.0));
  CHECK(jacobian.output().allFinite());
}

TEST_CASE("Jacobian: the same bits for any number of threads", "[attention]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto heads = GENERATE(Index{1}, Index{4});
  const Shape shape{300, 8, heads, 4, 4, 8};
  Rng rng(13);
  const MultiHead layer = random_layer(rng, kind, shape);
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  const Vector v = normal_matrix(rng, shape.n * shape.D, 1);
  const auto run = [&](Index threads) {
    const ThreadLimit limit(threads);
    const Jacobian jacobian(layer, x);
    Vector jv(v.size());
    Vector jtjv(v.size());
    jacobian.apply(v, jv);
    jacobian.apply_adjoint(jv, jtjv);
    const Matrix second = jacobian.second_derivative(jv, v);
    return std::tuple{jtjv, second, jacobian.norm_inf().value, jacobian.norm_1().value};
  };
  CHECK(run(1) == run(2));
}

TEST_CASE("Jacobian: may be asked from inside a parallel loop", "[attention]") {
  Rng rng(14);
  const Shape shape{20, 3, 2, 2, 2, 3};
  const Jacobian jacobian(random_layer(rng, AttentionKind::l2, shape), normal_matrix(rng, 20, 3));
  std::vector<double> norms(20);
  parallel_for(20, [&](Index i) {
    norms[static_cast<std::size_t>(i)] =
        jacobian.row_block(i).cwiseAbs().rowwise().sum().maxCoeff();
  });
  CHECK(*std::max_element(norms.begin(), norms.end()) ==
        Approx(jacobian.norm_inf().value).epsilon(1e-14));
}

TEST_CASE("Jacobian: what it refuses, by name", "[attention]") {
  Rng rng(15);
  const Shape shape{3, 2, 1, 2, 2, 2};
  const MultiHead layer = random_layer(rng, AttentionKind::dot, shape);
  const Matrix x = normal_matrix(rng, 3, 2);
  CHECK_THROWS_WITH(Jacobian(layer, Matrix::Zero(3, 5)),
                    "Jacobian: x must have 2 columns (rows of W_Q), got 5");
  CHECK_THROWS_WITH(Jacobian(layer, Matrix::Zero(0, 2)),
                    "Jacobian: x must have at least one row, got 0");
  Matrix bad = x;
  bad(1, 0) = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(Jacobian(layer, bad), "Jacobian: x must be finite, got nan at (1, 0)");
  CHECK_THROWS_WITH(Jacobian(layer, 1e200 * x),
                    "Jacobian: scores overflow; scale x or the weights down");
  CHECK_THROWS_WITH(Jacobian(layer, x, random_mask(rng, 4)),
                    "Jacobian: mask must be for 3 tokens as x, got 4");
  CHECK_THROWS_WITH(Jacobian(layer, x, Mask::none(), {2, 2}),
                    "Jacobian: outputs must be tokens of [0, 3), got 2 from 2");
  const Jacobian jacobian(layer, x);
  Matrix out(2, 2);
  CHECK_THROWS_WITH(jacobian.dense_into(out), "Jacobian: out must be 6 x 6, got 2 x 2");
  CHECK_THROWS_WITH(jacobian.row_block(3), "Jacobian: token must be in [0, 3), got 3");
}

}  // namespace
}  // namespace lipsa
