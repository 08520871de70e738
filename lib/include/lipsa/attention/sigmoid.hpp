/// \file
/// Sigmoid attention: weights P_ij = σ(S_ij + β) that no row normalises, and their derivatives.
#pragma once

#include "lipsa/core/types.hpp"

namespace lipsa {

/// The weights of sigmoid attention in place, and their slopes,
///
///     P = σ(S + β),  P' = σ'(S + β) = P ∘ (1 − P),  σ(t) = 1/(1 + e^−t),
///
/// of scores S by DotProductScores. Weights and slopes are accurate relative to themselves for
/// every score, however large: σ is e^−|t| or 1 over 1 + e^−|t|, and σ' is never 1 less what rounds
/// to it. A score of −∞, which a mask puts, gives zero of both.
///
/// Each weight has a score of its own and a row of P any sum: constants in a row of S and offsets
/// of the values count here, and derivatives know no mean over a row. dP = P' ∘ dS, and the second
/// derivative is σ'' = σ' (1 − 2σ).
///
/// \param bias    β, finite
/// \param s       S, r × n, no NaN; P on return
/// \param slopes  r × n; P' on return
/// \source Ramapuram et al., Theory, Analysis, and Best Practices for Sigmoid Self-Attention, ICLR
///         2025.
/// \test   tests/attention/sigmoid_test.cpp
void sigmoid_weights(double bias, MatrixRef s, MatrixRef slopes);

}  // namespace lipsa
