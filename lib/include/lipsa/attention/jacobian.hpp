/// \file
/// The exact Jacobian of multi-head self-attention at one X.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

/// Some consecutive tokens of the output; all of them when `count` is negative.
struct TokenRange {
  Index first = 0;
  Index count = -1;
};

/// The tokens or weights are so large that a score or a product of them is no longer a double.
class OverflowError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The largest absolute row (or column) sum, and the first row (or column) that attains it.
struct AttainedNorm {
  double value = 0.0;
  Index index = 0;
};

/// J(X) = ∂vec(Y)/∂vec(X) of Y = attend(layer, X), as an operator and in closed form.
///
/// vec stacks tokens. J is n × n blocks of D_out × D; with v_k the values and o_i = Σ_k P_ik v_k
/// the output of a head (in its d_v coordinates), m_V its value map, block (i, j) is a sum over
/// heads,
///
///     J_ij = Σ_h W_Oᵀ [ P_ij m_Vᵀ + P_ij (v_j − o_i) (W_K ∂S_ij/∂k_j)ᵀ
///                       + 1{i=j} Σ_k P_ik (v_k − o_i) (∂S_ik/∂q_i)ᵀ W_Qᵀ ]
///
/// from the general rule ∂P_ik = P_ik (∂S_ik − Σ_l P_il ∂S_il). Products never form J:
///
///     apply:          dQ, dK, dV = dX W;  dP = softmax_derivative(P, dS);  dO = dP V + P dV
///     apply_adjoint:  gV = Pᵀ gO;  gS = softmax_derivative(P, gO Vᵀ);  gQ, gK from gS;  gX = g Wᵀ
///
/// Two kinds depart from this. Sigmoid: ∂P_ik = P'_ik ∂S_ik with P' = P ∘ (1 − P), so the terms
/// with a derivative of S have P' for P and no o_i, and v_j is all of the value. Cosine: v, q and k
/// are normalised rows, so N'(v_j), N'(k_j) and N'(q_i), see RowNormalisation, follow m_Vᵀ, precede
/// ∂S_ij/∂k_j and ∂S_ik/∂q_i; in products dQ, dK, dV go through N' after W, and gradients before
/// Wᵀ.
///
/// The constructor linearises once; copies share what it computed, and every member is const and
/// may be called from several threads. Results do not depend on the number of threads.
///
/// Restricted to some tokens of the output by a TokenRange of r tokens, it is those rows of J, at
/// r/n of the cost: with r = 1 an ascent step of |J|_inf is O(n).
///
/// | call                    | multiply-adds, leading terms         | memory beyond the constructor's |
/// |-------------------------|--------------------------------------|---------------------------------|
/// | constructor             | n D H (2d + d_v) + r n H d           | H (r n + n (2d + d_v))          |
/// | apply, apply_adjoint    | the same twice, plus r H d_v D_out   | n H (2d + d_v)                  |
/// | dense                   | 2 H r n D D_out                      | H n (D + D_out), and J          |
/// | norm_inf, norm_1        | the same                             | H n (2D + D_out) a thread       |
/// | second_derivative       | twice apply_adjoint                  | n H (2d + d_v)                  |
///
/// Sigmoid keeps P' beside P, H r n more. Cosine takes half as much again for dense and norms, and
/// their memory twice, and three times apply_adjoint for second_derivative.
///
/// Models LinearOperator. With L2 scores and coordinates so large that products of matrices would
/// cancel, products sum differences instead: see L2Scores.
///
/// \source Derived here; for the dot-product compare Castin, Ablin & Peyré, ICML 2024, lemma 3.1.
/// \test   tests/attention/jacobian_test.cpp
class Jacobian {
 public:
  /// \param layer    valid, see MultiHead
  /// \param x        n × D, n ≥ 1, finite
  /// \param outputs  within [0, n)
  /// \throws std::invalid_argument  shapes disagree, something is not finite
  /// \throws OverflowError          a score overflows
  Jacobian(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask = Mask::none(),
           TokenRange outputs = {});

  Index rows() const;  ///< r D_out
  Index cols() const;  ///< n D

  void apply(const ConstVectorRef& dx, VectorRef dy) const;          ///< dy = J dx
  void apply_adjoint(const ConstVectorRef& dy, VectorRef dx) const;  ///< dx = Jᵀ dy

  /// J itself, (r D_out) × (n D).
  Matrix dense() const;

  /// The same into a buffer of the caller, which costs no page faults when it is warm.
  /// \throws std::invalid_argument  `out` is not rows() × cols()
  void dense_into(MatrixRef out) const;

  /// The D_out rows of J that belong to one token of the output, D_out × (n D).
  /// \param token  counted from the first token of the output range
  /// \throws std::invalid_argument  no such token
  Matrix row_block(Index token) const;

  AttainedNorm norm_inf() const;  ///< max_r Σ_c |J_rc|, exact up to rounding; J is streamed
  AttainedNorm norm_1() const;    ///< max_c Σ_r |J_rc|, exact up to rounding; J is streamed
  double norm_frobenius() const;  ///< (Σ J_rc²)^½, exact up to rounding; J is streamed

  /// The gradient of ⟨u, J(X) v⟩ in X with u and v held fixed, n × D. At a pair (u, v) that attains
  /// a norm of J it is the gradient of that norm, by the envelope theorem.
  ///
  /// \param u  of length rows()
  /// \param v  of length cols()
  Matrix second_derivative(const ConstVectorRef& u, const ConstVectorRef& v) const;

  /// P of a head, r × n; rows sum to one but for sigmoid, or are zero where the mask leaves
  /// nothing.
  const Matrix& attention_weights(Index head) const;

  /// Y of the output tokens, r × D_out.
  Matrix output() const;

  /// The output tokens whose attention the mask leaves empty, counted from the first of all
  /// tokens: zero rows of P and of J.
  const std::vector<Index>& blind_tokens() const;

 private:
  struct State;
  class RowStream;

  std::shared_ptr<const State> state_;
};

}  // namespace lipsa
