#include "linalg/row_products.hpp"

namespace lipsa {
namespace {

/// Eight pieces, each a multiple of 16, at least 32.
Index column_piece(Index columns) {
  return std::max<Index>(32, pieces(columns, 8 * 16) * 16);
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
  for_pieces(a.cols(), column_piece(a.cols()), [&](Index first, Index count) {
    Eigen::RowVectorXd total = Eigen::RowVectorXd::Zero(count);
    for (Index i = 0; i < a.rows(); ++i) {
      total += a.row(i).segment(first, count);
    }
    sums.segment(first, count) += alpha * total.transpose();
  });
}

void add_column_products(const ConstMatrixRef& a, const ConstMatrixRef& b, VectorRef sums) {
  for_pieces(a.cols(), column_piece(a.cols()), [&](Index first, Index count) {
    Eigen::RowVectorXd total = Eigen::RowVectorXd::Zero(count);
    for (Index i = 0; i < a.rows(); ++i) {
      total += a.row(i).segment(first, count).cwiseProduct(b.row(i).segment(first, count));
    }
    sums.segment(first, count) += total.transpose();
  });
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
