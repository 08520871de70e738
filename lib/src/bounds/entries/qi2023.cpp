#include "lipsa/bounds/qi2023.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "bounds/context.hpp"
#include "bounds/l2_factors.hpp"
#include "core/rounding.hpp"

namespace lipsa {
namespace {

UpRounded scale(const BoundContext& c) {
  return upper_bound_scale(c.layer());
}

UpRounded epsilon_root_inverse(const BoundContext& c) {
  return div_up(1.0, next_down(std::sqrt(c.layer().epsilon)));
}

/// Values are normalised before W_O: heads add up with |W_O^h|, not with |W_V W_O^h|.
template <class Constant>
UpRounded sum_of(const BoundContext& c, const Constant& constant) {
  UpRounded sum;
  for (const HeadNorms& h : c.heads()) {
    sum += constant(h) * h.o;
  }
  return sum;
}

Evaluation qi(const BoundContext& c) {
  return unless({masked(c)}, [&] {
    return sum_of(c, [&](const HeadNorms& h) {
      return qi2023_cosine(h.q, h.k, h.v, scale(c), epsilon_root_inverse(c), c.tokens());
    });
  });
}

Evaluation nair(const BoundContext& c) {
  return unless({masked(c)}, [&] {
    return sum_of(c, [&](const HeadNorms& h) {
      return nair2025_cosine(h.q, h.k, h.v, scale(c), epsilon_root_inverse(c), c.tokens());
    });
  });
}

Evaluation two(const BoundContext& c) {
  UpRounded columns = c.column_count();
  if (c.setting().mask.kind() == Mask::Kind::none) {  // scores within ±s: P_ij ≤ e^(2s)/n
    columns = std::min(columns, exp(2.0 * scale(c)));
  }
  return gives(sum_of(c, [&](const HeadNorms& h) {
    return cosine_2(h.q, h.k, h.v, scale(c), epsilon_root_inverse(c), sqrt(columns), c.tokens());
  }));
}

Evaluation max_token(const BoundContext& c) {
  return gives(sum_of(c, [&](const HeadNorms& h) {
    return cosine_max_token(h.q, h.k, h.v, scale(c), epsilon_root_inverse(c));
  }));
}

}  // namespace

std::span<const CatalogEntry> qi2023_entries() {
  static constexpr std::array entries{
      CatalogEntry{.name = "qi2023_cosine",
                   .statement = "sum_h |W_O|_2 (2n(n-1) s |W_K|_2 + 2(n-1) s |W_Q|_2 + 2n |W_V|_2)/"
                                "sqrt(eps), no mask",
                   .source = "Qi et al., LipsFormer, ICLR 2023, Theorem 1; heads added",
                   .proof = "published, derivation 7",
                   .domain = Domain::everywhere,
                   .attention = AttentionKind::cosine,
                   .norm = Norm::two,
                   .kind = BoundKind::as_printed,
                   .formula = qi},
      CatalogEntry{.name = "nair2025_cosine",
                   .statement =
                       "sum_h |W_O|_2 (n^2 s |W_K|_2 + n s |W_Q|_2 + 2n |W_V|_2)/sqrt(eps), "
                       "no mask",
                   .source = "Nair, TMLR 2025, Theorem 2; heads added",
                   .proof = "published, derivation 7",
                   .domain = Domain::everywhere,
                   .attention = AttentionKind::cosine,
                   .norm = Norm::two,
                   .kind = BoundKind::as_printed,
                   .formula = nair},
      CatalogEntry{.name = "cosine_2",
                   .statement = "sum_h |W_O|_2 (b |W_V|_2 + s n (|W_Q|_2 + |W_K|_2)/2)/sqrt(eps), "
                                "b^2 = min(n, exp(2s)) without a mask",
                   .source = "lipsa: the softmax is 1/2-Lipschitz, row by row",
                   .proof = "derivation 7",
                   .domain = Domain::everywhere,
                   .attention = AttentionKind::cosine,
                   .norm = Norm::two,
                   .kind = BoundKind::ours,
                   .formula = two},
      CatalogEntry{.name = "cosine_max_token",
                   .statement = "sum_h |W_O|_2 (|W_V|_2 + s (|W_Q|_2 + |W_K|_2))/sqrt(eps)",
                   .source = "lipsa: the softmax is 1-Lipschitz from inf to 1, row by row",
                   .proof = "derivation 7",
                   .domain = Domain::everywhere,
                   .attention = AttentionKind::cosine,
                   .norm = Norm::max_token,
                   .kind = BoundKind::ours,
                   .formula = max_token}};
  return entries;
}

}  // namespace lipsa
