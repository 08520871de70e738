/// \file
/// Products of matrices with a bound on their rounding, free of overflow. Private to lib/.
#pragma once

#include <vector>

#include "lipsa/core/types.hpp"

namespace lipsa {

/// A real matrix within `error`, in the Frobenius norm, of middle; all times 2^exponent.
/// The largest entry of middle is in [½, 1), or the matrix is zero.
struct EnclosedMatrix {
  Matrix middle{};
  double error = 0.0;
  int exponent = 0;
};

/// x 2^exponent, for a number beyond double.
struct ScaledReal {
  double value = 0.0;
  int exponent = 0;
};

/// The matrix itself, or with entries known to `error` in the Frobenius norm.
EnclosedMatrix enclosed(const ConstMatrixRef& a, double error = 0.0);

EnclosedMatrix transposed(const EnclosedMatrix& a);
EnclosedMatrix product(const EnclosedMatrix& a, const EnclosedMatrix& b);

/// [A_1 … A_k], of equal numbers of rows.
EnclosedMatrix beside(const std::vector<EnclosedMatrix>& parts);

/// Σ_h P_h ⊗ W_hᵀ, the map X ↦ Σ_h P_h X W_h on row-major vec(X).
EnclosedMatrix kronecker_sum(const std::vector<EnclosedMatrix>& p,
                             const std::vector<EnclosedMatrix>& w);

/// At or above |A|_2 and |A|_F of every matrix enclosed.
ScaledReal upper_bound_spectral_norm(const EnclosedMatrix& a);
ScaledReal upper_bound_norm_frobenius(const EnclosedMatrix& a);

}  // namespace lipsa
