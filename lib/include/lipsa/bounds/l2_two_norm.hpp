/// \file
/// Our bounds of tied L2 attention in the 2-norm, of order n^¼ log n, and their relatives.
#pragma once

#include "lipsa/bounds/up_rounded.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

// For the core map g(Z) = P(Z) Z, P_ij ∝ exp(−q_ij), q_ij = |z_i − z_j|², in any dimension, under
// masks where a token that sees anything sees itself. G_ij = exp(−q_ij) is positive semidefinite,
// and with u_i = 1/Σ_k G_ik, the sum over what i sees, P_ij = u_i G_ij and u_i ≤ 1. With `seen` the
// most tokens one token sees, c = W((seen − 1)/e):
//
//   rows     Σ_j P_ij q_ij ≤ c, so that |C_i|_2 ≤ c
//   columns  σ ≥ Σ_i P_ij, which is at most |u|_G over the i that see j:
//              √n       without a mask, as uᵀ G u ≤ Σ u_i² Σ_k G_ik = Σ u_i
//              √(2n)    with a causal one
//              the number of tokens that see j, with any
//   moments  M ≥ Σ_i P_ij q_ij, the least of
//              t (σ + 1)     from q ≤ t + e^(q−t−1), so P_ij q_ij ≤ t P_ij + u_i e^(−t−1),
//                            for t = W(others/e), others i ≠ j at most that see j
//              others W(1/e) from u_i ≤ 1/(1 + G_ij) and max q/(1 + e^q) = W(1/e)
//              n^((1+e)/2)/(e exp 1), 0 < e < 1, without a mask, √2 times it with a causal one,
//                            from q e^(−eq) ≤ 1/(e exp 1) and the columns of exp(−(1−e) q)
//
// The blocks of J_g are P_ij (I + 2 (z_j − m_i)(z_i − z_j)ᵀ), and 2 C_i more on the diagonal.

/// What a mask says to these bounds.
struct L2Core {
  UpRounded c;        ///< W((seen − 1)/e)
  UpRounded columns;  ///< σ
  UpRounded moment;   ///< M
  UpRounded tokens;   ///< n
};

enum class ColumnRule { unmasked, causal, counted };

/// \param tokens, seen, seeing  n; the most tokens that one sees; the most that see one; ≥ 1
/// \param others                the most tokens that see one other than themselves: seeing − 1, or
///                              seeing where one that sees nothing is seen by as many
/// \throws std::invalid_argument
/// \test tests/bounds/l2_two_norm_test.cpp
L2Core l2_core(Index tokens, Index seen, Index seeing, Index others, ColumnRule rule);

/// |J_g|_2 ≤ √σ + 2c + 2 √(c M), and ≤ √n (4c + 1); the lesser. |P|_2² ≤ σ by Schur's test, and
/// Cauchy–Schwarz over j, then over i, for the rest.
///
/// Without a mask it is at most n^¼ + c √(8 (√n + 2)).
///
/// \source Derived here. We know of no earlier bound of this order.
/// \test   tests/bounds/l2_two_norm_test.cpp
UpRounded l2_core_2(const L2Core& core);

/// max_i Σ_j |J_ij|_2 ≤ 1 + 4c, hence the norm with inf over tokens, 2 over features.
UpRounded l2_core_rows(const L2Core& core);

/// max_j Σ_i |J_ij|_2 ≤ σ + 2c + 2M + 2 √(c M σ), hence the norm with 1 over tokens, 2 over
/// features; from
/// |z_j − m_i| ≤ |z_j − z_i| + √c.
UpRounded l2_core_columns(const L2Core& core);

/// With p over tokens, 2 over features: rows^(1 − 1/p) columns^(1/p), by interpolation between the
/// row and column sums of the matrix of block norms. At d = 1 it is the plain p-norm. At p = 2,
/// Schur's test, without the rounding of a power.
///
/// \param p  ≥ 1, may be infinite
/// \throws std::invalid_argument
/// \source Riesz–Thorin for matrices of nonnegative numbers.
/// \test   tests/bounds/l2_two_norm_test.cpp
UpRounded l2_core_interpolated(const L2Core& core, double p);

}  // namespace lipsa
