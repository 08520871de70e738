/// \file
/// Norms of the derivative of the softmax, M(p) = diag(p) − p pᵀ at p = softmax(s).
#pragma once

#include "lipsa/core/types.hpp"

namespace lipsa {

// p has entries in [0, 1] that sum to one, or to zero for a row without attention; what of it
// computers keep is rounded, so upper bounds take p from below and from above, entry by entry. All
// throw std::invalid_argument when lengths differ, entries leave [0, 1] or lower exceeds upper.

/// The Lipschitz constant of the softmax in every p-norm, n ≥ 2: ½. Attained at p = (½, ½).
/// \source Nair, TMLR 2025, Theorem 1.
inline constexpr double softmax_lipschitz = 0.5;

/// An estimate of |M(p)|_2 to a few units of rounding: the root λ in [p_(2), p_(1)] of
/// Σ_i p_i/(p_i − λ) = 0, the secular equation of diag(p) less a matrix of rank one; by bisection.
/// \test tests/bounds/softmax_test.cpp
double softmax_norm_2(const ConstVectorRef& p);

/// |M(p)|_1 = |M(p)|_inf = max_i 2 p_i (1 − p_i), as computed.
/// \source Nair, TMLR 2025, Theorem 1; Qi et al., ICLR 2023, appendix H.
double softmax_norm_inf(const ConstVectorRef& p);

/// At or above |M(p)|_2: a λ for which λ I − M(p) is shown positive semidefinite, that is
/// 1 + Σ_i p_i²/(λ − p_i) ≤ 0 between p_(2) and p_(1), rounding covered; and never above g₁ nor ½.
/// \test tests/bounds/softmax_test.cpp
double upper_bound_softmax_norm_2(const ConstVectorRef& lower, const ConstVectorRef& upper);

/// At or above g₁(p) = p_(1) (1 − p_(1) + p_(2)) ≥ |M(p)|_2, p_(k) the k-th largest entry.
/// \source Yudin, Gaponov, Kudriashov & Rakhuba 2025, Corollary 1.
double upper_bound_softmax_g1(const ConstVectorRef& lower, const ConstVectorRef& upper);

/// At or above max_i 2 p_i (1 − p_i).
double upper_bound_softmax_norm_inf(const ConstVectorRef& lower, const ConstVectorRef& upper);

/// At or above 1 − Σ p_i² = tr M(p) ≥ |M(p)|_2.
double upper_bound_softmax_trace(const ConstVectorRef& lower, const ConstVectorRef& upper);

/// At or above |M(p)|_{inf → 1} = 4 max_S p(S) (1 − p(S)): 4 p_(1) (1 − p_(1)) where p_(1) ≥ ½,
/// else 1, which the maximum reaches when some set of tokens has half the mass. \source Emadi 2026,
/// for the quantity.
double upper_bound_softmax_norm_inf_1(const ConstVectorRef& lower, const ConstVectorRef& upper);

}  // namespace lipsa
