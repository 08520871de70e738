/// \file
/// Functional attention in the RMS norm: Large et al., "Scalable Optimization in the Modular Norm",
/// 2024, and Newhouse et al., "Training Transformers with Enforced Lipschitz Constants", 2025.
#pragma once

#include "lipsa/bounds/up_rounded.hpp"

namespace lipsa {

// F(q, k, v) = softmax(s q kᵀ + mask) v, tokens measured by |x|_RMS = |x|_2/√d and matrices of
// tokens by the largest: |DF(δq, δk, δv)| ≤ L (|δq| + |δk| + |δv|) with L as below, where |q|, |k|,
// |v| are such norms.

/// L = max(1, s d |v| max(|q|, |k|)), any mask; with s = 1/d it is Theorem C.1 of the paper, and
/// with norms of at most one the unit sensitivity of Large et al., Proposition 7.
///
/// δP v is at most s d |v| (|δq| |k| + |q| |δk|), as |softmax derivative|_{inf → 1} ≤ 1, and P δv
/// at most |δv|.
///
/// \source Newhouse et al. 2025, Theorem C.1; the power of s d corrected.
/// \test   tests/bounds/newhouse2025_test.cpp
UpRounded newhouse2025_functional(const UpRounded& scale_times_d, const UpRounded& q,
                                  const UpRounded& k, const UpRounded& v);

/// L = √(s d) max(1, |v| max(|q|, |k|)), as printed. No bound for s d ≠ 1: q = k = v = 0 and s d =
/// 0.01 have |DF(0, 0, δv)| = |δv| above 0.1 |δv|.
///
/// \source Newhouse et al. 2025, equation 23.
/// \test   tests/bounds/newhouse2025_test.cpp
UpRounded newhouse2025_functional_printed(const UpRounded& scale_times_d, const UpRounded& q,
                                          const UpRounded& k, const UpRounded& v);

}  // namespace lipsa
