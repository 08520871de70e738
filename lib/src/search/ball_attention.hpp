/// \file
/// Self-attention in balls of any precision, written from its definition: no code in common with
/// attention/ but the structs MultiHead and Mask. Private to lib/.
#pragma once

#include <optional>
#include <vector>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "search/arb.hpp"

namespace lipsa {

/// s; 1/√d, which is not a double, when the layer names none.
Real ball_scale(const MultiHead& layer, Index bits);

/// Numbers around F(X) − F(Y), n × D_out. Doubles are exact, and a scale of 0 is 1/√d exactly. Cost
/// n² H (d + d_v) + n D H (2d + d_v) products of balls each.
Reals ball_difference(const MultiHead& layer, const Mask& mask, const ConstMatrixRef& x,
                      const ConstMatrixRef& y, Index bits);

/// Numbers around J(X) V, n × D_out, by forward differentiation, at twice that cost.
Reals ball_derivative(const MultiHead& layer, const Mask& mask, const ConstMatrixRef& x,
                      const ConstMatrixRef& v, Index bits);

/// Numbers around M(p) v with p = softmax(s), M(p) = diag(p) − p pᵀ, 1 × n.
Reals ball_softmax_derivative(const ConstMatrixRef& s, const ConstMatrixRef& v, Index bits);

/// J(X) in balls, block by block in closed form. Memory n H (n + 2 D_out + 4 D) balls; n² H more
/// for sigmoid attention, n H (n + D) more for cosine.
///
///     J_ij = Σ_h P_ij (W_V N'(v_j) W_O)ᵀ + P'_ij W_Oᵀ (v_j − o_i) (W_K ∂S_ij/∂k_j)ᵀ
///            + 1{i=j} Σ_k P'_ik W_Oᵀ (v_k − o_i) (W_Q ∂S_ik/∂q_i)ᵀ
///
/// with P' = P but for a sigmoid, whose P' = P ∘ (1 − P) and o_i = 0; with N' = I but for cosine
/// attention, whose v_j and o_i are those of normalised rows, N'(z) = (I − ẑẑᵀ)/r, and ∂S_ij/∂k_j =
/// s N'(k_j) q̂_i.
class BallJacobian {
 public:
  BallJacobian(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask, Index bits);

  Index tokens() const { return n_; }
  Index width() const { return D_; }
  Index output_width() const { return D_out_; }

  /// J_ij = ∂f_i/∂x_j, D_out × D.
  void block(Index i, Index j, Reals& out) const;

 private:
  /// What cosine attention has beside. With q̂, k̂, v̂ in the place of q, k, v in Head, the gradients
  /// there lack the factor q̂_i·k̂_j on k_k and q_q, and 1/r of the key or query on both parts.
  struct Normalised {
    Reals inverse_q, inverse_k, inverse_v;  ///< 1/r, n × 1
    Reals cosines;                          ///< q̂_i · k̂_j, n × n
    Reals v_v;                              ///< W_V v̂_j as rows, n × D
  };
  struct Head {
    Reals p;      ///< P, n × n
    Reals slope;  ///< P' of sigmoid attention; 0 × n for the others, whose is P
    Reals u;      ///< W_Oᵀ v_j, n × D_out
    Reals o;      ///< W_Oᵀ o_i, n × D_out; zero for sigmoid attention
    Reals q_k;    ///< W_K ∂S_ij/∂k_j as rows of D: what depends on i,
    Reals k_k;    ///< less what depends on j
    Reals q_q;    ///< W_Q ∂S_ij/∂q_i likewise: what depends on j, k_q,
    Reals k_q;    ///< less what depends on i, q_q
    std::optional<Normalised> normalised{};  ///< of cosine attention

    const Reals& slopes() const { return slope.rows() > 0 ? slope : p; }
  };
  void add_head(const MultiHead& layer, const Reals& x, const Mask& mask, Index h);
  void add_diagonal(const Head& head, Index i, Reals& out) const;

  Index n_;
  Index D_;
  Index D_out_;
  Index bits_;
  Reals maps_;  ///< W_Oᵀ m_Vᵀ of every head, (D_out D) × H
  std::vector<Head> heads_{};
};

}  // namespace lipsa
