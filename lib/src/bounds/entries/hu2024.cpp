#include "lipsa/bounds/hu2024.hpp"

#include <array>

#include "bounds/context.hpp"

namespace lipsa {
namespace {

template <class Score>
UpRounded sum_of(const BoundContext& c, const Score& score) {
  UpRounded sum;
  for (const HeadNorms& h : c.heads()) {
    sum += hu2024_specformer(score(h), h.vo, c.token_norms().x_frobenius, c.setting().around,
                             c.tokens());
  }
  return sum;
}

Evaluation fused(const BoundContext& c) {
  return unless({biased(c)}, [&] { return sum_of(c, [](const HeadNorms& h) { return h.a; }); });
}

Evaluation printed(const BoundContext& c) {
  const bool larger = c.layer().score_scale() > 1.0;
  return unless({biased(c), larger ? "it has no factor for the scale, which is above 1" : ""},
                [&] { return sum_of(c, [](const HeadNorms& h) { return h.q * h.k; }); });
}

}  // namespace

std::span<const CatalogEntry> hu2024_entries() {
  static constexpr std::array entries{
      CatalogEntry{.name = "hu2024_specformer",
                   .statement = "sum_h |W_V W_O|_2 (n (n+1) (|X|_F + eps)^2 a + n), "
                                "a = s |W_Q W_K^T|_2, b_Q = 0",
                   .source = "Hu et al., ECCV 2024, Theorem 4.3, with |A|_2 for |W_Q|_2 |W_K|_2; "
                             "heads added",
                   .proof = "derivation 4",
                   .domain = Domain::around_point,
                   .attention = AttentionKind::dot,
                   .norm = Norm::two,
                   .kind = BoundKind::corrected,
                   .formula = fused},
      CatalogEntry{.name = "hu2024_specformer_printed",
                   .statement = "sum_h |W_V W_O|_2 (n (n+1) (|X|_F + eps)^2 |W_Q|_2 |W_K|_2 + n), "
                                "s <= 1, b_Q = 0",
                   .source = "Hu et al., ECCV 2024, Theorem 4.3, to our recollection; heads added",
                   .proof = "derivation 4",
                   .domain = Domain::around_point,
                   .attention = AttentionKind::dot,
                   .norm = Norm::two,
                   .kind = BoundKind::as_printed,
                   .formula = printed}};
  return entries;
}

}  // namespace lipsa
