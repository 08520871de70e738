#include "lipsa/model/linear.hpp"

#include <catch2/catch.hpp>

#include "piece_checks.hpp"
#include "random_pieces.hpp"

namespace lipsa {
namespace {

TEST_CASE("LinearAt: every derivative, whatever the shape", "[model]") {
  const auto [rows, D, D_out] =
      GENERATE(table<Index, Index, Index>({{1, 1, 1}, {5, 3, 7}, {6, 40, 2}, {300, 2, 70}}));
  const auto bias = GENERATE(true, false);
  CAPTURE(rows, D, D_out, bias);
  Rng rng(1);
  const Linear linear = test::random_linear(rng, D, D_out, bias);
  const Matrix x = normal_matrix(rng, rows, D);
  const LinearAt at(linear, x);
  Matrix expected = x.lazyProduct(linear.W);
  if (bias) {
    expected.rowwise() += linear.b.transpose();
  }
  CHECK((at.output() - expected).norm() <= 1e-14 * expected.norm());
  CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
  CHECK(test::input_derivative_error([&](const Matrix& at_x) { return LinearAt(linear, at_x); }, x,
                                     rng) <= test::difference_tolerance);
  CHECK(test::backward_error(
            linear, [&](const Linear& l) { return LinearAt(l, x); }, rng) <=
        test::difference_tolerance);
}

TEST_CASE("LinearAt: a gradient that is wrong in one array is seen", "[model]") {
  Rng rng(2);
  const Linear linear = test::random_linear(rng, 3, 4);
  const Matrix x = normal_matrix(rng, 5, 3);
  const Matrix u = normal_matrix(rng, 5, 4);
  const auto make = [&](const Linear& l) { return LinearAt(l, x); };
  Linear gradient = zeros_like(linear);
  make(linear).backward(u, gradient);
  for (Parameter& array : parameters(gradient)) {
    array.values(1) += 1e-6;
    CHECK(test::parameter_gradient_error(linear, make, u, gradient, rng) >
          test::difference_tolerance);
    array.values(1) -= 1e-6;
  }
}

TEST_CASE("LinearAt: the output can move on, derivatives remain", "[model]") {
  Rng rng(3);
  const Linear linear = test::random_linear(rng, 3, 4);
  LinearAt at(linear, normal_matrix(rng, 5, 3));
  const Matrix before = at.output();
  CHECK(at.take_output() == before);
  CHECK(at.output().size() == 0);
  CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
}

TEST_CASE("LinearAt: what it refuses, by name", "[model]") {
  Linear linear{.W = Matrix::Ones(3, 2)};
  CHECK_THROWS_WITH(LinearAt(linear, Matrix::Ones(4, 2)),
                    "LinearAt: x must have 3 columns (rows of W), got 2");
  const LinearAt at(linear, Matrix::Ones(4, 3));
  CHECK_THROWS_WITH(at.apply(Matrix::Ones(4, 2)), "LinearAt: dx must be 4 x 3, got 4 x 2");
  CHECK_THROWS_WITH(at.apply_adjoint(Matrix::Ones(3, 2)), "LinearAt: dy must be 4 x 2, got 3 x 2");
  Linear gradient{.W = Matrix::Ones(2, 3)};
  CHECK_THROWS_WITH(at.backward(Matrix::Ones(4, 2), gradient),
                    "LinearAt: gradient must have W of shape (3, 2), got W of shape (2, 3)");
  linear.b = Vector::Ones(3);
  CHECK_THROWS_WITH(LinearAt(linear, Matrix::Ones(4, 3)),
                    "LinearAt: b must be empty or of length 2, got 3");
}

}  // namespace
}  // namespace lipsa
