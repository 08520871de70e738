/// \file
/// The bounds of tied L2 attention of Kim, Papamakarios & Mnih, "The Lipschitz Constant of
/// Self-Attention", ICML 2021, Theorem 3.2.
#pragma once

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/bounds/up_rounded.hpp"

namespace lipsa {

/// φ⁻¹(n − 1) with φ(x) = x e^(x+1), in two readings.
enum class PhiInverse {
  exact,       ///< W((n − 1)/e)
  as_printed,  ///< W(n/e), slightly larger
};

/// With s = 1/√d as the paper has it,
///
///     Lip_inf(F) ≤ (4 φ⁻¹(n−1) + 1/√d) |W_Oᵀ|_inf max_h(|W_Qʰ|_inf |W_Qʰᵀ|_inf) max_h |W_Vʰᵀ|_inf
///
/// and in general s (4 √d φ⁻¹(n−1) + 1) in the first factor: the scale enters through
/// A_h = s W_Q W_Qᵀ and through z = √s W_Qᵀ x alone. Biases shift and play no part.
///
/// Holds for every mask under which a token that sees anything sees itself: a row of J is that of
/// the tokens it sees.
///
/// \param layer   valid, of kind l2
/// \param tokens  n ≥ 1, or the most that any token sees
/// \throws std::invalid_argument
/// \source ICML 2021, Theorem 3.2, first inequality; as we read it.
/// \test   tests/bounds/kim2021_test.cpp
UpRounded kim2021_inf(const MultiHead& layer, Index tokens, PhiInverse reading = PhiInverse::exact);

/// What the paper prints for the 2-norm, to our recollection and to three public programs:
///
///     √n s (4 φ⁻¹(n−1) + 1) (Σ_h |W_Qʰ|₂² |W_Vʰ|₂²)^½ |W_O|₂
///
/// No upper bound of anything: F is of degree 2 in W_Qʰ, the formula of degree 1. It is rounded
/// upwards all the same.
///
/// \param layer   valid, of kind l2
/// \param tokens  n ≥ 1
/// \throws std::invalid_argument
/// \source ICML 2021, Theorem 3.2, second inequality; exponents recalled.
/// \test   tests/bounds/kim2021_test.cpp: the layer that refutes it
UpRounded kim2021_2_printed(const MultiHead& layer, Index tokens,
                            PhiInverse reading = PhiInverse::as_printed);

/// The same with the degree the proof gives:
///
///     Lip_2(F) ≤ √n s (4 φ⁻¹(n−1) + 1) (Σ_h |W_Qʰ|₂⁴ |W_Vʰ|₂²)^½ |W_O|₂
///
/// With q_ij = |z_i − z_j|² and c = φ⁻¹(n−1) ≥ Σ_j P_ij q_ij, the parts of a head's core map have
/// norms |P|₂ ≤ √n, 2 c (the blocks 2 C_i) and 2 (c max_j Σ_i P_ij q_ij)^½ ≤ 2 c √n, together at
/// most √n (4c + 1). Masks as in kim2021_inf.
///
/// \param layer   valid, of kind l2
/// \param tokens  n ≥ 1
/// \throws std::invalid_argument
/// \source ICML 2021, Theorem 3.2, second inequality, exponent corrected.
/// \test   tests/bounds/kim2021_test.cpp
UpRounded kim2021_2(const MultiHead& layer, Index tokens);

}  // namespace lipsa
