/// \file
/// Tokens at which attention is known to be steep: where to start an ascent, and witnesses.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

struct NamedTokens {
  std::string name{};
  Matrix x{};  ///< n × D
};

/// The token whose rows of J become as large as any token's, when tokens are moved about: the first
/// without a mask, where permuting tokens permutes J; the last of a causal mask for l2, which sees
/// all and from which others may be sent away. −1 when no token is known to be: a causal mask with
/// any other kind, any other mask.
Index probe_token(AttentionKind kind, const Mask& mask, Index n);

/// Shrinks the tokens outside the ball into it: ‖x_i‖₂ ≤ radius then holds with rounding covered.
///
/// \param x  finite
void project_to_ball(Matrix& x, double radius);

/// Steep tokens for a kind of attention, one set for each head h and idea, named "idea" for H = 1
/// and "idea:h" for more; each within the ball ‖x_i‖₂ ≤ radius. May be empty; for cosine and
/// sigmoid it is.
///
/// | kind      | idea              | tokens                                                  |
/// |-----------|-------------------|---------------------------------------------------------|
/// | l2        | three-clusters    | z = √s W_Qᵀ x at 0, half at +y, half at −y: (1)         |
/// | l2        | opposite-clusters | the same along one coordinate, t² = 1 + W((n−1)/e)      |
/// | dot       | zero-and-opposite | one token without a query, half at +R u, half at −R u,  |
/// |           |                   | u the top right singular vector of A = W_Q W_Kᵀ         |
/// | dot       | eigenvector       | the extremal tokens of Castin et al., u one of Aᵀ       |
/// | l2-untied | mirror            | two clusters whose keys are equally far from one query  |
///
/// (1) y ∝ (1 + √d, 1, …, 1), ‖y‖² = 1 + w + 2/κ, w = W((n−1) exp(−1−2/κ)), κ = 2 (1 + √d): the
/// maximiser of the infinity norm for odd n.
///
/// For dot and l2-untied, R is `radius`, or 10 when that is infinite: their norms grow with R².
///
/// \source Kim et al. 2021, section 3.1; Castin, Ablin & Peyré 2024, proposition 3.4; the L2 ideas
///         are derived here.
/// \test   tests/search/starts_test.cpp
std::vector<NamedTokens> analytic_starts(const MultiHead& layer, const Mask& mask, Index n,
                                         double radius = std::numeric_limits<double>::infinity());

}  // namespace lipsa
