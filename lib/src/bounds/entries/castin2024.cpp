#include "lipsa/bounds/castin2024.hpp"

#include <array>

#include "bounds/context.hpp"

namespace lipsa {
namespace {

Evaluation ball(const BoundContext& c) {
  return unless({biased(c)}, [&] {
    UpRounded sum;
    for (const HeadNorms& h : c.heads()) {
      sum += castin2024_ball(h.a, h.vo, c.radius(), c.tokens());
    }
    return sum;
  });
}

UpRounded mean_field_sum(const BoundContext& c) {
  UpRounded sum;
  for (const HeadNorms& h : c.heads()) {
    sum += castin2024_mean_field(h.a, h.vo, c.radius());
  }
  return sum;
}

Evaluation mean_field(const BoundContext& c) {
  return unless({biased(c), masked(c)}, [&] { return mean_field_sum(c); });
}

Evaluation mean_field_causal(const BoundContext& c) {
  return unless(
      {biased(c),
       c.setting().mask.kind() == Mask::Kind::causal ? "" : "it is a claim about causal masks"},
      [&] { return mean_field_sum(c); });
}

Evaluation code(const BoundContext& c) {
  return unless({biased(c)}, [&] {
    UpRounded sum;
    for (std::size_t h = 0; h < c.heads().size(); ++h) {
      sum += castin2024_code(c.heads()[h].vo, c.token_norms().diameter,
                             c.heads_at_point()[h].farthest_gradient, c.tokens());
    }
    return sum;
  });
}

}  // namespace

std::span<const CatalogEntry> castin2024_entries() {
  static constexpr std::array entries{
      CatalogEntry{.name = "castin2024_ball",
                   .statement = "sum_h sqrt(3) |W_V W_O|_2 sqrt(a^2 R^4 (4n+1) + n), "
                                "a = s |W_Q W_K^T|_2, b_Q = 0",
                   .source = "Castin, Ablin & Peyre, ICML 2024, Theorem 3.3, number recalled, "
                             "derived again; heads added",
                   .proof = "Ball.castin_ball, Heads.lipschitz_heads_sum",
                   .domain = Domain::token_ball,
                   .attention = AttentionKind::dot,
                   .norm = Norm::two,
                   .kind = BoundKind::corrected,
                   .formula = ball},
      CatalogEntry{.name = "castin2024_mean_field",
                   .statement = "sum_h |W_V W_O|_2 (1 + 3 a R^2) exp(2 a R^2), "
                                "a = s |W_Q W_K^T|_2, no mask, b_Q = 0",
                   .source = "Castin, Ablin & Peyre, ICML 2024, Theorem 3.5, number recalled, "
                             "derived again; heads added",
                   .proof = "Ball.castin_mean_field, Heads.lipschitz_heads_sum",
                   .domain = Domain::token_ball,
                   .attention = AttentionKind::dot,
                   .norm = Norm::two,
                   .kind = BoundKind::corrected,
                   .formula = mean_field},
      CatalogEntry{
          .name = "castin2024_mean_field_causal",
          .statement = "castin2024_mean_field with a causal mask",
          .source = "the masked theorem of Castin, Ablin & Peyre measures inputs by another "
                    "distance",
          .domain = Domain::token_ball,
          .attention = AttentionKind::dot,
          .norm = Norm::two,
          .kind = BoundKind::misapplied,
          .refutation = "n = 2, D = H = 1, W_Q = 0, W_V = W_O = 1 has |J|_2 = 1.14 everywhere, "
                        "above the 1 it gives",
          .formula = mean_field_causal},
      CatalogEntry{
          .name = "castin2024_code",
          .statement = "sum_h |W_V W_O|_2 sqrt(r^2 g^2 (n+1) + n), r = max |x_i - x_j|_2, "
                       "g = max |s W_K W_Q^T x_i|_2",
          .source = "a program of the authors of Castin, Ablin & Peyre, ICML 2024, as read",
          .domain = Domain::point,
          .attention = AttentionKind::dot,
          .norm = Norm::two,
          .kind = BoundKind::as_printed,
          .refutation = "where W_Q^T x_i = 0 for all tokens and W_K^T x_i is large, J is large "
                        "and it gives |W_V W_O|_2 sqrt(n)",
          .formula = code}};
  return entries;
}

}  // namespace lipsa
