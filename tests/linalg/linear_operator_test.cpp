#include "lipsa/linalg/linear_operator.hpp"

#include <catch2/catch.hpp>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

struct Shift {  // (x_1, …, x_n) -> (0, x_1, …, x_n)
  Index n = 0;
  Index rows() const { return n + 1; }
  Index cols() const { return n; }
  void apply(const ConstVectorRef& in, VectorRef out) const {
    out(0) = 0.0;
    out.tail(n) = in;
  }
  void apply_adjoint(const ConstVectorRef& in, VectorRef out) const { out = in.tail(n); }
};

struct NoAdjoint {
  static Index rows() { return 1; }
  static Index cols() { return 1; }
  static void apply(const ConstVectorRef& in, VectorRef out) { out = in; }
};

static_assert(LinearOperator<Shift> && LinearOperator<DenseOperator>);
static_assert(LinearOperator<OperatorRef>);
static_assert(!LinearOperator<NoAdjoint> && !LinearOperator<Matrix>);

TEST_CASE("DenseOperator: multiplies by a matrix, or a block of one, and by its transpose",
          "[linalg]") {
  const auto [rows, cols] = GENERATE(table<Index, Index>({{1, 1}, {1, 6}, {6, 1}, {5, 8}, {0, 3}}));
  CAPTURE(rows, cols);
  Rng rng(2);
  const Matrix frame = normal_matrix(rng, rows + 2, cols + 3);
  const auto block = frame.block(1, 2, rows, cols);
  const DenseOperator dense(block);
  const OperatorRef a(dense);
  const Vector x = normal_matrix(rng, cols, 1);
  const Vector y = normal_matrix(rng, rows, 1);
  Vector ax(rows);
  Vector aty(cols);
  a.apply(x, ax);
  a.apply_adjoint(y, aty);
  CHECK(a.rows() == rows);
  CHECK(a.cols() == cols);
  CHECK((ax - block.lazyProduct(x)).norm() <= 1e-14 * x.norm() * block.norm());
  CHECK(y.dot(ax) == Approx(aty.dot(x)).margin(1e-14 * x.norm() * y.norm() * block.norm()));
}

TEST_CASE("OperatorRef: forwards to any operator, also one seen through another reference",
          "[linalg]") {
  const Shift shift{3};
  const OperatorRef a(shift);
  const OperatorRef again(a);
  CHECK(again.rows() == 4);
  CHECK(again.cols() == 3);
  const Vector x = Vector::LinSpaced(3, 1.0, 3.0);
  Vector up(4);
  Vector back(3);
  again.apply(x, up);
  again.apply_adjoint(up, back);
  CHECK(up(0) == 0.0);
  CHECK(up.tail(3) == x);
  CHECK(back == x);
}

}  // namespace
}  // namespace lipsa
