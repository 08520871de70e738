#include "lipsa/bounds/yudin2025.hpp"

#include <array>

#include "bounds/context.hpp"

namespace lipsa {
namespace {

Evaluation point(const BoundContext& c) {
  return unless({biased(c)}, [&] {
    UpRounded sum;
    for (std::size_t h = 0; h < c.heads().size(); ++h) {
      const HeadAtPoint& at = c.heads_at_point()[h];
      sum += yudin2025_point(c.heads()[h].a, c.heads()[h].vo, at.p, c.token_norms().x, at.g1);
    }
    return sum;
  });
}

Evaluation ball(const BoundContext& c) {
  return unless({biased(c)}, [&] {
    UpRounded sum;
    for (const HeadNorms& h : c.heads()) {
      sum += yudin2025_ball(h.a, h.vo, c.token_norms().x, c.setting().around, c.tokens());
    }
    return sum;
  });
}

}  // namespace

std::span<const CatalogEntry> yudin2025_entries() {
  static constexpr std::array entries{
      CatalogEntry{.name = "yudin2025_point",
                   .statement = "sum_h |W_V W_O|_2 (|P|_2 + 2 |X|_2^2 a max_i g_1(P_i)), "
                                "g_1(p) = p_(1) (1 - p_(1) + p_(2)), a = s |W_Q W_K^T|_2, b_Q = 0",
                   .source = "Yudin, Gaponov, Kudriashov & Rakhuba 2025, Theorem 3; heads added",
                   .proof = "published, derivation 4",
                   .domain = Domain::point,
                   .attention = AttentionKind::dot,
                   .norm = Norm::two,
                   .kind = BoundKind::as_printed,
                   .formula = point},
      CatalogEntry{.name = "yudin2025_ball",
                   .statement = "sum_h |W_V W_O|_2 (sqrt(n) + a (|X|_2 + eps)^2), "
                                "a = s |W_Q W_K^T|_2, b_Q = 0",
                   .source = "lipsa: Yudin et al. 2025, Theorem 3, its terms bounded over the ball",
                   .proof = "derivation 4",
                   .domain = Domain::around_point,
                   .attention = AttentionKind::dot,
                   .norm = Norm::two,
                   .kind = BoundKind::ours,
                   .formula = ball}};
  return entries;
}

}  // namespace lipsa
