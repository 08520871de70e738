#include "lipsa/bounds/kim2021.hpp"

#include <array>
#include <cmath>

#include "bounds/entries.hpp"

namespace lipsa {
namespace {

Evaluation inf(const BoundSetting& setting) {
  std::string hidden = hidden_token(setting);
  return hidden.empty() ? gives(kim2021_inf(setting.layer, setting.tokens))
                        : fails(std::move(hidden));
}

Evaluation two(const BoundSetting& setting) {
  std::string hidden = hidden_token(setting);
  return hidden.empty() ? gives(kim2021_2(setting.layer, setting.tokens))
                        : fails(std::move(hidden));
}

/// Why the printed formulas do not speak of this layer; empty when they do.
std::string outside_print(const BoundSetting& setting) {
  const double printed = 1.0 / std::sqrt(static_cast<double>(setting.layer.head_width()));
  return setting.layer.score_scale() == printed ? hidden_token(setting)
                                                : "it is printed for the scale 1/sqrt(d)";
}

Evaluation inf_printed(const BoundSetting& setting) {
  std::string outside = outside_print(setting);
  return outside.empty() ? gives(kim2021_inf(setting.layer, setting.tokens, PhiInverse::as_printed))
                         : fails(std::move(outside));
}

Evaluation two_printed(const BoundSetting& setting) {
  std::string outside = outside_print(setting);
  if (!outside.empty()) {
    return fails(std::move(outside));
  }
  return {.value = kim2021_2_printed(setting.layer, setting.tokens),
          .reason =
              "refuted: D = H = 1, n = 2, W_Q = 5, W_V = W_O = 1 has |J(0)|_2 = 25, above the "
              "20.17 it gives; exponents as recalled and as three public programs have them"};
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
                   .domain = "all X",
                   .attention = AttentionKind::l2,
                   .norm = Norm::inf,
                   .kind = BoundKind::corrected,
                   .formula = inf},
      CatalogEntry{.name = "kim2021_inf_printed",
                   .statement = "(4 W(n/e) + 1/sqrt(d)) |W_O^T|_inf "
                                "max_h(|W_Q^h|_inf |W_Q^hT|_inf) max_h |W_V^hT|_inf",
                   .source = "Kim, Papamakarios & Mnih, ICML 2021, Theorem 3.2, as we read it",
                   .domain = "all X",
                   .attention = AttentionKind::l2,
                   .norm = Norm::inf,
                   .kind = BoundKind::as_printed,
                   .formula = inf_printed},
      CatalogEntry{.name = "kim2021_2",
                   .statement = "sqrt(n) s (4 W((n-1)/e) + 1) "
                                "sqrt(sum_h |W_Q^h|_2^4 |W_V^h|_2^2) |W_O|_2",
                   .source = "Kim, Papamakarios & Mnih, ICML 2021, Theorem 3.2, exponent corrected",
                   .domain = "all X",
                   .attention = AttentionKind::l2,
                   .norm = Norm::two,
                   .kind = BoundKind::corrected,
                   .formula = two},
      CatalogEntry{.name = "kim2021_2_printed",
                   .statement = "sqrt(n)/sqrt(d) (4 W(n/e) + 1) "
                                "sqrt(sum_h |W_Q^h|_2^2 |W_V^h|_2^2) |W_O|_2",
                   .source = "Kim, Papamakarios & Mnih, ICML 2021, Theorem 3.2, exponents recalled "
                             "and as in three public programs",
                   .domain = "all X",
                   .attention = AttentionKind::l2,
                   .norm = Norm::two,
                   .kind = BoundKind::as_printed,
                   .formula = two_printed}};
  return entries;
}

}  // namespace lipsa
