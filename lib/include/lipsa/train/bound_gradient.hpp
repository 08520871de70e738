/// \file
/// The gradient of a Lipschitz bound in the weights, for layers that are divided by theirs.
#pragma once

#include <limits>
#include <string_view>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"

namespace lipsa {

struct [[nodiscard]] BoundGradient {
  /// L, the catalogue's: an upper bound of the Lipschitz constant, rounding covered; exactly zero
  /// when W_Q, W_V or W_O is.
  double upper_bound = std::numeric_limits<double>::quiet_NaN();

  /// ∂log L/∂W, of the shapes of the layer; biases have none. Zero where w is, and
  /// where L is infinite.
  MultiHead log_gradient{};
};

/// L = C(n, d) w(weights) of tied L2 attention, by the entry of that name in the catalogue:
///
/// | name                        | w, s apart                                                        |
/// |-----------------------------|-------------------------------------------------------------------|
/// | kim2021_inf, sharp_l2_inf   | |W_O|_1 max_h(|W_Qʰ|_inf |W_Qʰ|_1) max_h |W_Vʰ|_1, |·|_1 the induced |
/// | kim2021_2                   | (Σ_h |W_Qʰ|_2⁴ |W_Vʰ|_2²)^½ |W_O|_2                               |
/// | l2_2_fused                  | |[W_Q¹ … W_Qᴴ]|_2 |[(W_Qʰᵀ W_Vʰ W_Oʰ)ᵀ]_h|_2                         |
///
/// The gradient is that of the formula without its rounding. At a maximum that several rows,
/// columns or heads attain it is the subgradient of the first; of a spectral norm it is u vᵀ of the
/// top singular pair, one of them where they are several. The pair is an estimate of spectral_norm:
/// it turns the gradient by about 1e-10 over the relative gap behind it, and touches no bound.
///
/// \param entry   one of those names
/// \param layer   valid, of kind l2
/// \param mask    under which the entry holds: every token that sees anything sees itself
/// \param tokens  n ≥ 1
/// \throws std::invalid_argument  another name, or the entry does not hold, with its reason
/// \source Kim, Papamakarios & Mnih, ICML 2021, for the division by the bound; derivatives derived
///         here.
/// \test   tests/train/bound_gradient_test.cpp
BoundGradient bound_gradient(std::string_view entry, const MultiHead& layer, const Mask& mask,
                             Index tokens);

/// The gain c/L, rounded down, by which a layer is contractive with factor c, in the norm of the
/// bound. Where L is zero the layer is constant and the gain 0, where L is infinite too.
///
/// \param factor  c > 0
/// \throws std::invalid_argument
double contractive_gain(const BoundGradient& bound, double factor);

/// gradient += gain_gradient ∂gain/∂W for gain = c/L, ∂gain/∂W = −gain ∂log L/∂W: the part of a
/// loss's gradient that goes through the divisor, after AttentionLayerAt::backward has given the
/// gradient in the gain.
void add_gain_gradient(const BoundGradient& bound, double gain, double gain_gradient,
                       MultiHead& gradient);

}  // namespace lipsa
