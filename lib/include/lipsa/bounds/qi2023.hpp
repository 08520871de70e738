/// \file
/// The bounds of scaled cosine similarity attention: Qi et al., "LipsFormer", ICLR 2023; Nair,
/// TMLR 2025; and ours.
#pragma once

#include "lipsa/bounds/up_rounded.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

// One head of AttentionKind::cosine in the 2-norm on all X, without W_O and the factor ν, which
// multiplies. q, k, v are |W_Q|_2, |W_K|_2, |W_V|_2, τ the scale of the scores. Biases shift before
// rows are normalised and play no part. Arguments from above.
//
// All rest on |ẑ|_2 ≤ 1 and |dẑ|_2 ≤ ε^(−½) |dz|_2 for ẑ = z/(|z|² + ε)^½.

/// ε^(−½) (2 n (n−1) τ k + 2 (n−1) τ q + 2 n v), without masks.
/// \source Qi et al., Theorem 1.
/// \test   tests/bounds/qi2023_test.cpp
UpRounded qi2023_cosine(const UpRounded& q, const UpRounded& k, const UpRounded& v,
                        const UpRounded& tau, const UpRounded& epsilon_root_inverse, Index tokens);

/// ε^(−½) (n² τ k + n τ q + 2 n v), without masks.
/// \source Nair, Theorem 2: the softmax is ½-Lipschitz.
/// \test   tests/bounds/qi2023_test.cpp
UpRounded nair2025_cosine(const UpRounded& q, const UpRounded& k, const UpRounded& v,
                          const UpRounded& tau, const UpRounded& epsilon_root_inverse,
                          Index tokens);

/// ε^(−½) (β v + ½ τ n (q + k)) with β² at or above the column sums of P: |P dV̂| ≤ β |dV̂|, and
/// |dP V̂| ≤ ½ |dS|_F √n with |dS|_F ≤ τ √n (|dQ̂|_F + |dK̂|_F). Any mask.
/// \source Derived here.
/// \test   tests/bounds/qi2023_test.cpp
UpRounded cosine_2(const UpRounded& q, const UpRounded& k, const UpRounded& v, const UpRounded& tau,
                   const UpRounded& epsilon_root_inverse, const UpRounded& beta, Index tokens);

/// ε^(−½) (v + τ (q + k)) in the max-token norm: |dP_i|_1 ≤ max_j |dS_ij|. Any mask, any n.
/// \source Derived here.
/// \test   tests/bounds/qi2023_test.cpp
UpRounded cosine_max_token(const UpRounded& q, const UpRounded& k, const UpRounded& v,
                           const UpRounded& tau, const UpRounded& epsilon_root_inverse);

}  // namespace lipsa
