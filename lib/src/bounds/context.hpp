/// \file
/// What the entries of the catalogue ask of a setting, each computed once. Private to lib/.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bounds/entries.hpp"
#include "linalg/enclosed_matrix.hpp"
#include "lipsa/bounds/catalog.hpp"

namespace lipsa {

/// The number itself, rounded upwards where it is no double.
UpRounded up_rounded(const ScaledReal& x);

/// Spectral norms of one head's weights, from above; s is the scale of the scores.
struct HeadNorms {
  UpRounded q, k, v;  ///< |W_Q|, |W_K|, |W_V|
  UpRounded o;        ///< |W_O^h|, 1 where there is no W_O
  UpRounded vo;       ///< |W_V W_O^h|
  UpRounded a;        ///< |A_h|, A_h = s W_Q W_Kᵀ; not of l2
  UpRounded
      bias;  ///< |β|, β = s W_K b_Q: the scores are (A_hᵀ x_i + β)·x_j, up to a row's constant
  UpRounded vo_1, vo_inf;   ///< |W_V W_O^h|_1, |W_V W_O^h|_inf
  UpRounded vo_column;      ///< the longest column of W_V W_O^h
  UpRounded qv, qvo;        ///< |W_Qᵀ W_V|, |W_Qᵀ W_V W_O^h|; of l2 only
  UpRounded qvo_column;     ///< the longest column of W_Qᵀ W_V W_O^h; of l2 only
  UpRounded q_row, q_rows;  ///< the longest row of W_Q, and all together
};

/// Of all heads of l2 together: |[W_Q^1 … W_Q^H]| and |[(W_Q^hᵀ W_V^h W_O^h)ᵀ]_h|.
struct FusedNorms {
  UpRounded in, out;
};

/// Of one head of dot-product attention at the tokens X, from above.
struct HeadAtPoint {
  EnclosedMatrix P{};           ///< n × n
  EnclosedMatrix value_map{};   ///< W_V W_O^h, D × D_out
  UpRounded p;                  ///< |P|_2
  UpRounded columns;            ///< max_j Σ_i P_ij
  UpRounded g1;                 ///< max_i p_(1) (1 − p_(1) + p_(2)) of row i
  UpRounded softmax_inf;        ///< max_i |diag(P_i) − P_i P_iᵀ|_inf
  UpRounded softmax_trace;      ///< max_i tr(diag(P_i) − P_i P_iᵀ)
  UpRounded softmax;            ///< max_i |diag(P_i) − P_i P_iᵀ|_2
  UpRounded xa, xat;            ///< |X A + 1 βᵀ|_2, |X Aᵀ|_2
  UpRounded xat_centred;        ///< |(X − 1 x̄ᵀ) Aᵀ|_2
  UpRounded xw, xw_centred;     ///< |X W_V W_O^h|_2, with X − 1 x̄ᵀ
  UpRounded spread;             ///< max_i (1 + λ_max(C_i) |Aᵀx_i + β|²)
  UpRounded diagonal;           ///< max_i |C_i Aᵀ|_2
  UpRounded farthest_gradient;  ///< max_i |Aᵀx_i|_2
};

/// Of the tokens X, from above.
struct TokenNorms {
  UpRounded x, x_frobenius;  ///< |X|_2, |X|_F
  UpRounded diameter{};      ///< max_{i,j} |x_i − x_j|_2
};

class BoundContext {
 public:
  /// \throws std::invalid_argument  as CatalogEntry::evaluate
  explicit BoundContext(const BoundSetting& setting);

  const BoundSetting& setting() const { return setting_; }
  const MultiHead& layer() const { return setting_.layer; }
  const MaskFacts& mask() const { return mask_; }
  Index tokens() const { return setting_.tokens; }
  UpRounded n() const;
  UpRounded radius() const { return setting_.radius; }

  /// At or above every column sum of P, for any P this mask allows whose rows sum to at most one.
  UpRounded column_count() const;

  const std::vector<HeadNorms>& heads() const;
  const FusedNorms& fused() const;
  const TokenNorms& token_norms() const;                   ///< with x only
  const std::vector<HeadAtPoint>& heads_at_point() const;  ///< of dot; with x only
  UpRounded output() const;                                ///< |W_O|_2, 1 where there is none

  /// What a constant for each head gives for all: Σ_h L_h |W_V W_O^h| and |W_O| (Σ_h L_h²
  /// |W_V|²)^½.
  template <class F>
  UpRounded sum_of_heads(const F& constant) const {
    UpRounded sum;
    for (const HeadNorms& head : heads()) {
      sum += constant(head) * head.vo;
    }
    return sum;
  }
  template <class F>
  UpRounded root_of_squares(const F& constant) const {
    UpRounded sum;
    for (const HeadNorms& head : heads()) {
      const UpRounded own = constant(head) * head.v;
      sum += own * own;
    }
    return output() * sqrt(sum);
  }

 private:
  const BoundSetting& setting_;
  MaskFacts mask_;
  mutable std::optional<std::vector<HeadNorms>> heads_{};
  mutable std::optional<FusedNorms> fused_{};
  mutable std::optional<UpRounded> output_{};
  mutable std::optional<TokenNorms> token_norms_{};
  mutable std::optional<std::vector<HeadAtPoint>> heads_at_point_{};
};

}  // namespace lipsa
