#include "lipsa/model/linear.hpp"

#include "core/same_shapes.hpp"
#include "linalg/row_products.hpp"

namespace lipsa {

LinearAt::LinearAt(const Linear& linear, Matrix x) : linear_(linear), x_(std::move(x)) {
  const Matrix& W = linear_.W;
  require(x_.cols() == W.rows(), "LinearAt: x must have {} columns (rows of W), got {}", W.rows(),
          x_.cols());
  require(linear_.b.size() == 0 || linear_.b.size() == W.cols(),
          "LinearAt: b must be empty or of length {}, got {}", W.cols(), linear_.b.size());
  const SerialBlas serial;
  output_.resize(x_.rows(), W.cols());
  for_row_pieces(x_.rows(), [&](Index first, Index count) {
    auto rows = output_.middleRows(first, count);
    gemm(1.0, x_.middleRows(first, count), Op::plain, W, Op::plain, 0.0, rows);
    if (linear_.b.size() > 0) {
      rows.rowwise() += linear_.b.transpose();
    }
  });
}

Matrix LinearAt::apply(const ConstMatrixRef& dx) const {
  require_shape("LinearAt", "dx", dx, rows(), input_width());
  Matrix dy(rows(), output_width());
  multiply_rows(1.0, dx, linear_.W, Op::plain, 0.0, dy);
  return dy;
}

Matrix LinearAt::apply_adjoint(const ConstMatrixRef& dy) const {
  require_shape("LinearAt", "dy", dy, rows(), output_width());
  Matrix dx(rows(), input_width());
  multiply_rows(1.0, dy, linear_.W, Op::transposed, 0.0, dx);
  return dx;
}

Matrix LinearAt::backward(const ConstMatrixRef& dy, Linear& gradient) const {
  require_same_shapes("LinearAt", linear_, gradient);
  Matrix dx = apply_adjoint(dy);
  add_transposed_product(1.0, x_, dy, gradient.W);
  if (gradient.b.size() > 0) {
    add_column_sums(1.0, dy, gradient.b);
  }
  return dx;
}

}  // namespace lipsa
