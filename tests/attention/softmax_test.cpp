#include "lipsa/attention/softmax.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

TEST_CASE("softmax_rows: closed forms, however large the scores", "[attention]") {
  Matrix s(4, 3);
  s << 0.0, 0.0, 0.0,                      //
      1e308, 1e308, -1e308,                //
      std::log(1.0), std::log(2.0), -inf,  //
      -inf, -inf, -inf;
  softmax_rows(s);
  Matrix expected(4, 3);
  expected << 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0,  //
      0.5, 0.5, 0.0,                            //
      1.0 / 3.0, 2.0 / 3.0, 0.0,                //
      0.0, 0.0, 0.0;
  CHECK((s - expected).cwiseAbs().maxCoeff() <= 1e-15);
  CHECK(s(2, 2) == 0.0);
}

TEST_CASE("softmax_derivative: equals (diag(p) - p p') ds, and is its own adjoint", "[attention]") {
  Rng rng(1);
  Matrix p = normal_matrix(rng, 6, 9);
  softmax_rows(p);
  const Matrix ds = normal_matrix(rng, 6, 9);
  const Matrix g = normal_matrix(rng, 6, 9);
  Matrix dp = ds;
  Matrix gs = g;
  softmax_derivative(p, dp);
  softmax_derivative(p, gs);
  for (Index i = 0; i < p.rows(); ++i) {
    const Vector q = p.row(i).transpose();
    const Matrix jacobian = Matrix(q.asDiagonal()) - q * q.transpose();
    CHECK((dp.row(i).transpose() - jacobian * ds.row(i).transpose()).norm() <= 1e-15);
  }
  CHECK(dp.cwiseProduct(g).sum() == Approx(gs.cwiseProduct(ds).sum()).epsilon(1e-13));
}

}  // namespace
}  // namespace lipsa
