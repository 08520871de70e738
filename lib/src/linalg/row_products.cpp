#include "linalg/row_products.hpp"

namespace lipsa {
namespace {

/// Eight pieces, each a multiple of 16, at least 32.
Index column_piece(Index columns) {
  constexpr Index granule = 16;
  return std::max(2 * granule, pieces(columns, 8 * granule) * granule);
}

/// Σ_i of what add(i, sum) adds to a row of sums: by pieces of rows, which are then added in order.
/// Row after row, not Eigen's colwise().sum(), which walks down columns.
template <class Add>
Vector sum_of_rows(Index rows, Index columns, const Add& add) {
  const Index size = row_piece(rows);
  Matrix partial = Matrix::Zero(pieces(rows, size), columns);
  for_pieces(rows, size, [&](Index first, Index count) {
    auto sum = partial.row(first / size);
    for (Index i = first; i < first + count; ++i) {
      add(i, sum);
    }
  });
  Vector total = Vector::Zero(columns);
  for (Index k = 0; k < partial.rows(); ++k) {
    total += partial.row(k).transpose();
  }
  return total;
}

}  // namespace

Index row_piece(Index rows) {
  return std::clamp<Index>(pieces(rows, 16), 16, 256);
}

void multiply_rows(double alpha, const ConstMatrixRef& a, const ConstMatrixRef& b, Op op_b,
                   double beta, MatrixRef c) {
  const SerialBlas serial;
  for_row_pieces(a.rows(), [&](Index first, Index count) {
    gemm(alpha, a.middleRows(first, count), Op::plain, b, op_b, beta, c.middleRows(first, count));
  });
}

void add_transposed_product(double alpha, const ConstMatrixRef& a, const ConstMatrixRef& b,
                            MatrixRef c) {
  const SerialBlas serial;
  if (c.cols() >= c.rows()) {
    for_pieces(c.cols(), column_piece(c.cols()), [&](Index first, Index count) {
      gemm(alpha, a, Op::transposed, b.middleCols(first, count), Op::plain, 1.0,
           c.middleCols(first, count));
    });
  } else {
    for_pieces(c.rows(), column_piece(c.rows()), [&](Index first, Index count) {
      gemm(alpha, a.middleCols(first, count), Op::transposed, b, Op::plain, 1.0,
           c.middleRows(first, count));
    });
  }
}

void add_column_sums(double alpha, const ConstMatrixRef& a, VectorRef sums) {
  sums += alpha * sum_of_rows(a.rows(), a.cols(), [&](Index i, auto& sum) { sum += a.row(i); });
}

void add_column_products(const ConstMatrixRef& a, const ConstMatrixRef& b, VectorRef sums) {
  sums += sum_of_rows(a.rows(), a.cols(),
                      [&](Index i, auto& sum) { sum += a.row(i).cwiseProduct(b.row(i)); });
}

void add_rows(const ConstMatrixRef& a, MatrixRef c) {
  for_row_pieces(c.rows(), [&](Index first, Index count) {
    c.middleRows(first, count) += a.middleRows(first, count);
  });
}

double inner_product(const ConstMatrixRef& a, const ConstMatrixRef& b) {
  const Index size = row_piece(a.rows());
  Vector sums = Vector::Zero(pieces(a.rows(), size));
  for_pieces(a.rows(), size, [&](Index first, Index count) {
    sums(first / size) = a.middleRows(first, count).cwiseProduct(b.middleRows(first, count)).sum();
  });
  double total = 0.0;
  for (const double sum : sums) {
    total += sum;
  }
  return total;
}

}  // namespace lipsa
