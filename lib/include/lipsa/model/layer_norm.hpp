/// \file
/// LayerNorm and RMSNorm.
#pragma once

#include "lipsa/model/piece.hpp"

namespace lipsa {

/// y = γ ∘ x̂ + β for each row x of D features, with μ and σ² the mean and variance of its features,
///
///     layer_norm  x̂ = (x − μ)/r,  r² = σ² + ε
///     rms_norm    x̂ = x/r,        r² = |x|_2²/D + ε
struct LayerNorm {
  enum class Kind { layer_norm, rms_norm };
  Kind kind = Kind::layer_norm;
  Vector gamma{};         ///< D, or empty for ones
  Vector beta{};          ///< D, or empty for zero
  double epsilon = 1e-5;  ///< ε > 0
};

template <MaybeConst<LayerNorm> L, class F>
void for_each_parameter(L& norm, const F& f) {
  visit_parameter(f, "gamma", norm.gamma);
  visit_parameter(f, "beta", norm.beta);
}

/// The derivative of x̂ in x is symmetric,
///
///     N = r⁻¹ (I − 1 1ᵀ/D − x̂ x̂ᵀ/D),      without 1 1ᵀ/D for rms_norm,
///
///     forward    y = γ ∘ x̂ + β
///     backward   gx = N (γ ∘ gy),  gγ += Σ x̂ ∘ gy,  gβ += Σ gy
///
/// A row of numbers so large that their squares overflow is normalised all the same.
///
/// \test tests/model/layer_norm_test.cpp
class LayerNormAt {
 public:
  /// \throws std::invalid_argument  γ or β is neither empty nor of D numbers, x has no columns, ε ≤
  /// 0
  LayerNormAt(const LayerNorm& norm, Matrix x);

  Index rows() const { return unit_.rows(); }
  Index input_width() const { return unit_.cols(); }
  Index output_width() const { return unit_.cols(); }
  const Matrix& output() const { return output_; }
  Matrix take_output() { return std::move(output_); }

  Matrix apply(Matrix dx) const;
  Matrix apply_adjoint(Matrix dy) const;
  Matrix backward(Matrix dy, LayerNorm& gradient) const;

 private:
  void through_unit(Index i, Matrix& m) const;  ///< row i becomes N times it
  void scale(Index i, Matrix& m) const;         ///< row i becomes γ times it

  LayerNorm norm_;
  Matrix unit_;              ///< x̂
  Vector inverse_length_{};  ///< 1/r, a row each
  Matrix output_{};
};

}  // namespace lipsa
