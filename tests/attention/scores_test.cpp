#include <catch2/catch.hpp>

#include "lipsa/attention/dot_product.hpp"
#include "lipsa/attention/l2.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

/// What softmax sees of scores: each row less its mean.
Matrix visible(Matrix s) {
  s.colwise() -= s.rowwise().mean().eval();
  return s;
}

TEST_CASE("L2Scores: a hand computation for 3 tokens of width 4 (case A2)", "[attention]") {
  Matrix q(3, 4);
  q << 1, 0, 0, 0,  //
      0, 2, 0, 0,   //
      1, 1, 1, 1;
  Matrix s(3, 3);
  L2Scores{.scale = 0.5}.scores(q, q, s);
  Matrix expected(3, 3);
  expected << 0.0, -2.5, -1.5,  // squared distances 5, 3, 4
      -2.5, 0.0, -2.0,          //
      -1.5, -2.0, 0.0;
  CHECK(s == expected);
}

TEST_CASE("L2Scores: tokens 512695 and 512804 are 109 apart (case B4)", "[attention]") {
  Matrix x(3, 1);
  x << 512695.0, 512804.0, 0.0;
  Matrix s(3, 3);
  L2Scores{}.scores(x, x, s);
  CHECK(s(0, 1) == -109.0 * 109.0);
  CHECK(s(0, 0) == 0.0);
}

TEST_CASE("L2Scores: near duplicates never have a positive score (case B8)", "[attention]") {
  Rng rng(2);
  const Matrix base = 1e8 * normal_matrix(rng, 1, 5).replicate(40, 1);
  const Matrix x = base + 1e-8 * normal_matrix(rng, 40, 5);
  Matrix s(40, 40);
  L2Scores{}.scores(x, x, s);
  CHECK(s.maxCoeff() == 0.0);
  CHECK(s.diagonal().isZero(0.0));
}

TEMPLATE_TEST_CASE("Scores: derivatives agree with central differences and with each other",
                   "[attention]", DotProductScores, L2Scores) {
  const auto [r, n, d] = GENERATE(table<Index, Index, Index>({{1, 1, 1}, {1, 6, 1}, {4, 6, 3}}));
  CAPTURE(r, n, d);
  Rng rng(3);
  TestType kind{.scale = 0.7};
  const Matrix q = normal_matrix(rng, r, d);
  const Matrix k = normal_matrix(rng, n, d);
  const Matrix dq = normal_matrix(rng, r, d);
  const Matrix dk = normal_matrix(rng, n, d);
  const double h = 1e-4;  // scores are quadratic: the difference has no truncation error
  Matrix plus(r, n);
  Matrix minus(r, n);
  kind.scores(q + h * dq, k + h * dk, plus);
  kind.scores(q - h * dq, k - h * dk, minus);
  Matrix ds(r, n);
  kind.tangent(q, k, dq, dk, ds);
  CHECK((visible(ds) - visible((plus - minus) / (2.0 * h))).norm() <= 1e-10);

  const Matrix g = visible(normal_matrix(rng, r, n));
  Matrix gq = Matrix::Zero(r, d);
  Matrix gk = Matrix::Zero(n, d);
  kind.adjoint(q, k, g, gq, gk);
  CHECK(g.cwiseProduct(ds).sum() ==
        Approx(gq.cwiseProduct(dq).sum() + gk.cwiseProduct(dk).sum()).epsilon(1e-12).margin(1e-13));

  Matrix by_key(n, d);
  kind.key_gradient(q.topRows(1), k, by_key);
  Matrix only_keys(r, n);
  kind.tangent(q, k, Matrix::Zero(r, d), dk, only_keys);
  const Vector expected = by_key.cwiseProduct(dk).rowwise().sum();
  CHECK((visible(only_keys.topRows(1)) - visible(expected.transpose())).norm() <= 1e-13);

  const Vector by_query = kind.query_factor() * k * dq.row(0).transpose();
  Matrix only_queries(r, n);
  kind.tangent(q, k, dq, Matrix::Zero(n, d), only_queries);
  CHECK((visible(only_queries.topRows(1)) - visible(by_query.transpose())).norm() <= 1e-13);
}

TEST_CASE("L2Scores: both ways to differentiate agree where both are accurate", "[attention]") {
  Rng rng(4);
  const Matrix q = normal_matrix(rng, 5, 3);
  const Matrix k = normal_matrix(rng, 8, 3);
  const Matrix dq = normal_matrix(rng, 5, 3);
  const Matrix dk = normal_matrix(rng, 8, 3);
  const Matrix g = visible(normal_matrix(rng, 5, 8));
  const L2Scores fast{.scale = 0.3};
  const L2Scores careful{.scale = 0.3, .by_differences = true};
  Matrix ds_fast(5, 8);
  Matrix ds_careful(5, 8);
  fast.tangent(q, k, dq, dk, ds_fast);
  careful.tangent(q, k, dq, dk, ds_careful);
  CHECK((visible(ds_fast) - visible(ds_careful)).norm() <= 1e-13);
  Matrix gq_fast = Matrix::Ones(5, 3);
  Matrix gk_fast = Matrix::Ones(8, 3);
  Matrix gq_careful = gq_fast;
  Matrix gk_careful = gk_fast;
  fast.adjoint(q, k, g, gq_fast, gk_fast);
  careful.adjoint(q, k, g, gq_careful, gk_careful);
  CHECK((gq_fast - gq_careful).norm() <= 1e-13);
  CHECK((gk_fast - gk_careful).norm() <= 1e-13);
}

}  // namespace
}  // namespace lipsa
