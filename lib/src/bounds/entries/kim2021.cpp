#include "lipsa/bounds/kim2021.hpp"

#include <array>
#include <cmath>

#include "bounds/context.hpp"

namespace lipsa {
namespace {

Evaluation inf(const BoundContext& c) {
  std::string hidden = hidden_token(c);
  return hidden.empty() ? gives(kim2021_inf(c.layer(), c.tokens())) : fails(std::move(hidden));
}

Evaluation two(const BoundContext& c) {
  std::string hidden = hidden_token(c);
  return hidden.empty() ? gives(kim2021_2(c.layer(), c.tokens())) : fails(std::move(hidden));
}

/// Why the printed formulas do not speak of this layer; empty when they do.
std::string outside_print(const BoundContext& c) {
  const double printed = 1.0 / std::sqrt(static_cast<double>(c.layer().head_width()));
  return c.layer().score_scale() == printed ? hidden_token(c)
                                            : "it is printed for the scale 1/sqrt(d)";
}

Evaluation inf_printed(const BoundContext& c) {
  std::string outside = outside_print(c);
  return outside.empty() ? gives(kim2021_inf(c.layer(), c.tokens(), PhiInverse::as_printed))
                         : fails(std::move(outside));
}

Evaluation two_printed(const BoundContext& c) {
  std::string outside = outside_print(c);
  return outside.empty() ? gives(kim2021_2_printed(c.layer(), c.tokens()))
                         : fails(std::move(outside));
}

/// The layer as if its keys were its queries and A_h were part of it.
MultiHead taken_for_l2(const MultiHead& layer) {
  return {.kind = AttentionKind::l2,
          .heads = layer.heads,
          .W_Q = layer.W_Q,
          .W_V = layer.W_V,
          .W_O = layer.W_O,
          .scale = layer.scale};
}

Evaluation inf_untied(const BoundContext& c) {
  return unless(
      {c.layer().W_K == c.layer().W_Q ? "it is a claim about keys that are not the queries" : "",
       hidden_token(c)},
      [&] { return kim2021_inf(taken_for_l2(c.layer()), c.tokens()); });
}

Evaluation inf_without_a(const BoundContext& c) {
  const bool same =
      c.layer().W_K == c.layer().W_Q && c.layer().b_Q.isZero(0.0) && c.layer().b_K.isZero(0.0);
  return unless({same ? "" : "it is a claim about keys that are the queries", hidden_token(c)},
                [&] { return kim2021_inf(taken_for_l2(c.layer()), c.tokens()); });
}

}  // namespace

std::span<const CatalogEntry> kim2021_entries() {
  static constexpr std::array entries{
      CatalogEntry{.name = "kim2021_inf",
                   .statement = "s (4 sqrt(d) W((n-1)/e) + 1) |W_O^T|_inf "
                                "max_h(|W_Q^h|_inf |W_Q^hT|_inf) max_h |W_V^hT|_inf",
                   .source =
                       "Kim, Papamakarios & Mnih, ICML 2021, Theorem 3.2, as we read it, with "
                       "phi^-1(n-1) = W((n-1)/e) and any scale s",
                   .proof = "MultiHead.theorem_3_2_inf; any mask and scale: Masks.any_mask_inf, "
                            "Infinity.sharp_le_published, MultiHead.multihead_inf",
                   .domain = Domain::everywhere,
                   .attention = AttentionKind::l2,
                   .norm = Norm::inf,
                   .kind = BoundKind::corrected,
                   .formula = inf},
      CatalogEntry{
          .name = "kim2021_inf_printed",
          .statement = "(4 W(n/e) + 1/sqrt(d)) |W_O^T|_inf "
                       "max_h(|W_Q^h|_inf |W_Q^hT|_inf) max_h |W_V^hT|_inf",
          .source = "Kim, Papamakarios & Mnih, ICML 2021, Theorem 3.2, as we read it",
          .proof = "MultiHead.theorem_3_2_inf, Phi.phi_inv_monotone; any mask: as kim2021_inf",
          .domain = Domain::everywhere,
          .attention = AttentionKind::l2,
          .norm = Norm::inf,
          .kind = BoundKind::as_printed,
          .formula = inf_printed},
      CatalogEntry{.name = "kim2021_2",
                   .statement = "sqrt(n) s (4 W((n-1)/e) + 1) "
                                "sqrt(sum_h |W_Q^h|_2^4 |W_V^h|_2^2) |W_O|_2",
                   .source = "Kim, Papamakarios & Mnih, ICML 2021, Theorem 3.2, exponent corrected",
                   .proof = "MultiHead.theorem_3_2_two; any mask and scale: "
                            "Frobenius.core_lipschitz_2_any_mask, MultiHead.QV_le, "
                            "MultiHead.multihead_concat_2",
                   .domain = Domain::everywhere,
                   .attention = AttentionKind::l2,
                   .norm = Norm::two,
                   .kind = BoundKind::corrected,
                   .formula = two},
      CatalogEntry{.name = "kim2021_2_printed",
                   .statement = "sqrt(n)/sqrt(d) (4 W(n/e) + 1) "
                                "sqrt(sum_h |W_Q^h|_2^2 |W_V^h|_2^2) |W_O|_2",
                   .source = "Kim, Papamakarios & Mnih, ICML 2021, Theorem 3.2, exponents recalled "
                             "and as in three public programs",
                   .proof = "Erratum.printed_2_counterexample",
                   .domain = Domain::everywhere,
                   .attention = AttentionKind::l2,
                   .norm = Norm::two,
                   .kind = BoundKind::as_printed,
                   .refutation =
                       "D = H = 1, n = 2, W_Q = 5, W_V = W_O = 1 has |J(0)|_2 = 25, above the "
                       "20.17 it gives; exponents as recalled and as three public programs "
                       "have them",
                   .formula = two_printed},
      CatalogEntry{
          .name = "kim2021_inf_without_A",
          .statement = "kim2021_inf for L2 scores with tied keys and values X W_V, without A_h",
          .source = "programs that leave A_h = s W_Q W_Q^T out of the layer",
          .domain = Domain::everywhere,
          .attention = AttentionKind::l2_untied,
          .norm = Norm::inf,
          .kind = BoundKind::misapplied,
          .refutation = "small W_Q: all X are averaged, |J|_inf = |W_V W_O|, and it gives a "
                        "multiple of |W_Q|^2",
          .formula = inf_without_a},
      CatalogEntry{.name = "kim2021_inf_untied",
                   .statement = "kim2021_inf for L2 scores with keys of their own and values X W_V",
                   .source = "programs that take separate queries and keys for L2 attention",
                   .domain = Domain::everywhere,
                   .attention = AttentionKind::l2_untied,
                   .norm = Norm::inf,
                   .kind = BoundKind::misapplied,
                   .refutation = "untied L2 attention has no Lipschitz constant: see "
                                 "l2_untied_not_lipschitz_inf",
                   .formula = inf_untied}};
  return entries;
}

}  // namespace lipsa
