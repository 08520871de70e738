/// \file
/// The bound of sigmoid attention of Ramapuram et al., "Theory, Analysis, and Best Practices for
/// Sigmoid Self-Attention", ICLR 2025.
#pragma once

#include "lipsa/bounds/up_rounded.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

/// v (n σ + 2 σ' a Σ_i |x_i|_2²), one head in the 2-norm without biases, any mask: σ and σ' bound
/// the weights P_ij and their derivatives by the scores. Arguments from above.
///
/// |P|_2 ≤ |P|_F ≤ n σ, and |dP X|_F ≤ σ' |dS|_F |X|_2 ≤ 2 σ' a |X|_2² |dX|_F.
///
/// \source Theorem 3.2, recalled; derived again here.
/// \test   tests/bounds/ramapuram2025_test.cpp
UpRounded ramapuram2025_sigmoid(const UpRounded& a, const UpRounded& v, const UpRounded& sigma,
                                const UpRounded& slope, const UpRounded& squares, Index tokens);

/// At or above max 1/(1 + e^(−t)), and of its derivative, over |t − bias| ≤ reach.
/// \test   tests/bounds/ramapuram2025_test.cpp
double upper_bound_sigmoid(double bias, double reach);
double upper_bound_sigmoid_slope(double bias, double reach);

}  // namespace lipsa
