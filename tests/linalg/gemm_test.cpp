#include "linalg/gemm.hpp"

#include <catch2/catch.hpp>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

Matrix transposed_if(const Matrix& m, Op op) {
  return op == Op::plain ? m : Matrix(m.transpose());
}

TEST_CASE("gemm: computes alpha op(a) op(b) + beta c on strided blocks", "[linalg]") {
  const auto [rows, inner, cols] = GENERATE(
      table<Index, Index, Index>({{1, 1, 1}, {1, 5, 3}, {4, 1, 6}, {7, 9, 2}, {40, 33, 65}}));
  const auto op_a = GENERATE(Op::plain, Op::transposed);
  const auto op_b = GENERATE(Op::plain, Op::transposed);
  const auto beta = GENERATE(0.0, 1.0, -0.5);
  CAPTURE(rows, inner, cols, op_a, op_b, beta);
  Rng rng(1);
  const Matrix a = transposed_if(normal_matrix(rng, rows, inner), op_a);
  const Matrix b = transposed_if(normal_matrix(rng, inner, cols), op_b);
  Matrix wide_a = Matrix::Constant(a.rows() + 2, a.cols() + 3, 1e9);
  wide_a.block(1, 2, a.rows(), a.cols()) = a;
  Matrix frame = normal_matrix(rng, rows + 2, cols + 2);
  const Matrix before = frame;

  gemm(1.5, wide_a.block(1, 2, a.rows(), a.cols()), op_a, b, op_b, beta,
       frame.block(1, 1, rows, cols));

  Matrix expected = before;
  expected.block(1, 1, rows, cols) =
      beta * before.block(1, 1, rows, cols) +
      1.5 * transposed_if(a, op_a).lazyProduct(transposed_if(b, op_b));
  const double rounding = 1e-15 * static_cast<double>(inner + 4) *
                          (a.cwiseAbs().maxCoeff() * b.cwiseAbs().maxCoeff() + 1.0) * 4.0;
  CHECK((frame - expected).cwiseAbs().maxCoeff() <= rounding);
  frame.block(1, 1, rows, cols) = before.block(1, 1, rows, cols);
  CHECK(frame == before);  // nothing outside the block was touched
}

TEST_CASE("gemm: with beta zero the output need not be initialised", "[linalg]") {
  const Index inner = GENERATE(0, 2);
  Matrix c = Matrix::Constant(3, 4, std::numeric_limits<double>::quiet_NaN());
  gemm(1.0, Matrix::Ones(3, inner), Op::plain, Matrix::Ones(inner, 4), Op::plain, 0.0, c);
  CHECK(c == Matrix::Constant(3, 4, static_cast<double>(inner)));
}

TEST_CASE("gemm: an empty inner dimension scales, an empty output is left alone", "[linalg]") {
  Matrix c = Matrix::Constant(2, 2, 3.0);
  gemm(1.0, Matrix(2, 0), Op::plain, Matrix(0, 2), Op::plain, 2.0, c);
  CHECK(c == Matrix::Constant(2, 2, 6.0));
  Matrix none(0, 2);
  gemm(1.0, Matrix(0, 5), Op::plain, Matrix(5, 2), Op::plain, 0.0, none);
  CHECK(none.size() == 0);
}

}  // namespace
}  // namespace lipsa
