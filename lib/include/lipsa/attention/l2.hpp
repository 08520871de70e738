/// \file
/// L2 scores, S_ij = −s ‖q_i − k_j‖², and their derivatives, safe from cancellation.
#pragma once

#include "lipsa/core/types.hpp"

namespace lipsa {

/// The scores of some tokens' queries Q (r × d) against all keys K (n × d), and their derivative;
/// the same contract as DotProductScores. With W_K = W_Q this is the attention of Kim et al., with
/// W_K of its own its untied variant.
///
/// Distances are sums of squared differences, never ‖q‖² − 2 q·k + ‖k‖²: exactly zero between
/// equal tokens, never negative. The derivatives drop what is constant in a row of S and become
/// products of matrices,
///
///     dS_ij ≅ 2s (q_i · dk_j + k_j · dq_i − k_j · dk_j),
///
/// whose terms are as large as the coordinates where only differences count. That costs about
/// eps · s · (largest coordinate)², so with `by_differences` they are summed difference by
/// difference instead: as accurate as the distances, and some ten times slower.
///
/// \source Kim, Papamakarios & Mnih, ICML 2021, section 3.2.
/// \test   tests/attention/scores_test.cpp
struct L2Scores {
  double scale = 1.0;           ///< s
  bool by_differences = false;  ///< see above

  /// S_ij = −s ‖q_i − k_j‖², r × n
  void scores(const ConstMatrixRef& q, const ConstMatrixRef& k, MatrixRef s) const;

  /// dS_ij = −2s (q_i − k_j) · (dq_i − dk_j), up to a constant in each row
  void tangent(const ConstMatrixRef& q, const ConstMatrixRef& k, const ConstMatrixRef& dq,
               const ConstMatrixRef& dk, MatrixRef ds) const;

  /// gQ_i −= 2s Σ_j G_ij (q_i − k_j), gK_j += 2s Σ_i G_ij (q_i − k_j)
  void adjoint(const ConstMatrixRef& q, const ConstMatrixRef& k, const ConstMatrixRef& g,
               MatrixRef gq, MatrixRef gk) const;

  /// ∂S_ij/∂k_j as rows, n × d: 2s (q_i − k_j)
  void key_gradient(const ConstMatrixRef& qi, const ConstMatrixRef& k, MatrixRef rows) const;

  /// ∂S_ij/∂q_i = query_factor · k_j, up to a constant in each row
  double query_factor() const { return 2.0 * scale; }

  /// Whether the fast derivatives would lose more than some 1e-12 of the coordinates Q, K.
  static bool needs_differences(double scale, const ConstMatrixRef& q, const ConstMatrixRef& k);
};

}  // namespace lipsa
