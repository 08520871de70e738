#include "lipsa/bounds/newhouse2025.hpp"

#include <array>
#include <cmath>

#include "bounds/context.hpp"
#include "bounds/l2_factors.hpp"
#include "core/rounding.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {
namespace {

/// 1/√d, from above.
UpRounded inverse_root(Index d) {
  return div_up(1.0, next_down(std::sqrt(static_cast<double>(d))));
}

/// Of head h on the ball: the largest RMS norms of q, k and v, and what they grow by.
struct Functional {
  UpRounded q, k, v;
  UpRounded from_tokens;  ///< |δq|_RMS + |δk|_RMS + |δv|_RMS for |δx|_2 = 1
  UpRounded to_tokens;    ///< |δy|_2 for |δo|_RMS = 1
};

Functional functional(const BoundContext& c, Index h) {
  const MultiHead& layer = c.layer();
  const HeadNorms& norms = c.heads()[static_cast<std::size_t>(h)];
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  const UpRounded by_d = inverse_root(d);
  const UpRounded by_d_v = inverse_root(d_v);
  const auto length = [&](const Vector& bias, Index width) -> UpRounded {
    return bias.size() == 0
               ? 0.0
               : upper_bound_norm_frobenius(bias.segment(h * width, width).transpose());
  };
  return {.q = by_d * (norms.q * c.radius() + length(layer.b_Q, d)),
          .k = by_d * (norms.k * c.radius() + length(layer.b_K, d)),
          .v = by_d_v * (norms.v * c.radius() + length(layer.b_V, d_v)),
          .from_tokens = by_d * (norms.q + norms.k) + by_d_v * norms.v,
          .to_tokens = sqrt(UpRounded(count_up(d_v))) * norms.o};
}

UpRounded scale_times_d(const BoundContext& c) {
  return upper_bound_scale(c.layer()) * count_up(c.layer().head_width());
}

template <class Constant>
UpRounded sum_of(const BoundContext& c, const Constant& constant) {
  UpRounded sum;
  for (Index h = 0; h < c.layer().heads; ++h) {
    const Functional f = functional(c, h);
    sum += f.to_tokens * constant(f) * f.from_tokens;
  }
  return sum;
}

Evaluation corrected(const BoundContext& c) {
  return gives(sum_of(c, [&](const Functional& f) {
    return newhouse2025_functional(scale_times_d(c), f.q, f.k, f.v);
  }));
}

Evaluation printed(const BoundContext& c) {
  return gives(sum_of(c, [&](const Functional& f) {
    return newhouse2025_functional_printed(scale_times_d(c), f.q, f.k, f.v);
  }));
}

Evaluation unit(const BoundContext& c) {
  const auto d = static_cast<double>(c.layer().head_width());
  if (c.layer().score_scale() != 1.0 / d) {
    return fails("it speaks of the scale 1/d");
  }
  for (Index h = 0; h < c.layer().heads; ++h) {
    const Functional f = functional(c, h);
    if (!(std::max({f.q, f.k, f.v}) <= UpRounded(1.0))) {
      return fails("a query, key or value may be longer than 1 in the RMS norm");
    }
  }
  // The scale the layer computes with may exceed 1/d by a rounding.
  return gives(
      sum_of(c, [&](const Functional&) { return std::max(UpRounded(1.0), scale_times_d(c)); }));
}

}  // namespace

std::span<const CatalogEntry> newhouse2025_entries() {
  static constexpr std::array entries{
      CatalogEntry{.name = "large2024_unit",
                   .statement = "sum_h sqrt(d_v) |W_O|_2 ((|W_Q|_2 + |W_K|_2)/sqrt(d) + "
                                "|W_V|_2/sqrt(d_v)), s = 1/d, |q|, |k|, |v| <= 1 in the RMS norm",
                   .source = "Large et al. 2024, Proposition 7; weights and heads around it",
                   .proof = "derivation 6",
                   .domain = Domain::token_ball,
                   .attention = AttentionKind::dot,
                   .norm = Norm::max_token,
                   .kind = BoundKind::as_printed,
                   .formula = unit},
      CatalogEntry{.name = "newhouse2025",
                   .statement =
                       "sum_h sqrt(d_v) |W_O|_2 max(1, s d v max(q, k)) ((|W_Q|_2 + |W_K|_2)/"
                       "sqrt(d) + |W_V|_2/sqrt(d_v)), q, k, v the largest RMS norms",
                   .source = "Newhouse et al. 2025, Theorem C.1, any scale; weights and heads "
                             "around it",
                   .proof = "derivation 6",
                   .domain = Domain::token_ball,
                   .attention = AttentionKind::dot,
                   .norm = Norm::max_token,
                   .kind = BoundKind::corrected,
                   .formula = corrected},
      CatalogEntry{.name = "newhouse2025_eq23",
                   .statement = "newhouse2025 with sqrt(s d) max(1, v max(q, k)) for "
                                "max(1, s d v max(q, k))",
                   .source = "Newhouse et al. 2025, equation 23; weights and heads around it",
                   .domain = Domain::token_ball,
                   .attention = AttentionKind::dot,
                   .norm = Norm::max_token,
                   .kind = BoundKind::as_printed,
                   .refutation =
                       "for W_Q = W_K = 0 and W_V = W_O = 1 the map averages tokens, |J| = 1, and "
                       "it gives sqrt(s d)",
                   .formula = printed}};
  return entries;
}

}  // namespace lipsa
