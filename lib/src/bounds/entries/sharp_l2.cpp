#include "lipsa/bounds/sharp_l2.hpp"

#include <algorithm>
#include <array>

#include "bounds/context.hpp"

namespace lipsa {
namespace {

Evaluation inf(const BoundContext& c) {
  std::string hidden = hidden_token(c);
  if (!hidden.empty()) {
    return fails(std::move(hidden));
  }
  const Index seen = c.mask().most_seen;
  return gives(sharp_l2_inf(c.layer(), std::max<Index>(seen, 1)));
}

}  // namespace

std::span<const CatalogEntry> sharp_l2_entries() {
  static constexpr std::array entries{CatalogEntry{
      .name = "sharp_l2_inf",
      .statement = "s (1 + k W((n-1) exp(-1-2/k))) |W_O^T|_inf max_h(|W_Q^h|_inf |W_Q^hT|_inf) "
                   "max_h |W_V^hT|_inf, k = 2 (1 + sqrt(d)), n the most tokens one sees",
      .source = "lipsa: the exact constant of the core map for odd n",
      .proof = "Infinity.core_sharp_upper, MultiHead.multihead_inf",
      .domain = Domain::everywhere,
      .attention = AttentionKind::l2,
      .norm = Norm::inf,
      .kind = BoundKind::ours,
      .formula = inf}};
  return entries;
}

}  // namespace lipsa
