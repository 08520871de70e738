/// \file
/// The bounds of dot-product attention on a ball of tokens of Castin, Ablin & Peyré, "How Smooth Is
/// Attention?", ICML 2024.
#pragma once

#include "lipsa/bounds/up_rounded.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

// One head without biases on |x_i|_2 ≤ R in the 2-norm, with a = |A|_2, A = s W_Q W_Kᵀ, and
// v = |W_V|_2; several heads add up, v taken as |W_V W_O|. Arguments from above, results from
// above.

/// √3 v (a² R⁴ (4n + 1) + n)^½, any mask: the three terms of J are |P V| ≤ v √n, the
/// differences |x_j − m_i| ≤ 2R weighed by |Aᵀ x_i| ≤ aR, and |C_i Aᵀ| ≤ a R², and
/// (x + y + z)² ≤ 3 (x² + y² + z²).
///
/// \source Theorem 3.3, number recalled; derived again here.
/// \test   tests/bounds/castin2024_test.cpp
UpRounded castin2024_ball(const UpRounded& a, const UpRounded& v, const UpRounded& radius,
                          Index tokens);

/// v (1 + 3 a R²) e^(2 a R²), without masks: P_ij ≤ e^(2aR²)/n, so that no column sums to more than
/// e^(2aR²).
///
/// \source Theorem 3.5 on measures with the Wasserstein distance, number recalled; derived again
///         here for n tokens.
/// \test   tests/bounds/castin2024_test.cpp
UpRounded castin2024_mean_field(const UpRounded& a, const UpRounded& v, const UpRounded& radius);

/// v (r² g² (n + 1) + n)^½ with r = max |x_i − x_j|_2 and g = max_i |Aᵀ x_i|_2: what a program of
/// the authors evaluates at tokens X. No bound: the √3 is left out, and C_i Aᵀ is not bounded by r
/// g.
///
/// \source The authors' code, as read; not in the paper.
/// \test   tests/bounds/castin2024_test.cpp
UpRounded castin2024_code(const UpRounded& v, const UpRounded& diameter, const UpRounded& gradient,
                          Index tokens);

/// Below the Lipschitz constant in the 2-norm of one head with W_V = I, D ≥ 2, on |x_i|_2 ≤ R,
/// rounded downwards: √(n−1)/(1 + (n−1) e^(−2R²γ)), γ = max(−γ_min, γ_max/8) for the extreme real
/// eigenvalues of A. It is |J|_2 at most at the tokens that analytic_starts calls "eigenvector": u
/// a unit eigenvector of Aᵀ, x_1 = R u and the others ½ R u when γ_max > 8 |γ_min|, else x_1 = −R u
/// and the others R u.
///
/// \param gamma_max, gamma_min  finite; γ > 0
/// \param radius  ≥ 0, finite
/// \param tokens  ≥ 2
/// \throws std::invalid_argument
/// \source Proposition 3.4, number recalled.
/// \test   tests/bounds/castin2024_test.cpp
double castin2024_lower_bound(double gamma_max, double gamma_min, double radius, Index tokens);

}  // namespace lipsa
