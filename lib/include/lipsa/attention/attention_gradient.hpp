/// \file
/// Multi-head self-attention of a batch of sequences, with the derivatives by tokens and weights
/// that training needs.
#pragma once

#include <memory>
#include <string>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/parameters.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

/// W_Q, W_K, W_V, W_O and the biases that are not empty; β of sigmoid attention as `score_bias`.
template <MaybeConst<MultiHead> Layer, class F>
void for_each_parameter(Layer& layer, const F& f) {
  visit_parameter(f, "W_Q", layer.W_Q);
  visit_parameter(f, "W_K", layer.W_K);
  visit_parameter(f, "W_V", layer.W_V);
  visit_parameter(f, "W_O", layer.W_O);
  visit_parameter(f, "b_Q", layer.b_Q);
  visit_parameter(f, "b_K", layer.b_K);
  visit_parameter(f, "b_V", layer.b_V);
  visit_parameter(f, "b_O", layer.b_O);
  if (layer.kind == AttentionKind::sigmoid) {
    visit_parameter(f, "score_bias", layer.score_bias);
  }
}

/// γ F(X_b) for each sequence X_b of a batch, F = attend(layer, ·, mask), and its derivatives
/// there.
///
/// X stacks B sequences of n tokens, (B n) × D. With [Q | K | V] = X [W_Q | W_K | m_V] + biases,
/// heads and sequences apart,
///
///     forward    P = weights(scores(Q, K));  O = P V;  Y = γ (O W_O + b_O)
///     backward   gO = γ gY W_Oᵀ;  gV = Pᵀ gO;  gS = weights'(P, gO Vᵀ);  gQ, gK from gS;
///                gX = [gQ | gK | gV] [W_Q | W_K | m_V]ᵀ
///     weights    gW_O += γ Oᵀ gY;  gb_O += γ Σ_i gy_i;  gβ += Σ gS;  g[W_Q | W_K | m_V] += Xᵀ [gQ
///     |
///                gK | gV]; and, from m_V = s W_Q (W_Qᵀ W_V) of L2 attention, with M = W_Qᵀ g m_V,
///                gW_Q += s (g m_V (W_Qᵀ W_V)ᵀ + W_V Mᵀ),  gW_V += s W_Q M
///
/// Gradients that vanish identically, of b_K of dot-product and of b_Q of L2 attention, are exactly
/// zero, so that no optimiser enlarges their rounding. L2 attention sees each sequence with its
/// mean taken out, and cancels nowhere: see L2Scores.
///
/// Unlike Jacobian it is no function of one X only, has no closed form, and never throws for what
/// x holds: NaN, infinities and scores that overflow give an output of NaN in the sequence they are
/// in, so that a training that diverges says so in its loss.
///
/// It owns what derivatives need. Members are const but for `take_output`, and may be called from
/// several threads; results do not depend on the number of threads.
///
/// | call                  | multiply-adds, leading terms, over B n rows, n̄ tokens seen a row  |
/// |-----------------------|------------------------------------------------------------------|
/// | constructor           | D H (2d + d_v) + H d_v D_out + n̄ H (d + d_v)                      |
/// | apply, apply_adjoint  | the same, with twice the last term                               |
/// | backward              | twice the constructor's                                          |
///
/// With a causal mask n̄ is (n + 1)/2, rounded up by tiles of rows.
///
/// \source Derived here.
/// \test   tests/attention/attention_gradient_test.cpp
class AttentionAt {
 public:
  /// \param layer   valid, see MultiHead
  /// \param x       (B n) × D, B ≥ 1
  /// \param tokens  n ≥ 1
  /// \param gain    γ
  /// \throws std::invalid_argument  shapes disagree, a weight is not finite
  AttentionAt(const MultiHead& layer, Matrix x, Index tokens, const Mask& mask = Mask::none(),
              double gain = 1.0);

  Index rows() const;          ///< B n
  Index input_width() const;   ///< D
  Index output_width() const;  ///< D_out

  const Matrix& output() const { return output_; }       ///< (B n) × D_out
  Matrix take_output() { return std::move(output_); }    ///< moved out, for what comes next
  Matrix apply(const ConstMatrixRef& dx) const;          ///< J dx, (B n) × D_out
  Matrix apply_adjoint(const ConstMatrixRef& dy) const;  ///< Jᵀ dy, (B n) × D

  /// Jᵀ dy; adds the gradient of ⟨dy, output⟩ in the weights to `gradient`.
  ///
  /// \param gradient       of the shapes of the layer, see zeros_like
  /// \param gain_gradient  ⟨dy, F⟩ is added to it unless it is null
  /// \throws std::invalid_argument  shapes disagree
  Matrix backward(const ConstMatrixRef& dy, MultiHead& gradient,
                  double* gain_gradient = nullptr) const;

 private:
  struct State;

  std::shared_ptr<const State> state_;
  Matrix output_{};
};

}  // namespace lipsa
