/// \file
/// Residual maps X + γ F(X) of self-attention, made invertible by division by a bound.
#pragma once

#include <limits>
#include <string>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/bounds/bound.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

struct ContractiveOptions {
  double factor = 0.9;  ///< c, in (0, 1): the Lipschitz constant that γ F may have at most

  /// What F is divided by: an entry of the catalogue about all X, by its name, or
  ///
  /// | word      | upper bound of Lip(F)                     | norm |
  /// |-----------|-------------------------------------------|------|
  /// | "kim2021" | `kim2021_inf`, the divisor of the paper   | inf  |
  /// | "sharp"   | `sharp_l2_inf`, never larger              | inf  |
  /// | "two"     | the smallest of the catalogue that holds  | 2    |
  std::string divisor = "kim2021";
};

/// g(X) = X + γ F(X), F(X) = attend(layer, X, mask). Its inverse: invert/inverse.hpp.
///
/// *Contractive*: γ = c/L with an upper bound L of the Lipschitz constant of F on all X, rounded
/// down, so that Lip(γ F) ≤ c < 1 is proved and g is a bijection:
///
///     const auto g = ResidualAttention::contractive(layer, n, {.factor = 0.9});
///     const Inverse back = invert(g, g.forward(x));  // back.x is x
///
/// A class, so that its contraction stays that of its layer.
///
/// \source Kim, Papamakarios & Mnih, ICML 2021, section 4; proofs/Invert.v,
///         `Invert.contractive_attention_bijective`.
/// \test   tests/invert/contractive_test.cpp
class ResidualAttention {
 public:
  /// γ = c/L, for inputs of exactly `tokens` tokens. A layer whose bound is 0 has a constant F, and
  /// γ = c.
  ///
  /// \param layer   valid, D_out = D
  /// \param tokens  n ≥ 1
  /// \throws std::invalid_argument  c is not in (0, 1); no such entry; the bound does not hold for
  ///         this layer and mask, is infinite, or so large that γ is no positive double:
  ///         the message says why
  static ResidualAttention contractive(MultiHead layer, Index tokens,
                                       const ContractiveOptions& options = {},
                                       Mask mask = Mask::none());

  /// γ as given, for any kind of attention and number of tokens; nothing is proved, and g need not
  /// have an inverse. Figure 3 of the paper is of these.
  ///
  /// \param gain  γ, finite
  /// \param norm  in which an inverse's error is measured
  /// \throws std::invalid_argument  the layer is invalid, D_out ≠ D
  static ResidualAttention undivided(MultiHead layer, double gain, Mask mask = Mask::none(),
                                     Norm norm = Norm::inf);

  const MultiHead& layer() const { return layer_; }
  const Mask& mask() const { return mask_; }
  double gain() const { return gain_; }          ///< γ
  Norm norm() const { return norm_; }            ///< of contraction() and of an inverse's error
  Index tokens() const { return tokens_; }       ///< n; 0: any
  const Bound& bound() const { return bound_; }  ///< L; undivided: one that does not hold

  /// An upper bound of Lip(γ F) on all X in norm(): c. NaN where none is proved.
  double contraction() const { return contraction_; }

  /// γ F(X).
  /// \param x  n × D, finite
  /// \throws std::invalid_argument  as attend; another number of tokens than tokens()
  Matrix branch(const ConstMatrixRef& x) const;

  /// g(X).
  /// \throws std::invalid_argument  as branch
  Matrix forward(const ConstMatrixRef& x) const;

 private:
  ResidualAttention(MultiHead layer, Mask mask);

  MultiHead layer_;
  Mask mask_;
  double gain_ = std::numeric_limits<double>::quiet_NaN();
  Norm norm_ = Norm::inf;
  Index tokens_ = 0;
  double contraction_ = std::numeric_limits<double>::quiet_NaN();
  Bound bound_{};
};

/// The bound that `divisor` names for this layer, see ContractiveOptions; it may not hold.
///
/// \throws std::invalid_argument  no such entry; the layer is invalid, tokens < 1
Bound divisor_bound(const MultiHead& layer, Index tokens, const std::string& divisor,
                    const Mask& mask = Mask::none());

}  // namespace lipsa
