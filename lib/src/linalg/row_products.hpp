/// \file
/// Products of tall matrices, one token a row, on every processor. Private to lib/.
///
/// Work is cut by shapes alone and nothing is summed across pieces, so that results do not depend
/// on the number of threads.
#pragma once

#include <algorithm>

#include "linalg/gemm.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

inline Index pieces(Index total, Index size) {
  return (total + size - 1) / size;
}

/// Calls body(first, count) for consecutive pieces of [0, total), in parallel.
template <class Body>
void for_pieces(Index total, Index size, const Body& body) {
  parallel_for(pieces(total, size), [&](Index piece) {
    const Index first = piece * size;
    body(first, std::min(size, total - first));
  });
}

/// How many rows of so many make a piece: at least 16 rows, at most 256, else a sixteenth.
Index row_piece(Index rows);

/// Calls body(first, count) for pieces of rows, in parallel.
template <class Body>
void for_row_pieces(Index rows, const Body& body) {
  for_pieces(rows, row_piece(rows), body);
}

/// c = alpha a op(b) + beta c, rows in parallel. With beta = 0, c need not be initialised.
void multiply_rows(double alpha, const ConstMatrixRef& a, const ConstMatrixRef& b, Op op_b,
                   double beta, MatrixRef c);

/// c += alpha aᵀ b, summed over the rows of both: blocks of c in parallel.
void add_transposed_product(double alpha, const ConstMatrixRef& a, const ConstMatrixRef& b,
                            MatrixRef c);

/// sums += alpha aᵀ 1: blocks of columns in parallel.
void add_column_sums(double alpha, const ConstMatrixRef& a, VectorRef sums);

/// sums_k += Σ_i a_ik b_ik: blocks of columns in parallel.
void add_column_products(const ConstMatrixRef& a, const ConstMatrixRef& b, VectorRef sums);

/// c += a, rows in parallel.
void add_rows(const ConstMatrixRef& a, MatrixRef c);

/// Σ a_ij b_ij, by pieces of rows in their order.
double inner_product(const ConstMatrixRef& a, const ConstMatrixRef& b);

}  // namespace lipsa
