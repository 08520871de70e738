/// \file
/// Norms of dense Jacobians measured from below or to rounding, for tests of bounds.
#pragma once

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "lipsa/core/rng.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa::test {

/// What rounding of a dense Jacobian and its singular values may add to a measured norm.
inline constexpr double measurement_error = 1e-12;

/// By Jacobi: Eigen 3.4's BDCSVD was seen 5 % off on a 16 × 16 block matrix.
inline double dense_norm(const Matrix& a) {
  return Eigen::JacobiSVD<Eigen::MatrixXd>(a).singularValues()(0);
}

/// The max-token norm of J of D_out × D blocks, from below.
inline double dense_max_token(const Matrix& j, Index D_out, Index D) {
  double largest = 0.0;
  for (Index row = 0; row < j.rows(); row += D_out) {
    largest = std::max(largest, estimate_block_gain(j.middleRows(row, D_out), D).value);
  }
  return largest;
}

/// |J_ij|_2 of the D_out × D blocks of J.
inline Matrix block_norms(const Matrix& j, Index D_out, Index D) {
  Matrix norms(j.rows() / D_out, j.cols() / D);
  for (Index i = 0; i < norms.rows(); ++i) {
    for (Index k = 0; k < norms.cols(); ++k) {
      norms(i, k) = dense_norm(j.block(i * D_out, k * D, D_out, D));
    }
  }
  return norms;
}

/// Tokens of length R, in random directions.
inline Matrix sphere_tokens(Rng& rng, Index n, Index D, double R) {
  Matrix x = normal_matrix(rng, n, D);
  for (Index i = 0; i < n; ++i) {
    x.row(i) *= R / x.row(i).norm();
  }
  return x;
}

}  // namespace lipsa::test
