/// \file
/// Our bounds of dot-product attention on a ball of tokens |x_i|_2 ≤ R, any mask and biases.
#pragma once

#include "lipsa/bounds/up_rounded.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

// One head, scores (Aᵀ x_i + β)·x_j up to a constant of the row, A = s W_Q W_Kᵀ, β = s W_K b_Q;
// with M = W_V W_O and g = a R + |β|_2 ≥ |Aᵀ x_i + β|_2. Arguments from above.
//
// Row token i of J in direction dX is Mᵀ [Σ_j P_ij ψ_ij(dx_j) + C_i Aᵀ dx_i], where
// ψ_ij(y) = y + (x_j − m_i) (g_i·y). For a unit vector u, |ψ_ijᵀ u|² = |u + (u·(x_j − m_i)) g_i|²
// has P_i-mean 1 + (uᵀ C_i u) |g_i|², since the cross term averages to zero, and uᵀ C_i u ≤ R².

/// At or above Σ_i P_ij for every j: the least of `count`, the number of tokens that see j, and
/// what scores of at most R g leave, e^(2 R g) without a mask, times 1 + ½ + … + 1/n with a causal
/// one.
///
/// \param harmonic  0 where no such bound is known, 1 without a mask, 1 + … + 1/n for causal
/// \test tests/bounds/dot_ball_test.cpp
UpRounded dot_column_sum(const UpRounded& radius, const UpRounded& gradient, const UpRounded& count,
                         const UpRounded& harmonic);

/// √columns (1 + R² g²)^½ + a R² in the 2-norm: Cauchy–Schwarz over j, then the column sums.
/// \source Derived here. We know of no earlier statement.
/// \test   tests/bounds/dot_ball_test.cpp
UpRounded dot_ball_2(const UpRounded& a, const UpRounded& gradient, const UpRounded& radius,
                     const UpRounded& columns);

/// p + √columns R g + a R² in the 2-norm, for |P|_2 ≤ p: the same by the triangle inequality, which
/// is less where p is, as 2 e^(2 R g) is for causal masks.
///
/// \source Derived here.
/// \test   tests/bounds/dot_ball_test.cpp
UpRounded dot_ball_triangle_2(const UpRounded& a, const UpRounded& gradient,
                              const UpRounded& radius, const UpRounded& columns,
                              const UpRounded& p);

/// (1 + R² g²)^½ + a R² in the max-token norm: by Jensen, n does not enter.
/// \source Derived here. We know of no earlier statement.
/// \test   tests/bounds/dot_ball_test.cpp
UpRounded dot_ball_max_token(const UpRounded& a, const UpRounded& gradient,
                             const UpRounded& radius);

}  // namespace lipsa
