#include "lipsa/bounds/l2_two_norm.hpp"

#include <algorithm>
#include <array>

#include "bounds/context.hpp"
#include "bounds/l2_factors.hpp"

namespace lipsa {
namespace {

// F(X) = Σ_h g(X W_Q √s) (√s W_Qᵀ W_V W_O), so that each head's constant is s |W_Q| |W_Qᵀ W_V W_O|
// times that of the core map.

L2Core core(const BoundContext& c) {
  const MaskFacts& mask = c.mask();
  const Mask::Kind kind = c.setting().mask.kind();
  return l2_core(c.tokens(), std::max<Index>(mask.most_seen, 1),
                 std::max<Index>(mask.most_seeing, 1), mask.most_others,
                 kind == Mask::Kind::none     ? ColumnRule::unmasked
                 : kind == Mask::Kind::causal ? ColumnRule::causal
                                              : ColumnRule::counted);
}

UpRounded scale(const BoundContext& c) {
  return upper_bound_scale(c.layer());
}

UpRounded heads_sum(const BoundContext& c) {
  UpRounded sum;
  for (const HeadNorms& h : c.heads()) {
    sum += h.q * h.qvo;
  }
  return scale(c) * sum;
}

UpRounded heads_concat(const BoundContext& c) {
  UpRounded sum;
  for (const HeadNorms& h : c.heads()) {
    sum += h.q * h.q * h.qv * h.qv;
  }
  return scale(c) * c.output() * sqrt(sum);
}

template <class Formula>
Evaluation visible(const BoundContext& c, const Formula& formula) {
  return unless({hidden_token(c)}, formula);
}

Evaluation two_sum(const BoundContext& c) {
  return visible(c, [&] { return l2_core_2(core(c)) * heads_sum(c); });
}
Evaluation two_concat(const BoundContext& c) {
  return visible(c, [&] { return l2_core_2(core(c)) * heads_concat(c); });
}
Evaluation two_fused(const BoundContext& c) {
  return visible(c, [&] { return l2_core_2(core(c)) * scale(c) * c.fused().in * c.fused().out; });
}
Evaluation two_interpolated(const BoundContext& c) {
  return visible(c, [&] {
    const UpRounded weights =
        std::min({heads_sum(c), heads_concat(c), scale(c) * c.fused().in * c.fused().out});
    return l2_core_interpolated(core(c), 2.0) * weights;
  });
}
Evaluation max_token_sum(const BoundContext& c) {
  return visible(c, [&] { return l2_core_rows(core(c)) * heads_sum(c); });
}
Evaluation max_token_concat(const BoundContext& c) {
  return visible(c, [&] { return l2_core_rows(core(c)) * heads_concat(c); });
}

// From |x|_inf ≤ 1 a head's √s W_Qᵀ x is at most √s min(√D |W_Q|_2, Σ_b |row b of W_Q|_2) long; a
// feature of the output is a product with a column of √s W_Qᵀ W_V W_O.
Evaluation inf_rows(const BoundContext& c) {
  return visible(c, [&] {
    const UpRounded root = sqrt(UpRounded(count_up(c.layer().width())));
    UpRounded sum;
    for (const HeadNorms& h : c.heads()) {
      sum += std::min(root * h.q, h.q_rows) * h.qvo_column;
    }
    return l2_core_rows(core(c)) * scale(c) * sum;
  });
}

// One feature of one token moves √s W_Qᵀ x by √s |a row of W_Q|_2, and |y|_1 ≤ √D_out |y|_2.
Evaluation one_columns(const BoundContext& c) {
  return visible(c, [&] {
    const UpRounded root = sqrt(UpRounded(count_up(c.layer().output_width())));
    UpRounded sum;
    for (const HeadNorms& h : c.heads()) {
      sum += h.q_row * root * h.qvo;
    }
    return l2_core_columns(core(c)) * scale(c) * sum;
  });
}

constexpr CatalogEntry entry(std::string_view name, std::string_view statement,
                             std::string_view proof, Norm norm,
                             Evaluation (*formula)(const BoundContext&)) {
  return {.name = name,
          .statement = statement,
          .source = "lipsa: column sums of P in the inner product of the Gaussian kernel",
          .proof = proof,
          .domain = Domain::everywhere,
          .attention = AttentionKind::l2,
          .norm = norm,
          .kind = BoundKind::ours,
          .formula = formula};
}

}  // namespace

std::span<const CatalogEntry> l2_two_norm_entries() {
  static constexpr std::array entries{
      entry("l2_2_sum",
            "L_2(n) s sum_h |W_Q|_2 |W_Q^T W_V W_O|_2, L_2(n) = min(n^(1/4) + 2c + 2 sqrt(c M), "
            "sqrt(n) (4c + 1)) without a mask, c = W((n-1)/e), M = min(c (sqrt(n) + 1), (n-1) "
            "W(1/e), "
            "n^((1+x)/2)/(x exp 1)), 0 < x < 1",
            "Frobenius.core_lipschitz_2, Frobenius.core_lipschitz_2_any_mask, "
            "MultiHead.multihead_sum, derivation 2",
            Norm::two, two_sum),
      entry("l2_2_concat",
            "L_2(n) s |W_O|_2 sqrt(sum_h |W_Q|_2^2 |W_Q^T W_V|_2^2), L_2(n) as in l2_2_sum",
            "Frobenius.core_lipschitz_2, Frobenius.core_lipschitz_2_any_mask, "
            "MultiHead.multihead_concat_2, derivation 2",
            Norm::two, two_concat),
      entry(
          "l2_2_fused",
          "L_2(n) s |[W_Q^1 ... W_Q^H]|_2 |[(W_Q^hT W_V^h W_O^h)^T ...]|_2, L_2(n) as in l2_2_sum",
          "Frobenius.core_lipschitz_2, Frobenius.core_lipschitz_2_any_mask, "
          "MultiHead.multihead_fused, derivation 2",
          Norm::two, two_fused),
      entry("l2_2_interpolated",
            "sqrt((1 + 4c) (sqrt(n) + 2c + 2M + 2 sqrt(c M sqrt(n)))) s w without a mask, w the "
            "least "
            "of the weights' factors in l2_2_sum, l2_2_concat, l2_2_fused",
            "Frobenius.core_lipschitz_2_schur, MultiHead.multihead_sum, "
            "MultiHead.multihead_concat_2, MultiHead.multihead_fused, derivation 2",
            Norm::two, two_interpolated),
      entry("l2_max_token_sum", "(1 + 4c) s sum_h |W_Q|_2 |W_Q^T W_V W_O|_2, c = W((n-1)/e)",
            "Frobenius.core_lipschitz_token_max, MultiHead.multihead_sum", Norm::max_token,
            max_token_sum),
      entry("l2_max_token_concat",
            "(1 + 4c) s |W_O|_2 sqrt(sum_h |W_Q|_2^2 |W_Q^T W_V|_2^2), c = W((n-1)/e)",
            "Frobenius.core_lipschitz_token_max, MultiHead.multihead_concat_token_max",
            Norm::max_token, max_token_concat),
      entry("l2_inf_rows",
            "(1 + 4c) s sum_h min(sqrt(D) |W_Q|_2, sum of row lengths of W_Q) times the longest "
            "column of W_Q^T W_V W_O, c = W((n-1)/e)",
            "Frobenius.core_lipschitz_token_max, MultiHead.multihead_sum, derivation 2", Norm::inf,
            inf_rows),
      entry("l2_1_columns",
            "(sqrt(n) + 2c + 2M + 2 sqrt(c M sqrt(n))) s sum_h sqrt(D_out) |W_Q^T W_V W_O|_2 times "
            "the "
            "longest row of W_Q, without a mask, c = W((n-1)/e), M as in l2_2_sum",
            "Frobenius.core_lipschitz_token_sum, MultiHead.multihead_sum, derivation 2", Norm::one,
            one_columns)};
  return entries;
}

}  // namespace lipsa
