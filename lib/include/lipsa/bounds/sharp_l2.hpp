/// \file
/// The exact constant of the core map of tied L2 attention in the infinity norm.
#pragma once

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/bounds/up_rounded.hpp"

namespace lipsa {

/// For g(Z) = P(Z) Z, P_ij ∝ exp(−|z_i − z_j|²), Z of n × d, and κ = 2 (1 + √d),
///
///     Lip_inf(g) ≤ L(n, d) = 1 + κ W((n − 1) e^(−1 − 2/κ)),   equal when n is odd.
///
/// \param tokens      n ≥ 1
/// \param head_width  d ≥ 1
/// \throws std::invalid_argument
/// \source Derived here. We know of no earlier statement.
/// \test   tests/bounds/sharp_l2_test.cpp
UpRounded sharp_l2_core_inf(Index tokens, Index head_width);

/// Lip_inf(F) ≤ L(n, d) s |W_Oᵀ|_inf max_h(|W_Qʰ|_inf |W_Qʰᵀ|_inf) max_h |W_Vʰᵀ|_inf: kim2021_inf
/// with the sharp constant, and never above it. Holds under the same masks.
///
/// \param layer   valid, of kind l2
/// \param tokens  n ≥ 1, or the most that any token sees
/// \throws std::invalid_argument
/// \source Derived here. We know of no earlier statement.
/// \test   tests/bounds/sharp_l2_test.cpp
UpRounded sharp_l2_inf(const MultiHead& layer, Index tokens);

}  // namespace lipsa
