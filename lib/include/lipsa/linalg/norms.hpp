/// \file
/// Norms of explicit matrices: as computed, and bounded from above with their rounding covered.
#pragma once

#include <string_view>

#include "lipsa/core/types.hpp"

namespace lipsa {

/// Which norm of vec(X), and the operator norm it induces.
enum class Norm {
  one,
  two,
  inf,
  max_token,  ///< max_i |x_i|_2: inf over tokens, 2 over features
};

std::string_view to_string(Norm norm);  ///< "1", "2", "inf", "max-token"

/// \throws std::invalid_argument  `text` is none of "1", "2", "inf", "max-token"
Norm parse_norm(std::string_view text);

// Every function below throws std::invalid_argument when an entry is not finite, returns 0 for an
// empty or a zero matrix, and returns +inf when the norm exceeds the largest double.

/// The norms as computed: an error of a few units in the last place times the number of terms.
/// \test tests/linalg/norms_test.cpp
double norm_1(const ConstMatrixRef& a);          ///< max_j Σ_i |a_ij|
double norm_inf(const ConstMatrixRef& a);        ///< max_i Σ_j |a_ij|
double norm_frobenius(const ConstMatrixRef& a);  ///< (Σ a_ij²)^½, without overflow

/// |(|x_1|_2, …, |x_n|_2)|_p for the rows x_i of a token matrix: p over tokens, 2 over features.
/// \throws std::invalid_argument  p = max_token, which is mixed already
double mixed_norm(const ConstMatrixRef& x, Norm p);

/// |A v|_2 for the v found with blocks |v_j|_2 = 1, and u = A v/|A v|_2.
struct BlockGain {
  double value = 0.0;
  Vector u{};
  Vector v{};
};

/// An estimate from below of max |A v|_2 over v = (v_1, …, v_n), |v_j|_2 ≤ 1, for A = [A_1 … A_n]
/// with `width` columns a block: the max-token norm of the rows of one token. It is max_u Σ_j |A_jᵀ
/// u|_2 over unit u, climbed by u ← A v, v_j ← A_jᵀ u/|A_jᵀ u|_2, which never descends, from each
/// coordinate and from the top left singular vector. Climbs whose u come within some 2.6 degrees of
/// each other go on as one. The problem is not concave: the highest point may be missed.
///
/// \param width  ≥ 1, divides the columns
/// \throws std::invalid_argument
/// \test   tests/linalg/norms_test.cpp
BlockGain estimate_block_gain(const ConstMatrixRef& a, Index width);

/// At or above the norm, rounding covered: each operation that rounds down is moved up to the next
/// double, so a result whose operations are all exact is the norm itself.
/// \test tests/linalg/norms_test.cpp
double upper_bound_norm_1(const ConstMatrixRef& a);
double upper_bound_norm_inf(const ConstMatrixRef& a);
double upper_bound_norm_frobenius(const ConstMatrixRef& a);

/// At or above |A|_2, rounding covered; above it by less than one part in 10¹² up to 256 × 256.
///
/// The smallest of |A|_F, (|A|_1 |A|_inf)^½, and, with B = A V for a computed eigenbasis V of AᵀA
/// (A transposed first when wide),
///
///     |A|_2 = |B V⁻¹|_2 ≤ |B|_2 / σ_min(V),
///     |B|_2² ≤ max_i (BᵀB)_ii + |offdiag BᵀB|_F,      σ_min(V)² ≥ 1 − |VᵀV − I|_F.
///
/// This holds for every V with |VᵀV − I|_F < 1: a poor V loosens the bound and cannot break it. The
/// three products are split so that their leading parts are exact, and what remains is bounded.
/// Cost: nine matrix products and one symmetric eigenproblem of size min(rows, cols).
///
/// Relies on BLAS products being sums, in any order and with or without fused operations, of the
/// products of entries: not on Strassen's scheme.
///
/// \source Rump, BIT Numer. Math. 51 (2011) 367–384, for the inequality;
///         Ozaki, Ogita, Oishi & Rump, Numer. Algorithms 59 (2012) 95–118, for the split products.
/// \test   tests/linalg/norms_test.cpp
double upper_bound_spectral_norm(const ConstMatrixRef& a);

/// At or above the operator norm of J induced by the mixed norm (p over tokens, 2 over features),
/// J being made of blocks of the given size, one a pair of output and input tokens:
///
///     p = inf: max over block rows of Σ_j |J_ij|_2,
///     p = 1:   max over block columns of Σ_i |J_ij|_2,
///
/// by the triangle inequality, hence above the induced norm even in exact arithmetic unless blocks
/// are 1 × 1; p = 2: upper_bound_spectral_norm(J).
///
/// \throws std::invalid_argument  a block size is below 1 or does not divide the size of J; p is
///         max_token
/// \test   tests/linalg/norms_test.cpp
double upper_bound_mixed_operator_norm(const ConstMatrixRef& j, Index rows_per_block,
                                       Index cols_per_block, Norm p);

}  // namespace lipsa
