/// \file
/// Multi-head self-attention: its weights, its map, and what its kinds differ in.
#pragma once

#include <string_view>

#include "lipsa/attention/mask.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

/// How the scores S of a head come from its queries and keys, and what its values are. With
/// s the scale, Q = X W_Q + b_Q, K = X W_K + b_K, one token a row, and ẑ = z/√(‖z‖² + ε):
///
/// | kind       | S_ij              | weights P  | keys       | values V                      |
/// |------------|-------------------|------------|------------|-------------------------------|
/// | dot        | s q_i · k_j       | softmax(S) | own W_K    | X W_V + b_V                   |
/// | l2         | −s ‖q_i − q_j‖²   | softmax(S) | W_K = W_Q  | X A_h W_V, A_h = s W_Q W_Qᵀ   |
/// | l2_untied  | −s ‖q_i − k_j‖²   | softmax(S) | own W_K    | X W_V + b_V                   |
/// | cosine     | s q̂_i · k̂_j       | softmax(S) | own W_K    | the rows of X W_V + b_V, as v̂ |
/// | sigmoid    | s q_i · k_j       | σ(S + β)   | own W_K    | X W_V + b_V                   |
///
/// The softmax is of each row; σ(t) = 1/(1 + e^−t) is of each entry. A masked entry of P is zero.
enum class AttentionKind { dot, l2, l2_untied, cosine, sigmoid };

/// "dot", "l2", "l2-untied", "cosine", "sigmoid"
std::string_view to_string(AttentionKind kind);

/// \throws std::invalid_argument  `text` is none of those
AttentionKind parse_attention_kind(std::string_view text);

/// The weights of one layer. Matrices act from the right on X (n × D), the transpose of
/// PyTorch's Linear.weight; head h owns the h-th block of columns of W_Q, W_K, W_V and of rows
/// of W_O. An empty bias is zero. An empty W_O is the identity: heads are concatenated.
struct MultiHead {
  AttentionKind kind = AttentionKind::dot;
  Index heads = 1;          ///< H ≥ 1
  Matrix W_Q{};             ///< D × (H d)
  Matrix W_K{};             ///< D × (H d); must be empty for l2, whose keys are its queries
  Matrix W_V{};             ///< D × (H d_v)
  Matrix W_O{};             ///< (H d_v) × D_out, or empty
  Vector b_Q{};             ///< H d, or empty; no effect on l2, whose scores are differences
  Vector b_K{};             ///< H d, or empty; must be empty for l2
  Vector b_V{};             ///< H d_v, or empty; for l2 added after A_h W_V
  Vector b_O{};             ///< D_out, or empty
  double scale = 0.0;       ///< s > 0, the factor on the scores; 0 stands for 1/√d
  double epsilon = 0.0;     ///< ε > 0, cosine only
  double score_bias = 0.0;  ///< β, sigmoid only

  Index width() const { return W_Q.rows(); }                                        ///< D
  Index head_width() const { return W_Q.cols() / heads; }                           ///< d
  Index value_width() const { return W_V.cols() / heads; }                          ///< d_v
  Index output_width() const { return W_O.size() == 0 ? W_V.cols() : W_O.cols(); }  ///< D_out
  double score_scale() const;                                                       ///< s
};

/// \throws std::invalid_argument  naming the field: shapes disagree, an entry is NaN or infinite,
///         heads do not divide the columns, a tied layer has keys of its own, ε is not that of the
///         kind, there is a β that the kind does not have
void require_valid(const MultiHead& layer);

/// The value map of head h, D × d_v: W_V of that head, or A_h W_V for l2. For cosine it comes
/// before the rows are normalised.
Matrix value_map(const MultiHead& layer, Index head);

/// F(X) = [O¹ … O^H] W_O + b_O with O^h = P^h V^h, n × D_out.
///
/// \param x  n × D, n ≥ 1, finite
/// \throws std::invalid_argument  shapes disagree, x or a weight is not finite, a score overflows
/// (OverflowError) \test   tests/attention/multi_head_test.cpp
Matrix attend(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask = Mask::none());

}  // namespace lipsa
