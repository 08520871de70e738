/// \file
/// Self-attention in balls of any precision, written from its definition: no code in common with
/// attention/ but the structs MultiHead and Mask. Private to lib/.
#pragma once

#include <vector>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "search/arb.hpp"

namespace lipsa {

/// s; 1/√d, which is not a double, when the layer names none.
Real ball_scale(const MultiHead& layer, Index bits);

/// Numbers around F(X) − F(Y), n × D_out. Doubles are exact, and a scale of 0 is 1/√d exactly. Cost
/// n² H (d + d_v) + n D H (2d + d_v) products of balls each.
///
/// \throws std::invalid_argument  a kind of attention that is not written down here
Reals ball_difference(const MultiHead& layer, const Mask& mask, const ConstMatrixRef& x,
                      const ConstMatrixRef& y, Index bits);

/// Numbers around J(X) V, n × D_out, by forward differentiation, at twice that cost.
Reals ball_derivative(const MultiHead& layer, const Mask& mask, const ConstMatrixRef& x,
                      const ConstMatrixRef& v, Index bits);

/// Numbers around M(p) v with p = softmax(s), M(p) = diag(p) − p pᵀ, 1 × n.
Reals ball_softmax_derivative(const ConstMatrixRef& s, const ConstMatrixRef& v, Index bits);

/// J(X) in balls, block by block in closed form. Memory n H (n + 2 D_out + 4 D) balls.
///
/// \throws std::invalid_argument  as above
class BallJacobian {
 public:
  BallJacobian(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask, Index bits);

  Index tokens() const { return n_; }
  Index width() const { return D_; }
  Index output_width() const { return D_out_; }

  /// J_ij = ∂f_i/∂x_j, D_out × D.
  void block(Index i, Index j, Reals& out) const;

 private:
  struct Head {
    Reals p;    ///< P, n × n
    Reals u;    ///< W_Oᵀ v_j, n × D_out
    Reals o;    ///< W_Oᵀ o_i, n × D_out
    Reals q_k;  ///< W_K ∂S_ij/∂k_j as rows of D: what depends on i,
    Reals k_k;  ///< less what depends on j
    Reals q_q;  ///< W_Q ∂S_ij/∂q_i likewise: what depends on j, k_q,
    Reals k_q;  ///< less what depends on i, q_q
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
