/// \file
/// Bounds of dot-product attention at and around given tokens, in the manner of Havens, Araujo,
/// Zhang & Hu, ICML 2024.
#pragma once

#include "lipsa/bounds/up_rounded.hpp"

namespace lipsa {

// With X' = X + δ, |δ|_F ≤ ε: F(X') − F(X) = Σ_h P_h(X) δ W_h + (P_h(X') − P_h(X)) X' W_h, W_h =
// W_V W_O of head h. Row by row the softmax is ½-Lipschitz, or M-Lipschitz at X, and S(X') − S(X) =
// δ (X Aᵀ)ᵀ + (X A + 1 βᵀ) δᵀ + δ A δᵀ, with β = s W_K b_Q.

/// ½ ((|X A + 1 βᵀ|_2 + |X Aᵀ|_2) + a ε) (|X W_h|_2 + ε |W_h|_2), the second term over ε.
///
/// With the mean token taken from X in X Aᵀ and X W_h, which changes nothing: rows of P sum to one.
///
/// \source The splitting is that of Havens et al., whose constants we could not compare.
/// \test   tests/bounds/point_bounds_test.cpp
UpRounded havens2024_weights_term(const UpRounded& xa, const UpRounded& xat, const UpRounded& a,
                                  const UpRounded& xw, const UpRounded& w, const UpRounded& around,
                                  const UpRounded& softmax);

}  // namespace lipsa
