/// \file
/// Lipschitz constants of the layers around attention: LayerNorm, RMSNorm, residual, composition.
#pragma once

#include <span>

#include "lipsa/bounds/up_rounded.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

/// A normalisation of single tokens x in R^D,
///
///     LayerNorm  y = γ ∘ (x − μ)/√(σ² + ε) + β,  μ, σ² mean and variance of the features of x
///     RMSNorm    y = γ ∘ x/√(|x|_2²/D + ε) + β
///
/// by what bounds of it depend on.
struct Normalisation {
  enum class Kind { layer_norm, rms_norm };
  Kind kind = Kind::layer_norm;
  Index width = 1;         ///< D ≥ 1
  double epsilon = 1e-5;   ///< ε > 0
  double gamma_max = 1.0;  ///< max_a |γ_a|, ≥ 0
  double beta_norm = 0.0;  ///< |β|_2, ≥ 0
};

/// At or above the Lipschitz constant on all x. The inner matrix of J = diag(γ) r⁻¹ (I − 1 1ᵀ/D − x̂
/// x̂ᵀ/D) is symmetric with eigenvalues in [0, 1], r² = σ² + ε, |x̂|_2² = D σ²/r²; of RMSNorm without
/// 1 1ᵀ/D:
///
///     2, max-token   |γ|_max ε^(−½)
///     1, inf         |γ|_max ε^(−½) (2 (D−1)/D + 2/(3√3) √(D−1))       LayerNorm
///                    |γ|_max ε^(−½) (1 + (1 + √D)/(3√3))               RMSNorm
///
/// with |x̂_i| ≤ √((D−1)/D) |x̂|_2 and |x̂|_1 ≤ √D |x̂|_2 where features sum to zero,
/// |x̂_i| |x̂|_1 ≤ ½ (1 + √D) |x̂|_2² anywhere, and max_r r⁻¹ (1 − ε/r²) = 2/(3√3) ε^(−½).
///
/// \throws std::invalid_argument  a field out of range
/// \test   tests/bounds/normalisation_test.cpp
UpRounded normalisation_lipschitz(const Normalisation& layer, Norm norm);

/// At or above |J(x)|_2 at one token: |γ|_max/√(σ² + ε), with the mean square for RMSNorm.
///
/// \param x  of length D, finite
/// \throws std::invalid_argument
/// \test   tests/bounds/normalisation_test.cpp
UpRounded normalisation_point_2(const Normalisation& layer, const ConstVectorRef& x);

/// At or above |y|_2 for every x: |γ|_max √D + |β|_2. The radius of the ball of tokens that comes
/// after it.
/// \test tests/bounds/normalisation_test.cpp
UpRounded normalisation_radius(const Normalisation& layer);

/// 1 + L for x + f(x).
UpRounded residual_lipschitz(const UpRounded& f);

/// The product, for the composition: its log10_value stays finite where the value overflows.
UpRounded composed_lipschitz(std::span<const UpRounded> layers);

}  // namespace lipsa
