#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <vector>

#include "bounds/context.hpp"
#include "core/ball.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

// Two kinds of attention, one argument. Let token i see itself and another, j. Put x_j at
// x_i + t u and whatever else i sees at x_i, with x_i such that head h gives all it sees the same
// weight. Then J has a block that is t² times a rank-one matrix, up to O(t):
//
//   dot        J_ii ∋ C_i A_hᵀ, A_h = W_Q W_Kᵀ:           (M_hᵀ u) (A_h u)ᵀ,  M_h = W_V W_O
//   l2_untied  J_ij ∋ P_ij (x_j − m_i) (∂S_ij/∂k_j W_Kᵀ)ᵀ: (M_hᵀ u) wᵀ with uᵀ w ∝ −|W_Kᵀ u|²
//
// The wanted x_i solves one linear equation: with κ = W_Kᵀ u it is
//
//   dot        a·x_i + β = 0,     a = W_Q κ,          β = b_Q·κ
//   l2_untied  2 a·x_i + … = t ν, a = (W_Q − W_K) κ,  ν = |κ|²,   x_i growing with t
//
// solvable when a ≠ 0. Under a solution, another head g whose (a, β) or (a, ν) is not a multiple
// of head h's can be kept away from equality, then its weights go to 0 and 1 exponentially in
// ±t, and it cannot cancel what head h does; nor can it without W_O, which keeps heads apart. For
// dot without b_Q all heads are at equality at x_i = 0, and Σ_h (M_hᵀ u) (A_h u)ᵀ decides.
//
// Every ≠ is decided with rounding covered, at one random u: generic, so that a condition that
// fails there but for rounding fails everywhere.

using Balls = std::vector<Ball>;

bool nonzero(const Ball& x) {
  return x.magnitude_lower() > 0.0;
}
bool nonzero(const Balls& x) {
  return std::any_of(x.begin(), x.end(), [](const Ball& b) { return nonzero(b); });
}

Ball dot(const Balls& x, const Balls& y) {
  Ball sum;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += x[i] * y[i];
  }
  return sum;
}

/// W x, and Wᵀ x.
Balls times(const ConstMatrixRef& w, const Balls& x) {
  Balls out(static_cast<std::size_t>(w.rows()));
  for (Index i = 0; i < w.rows(); ++i) {
    for (Index j = 0; j < w.cols(); ++j) {
      out[static_cast<std::size_t>(i)] += w(i, j) * x[static_cast<std::size_t>(j)];
    }
  }
  return out;
}
Balls transposed_times(const ConstMatrixRef& w, const Balls& x) {
  Balls out(static_cast<std::size_t>(w.cols()));
  for (Index i = 0; i < w.rows(); ++i) {
    for (Index j = 0; j < w.cols(); ++j) {
      out[static_cast<std::size_t>(j)] += w(i, j) * x[static_cast<std::size_t>(i)];
    }
  }
  return out;
}

Balls random_direction(Rng& rng, Index length) {
  Balls u(static_cast<std::size_t>(length));
  std::generate(u.begin(), u.end(), [&] { return rng.normal(); });
  return u;
}

struct Head {
  Balls a{};
  Ball last{};    ///< β or ν
  Balls value{};  ///< M_hᵀ u
};

/// Whether (a, last) of two heads are certainly no multiples of each other: some 2 × 2 minor.
bool apart(const Head& g, const Head& h) {
  const auto pivot = std::max_element(h.a.begin(), h.a.end(),
                                      [](const Ball& x, const Ball& y) {
                                        return x.magnitude_lower() < y.magnitude_lower();
                                      }) -
                     h.a.begin();
  const auto k = static_cast<std::size_t>(pivot);
  for (std::size_t i = 0; i < h.a.size(); ++i) {
    if (i != k && nonzero(g.a[i] * h.a[k] - g.a[k] * h.a[i])) {
      return true;
    }
  }
  return nonzero(g.last * h.a[k] - g.a[k] * h.last);
}

/// The power of two that brings the largest near one.
double power_of_two(std::initializer_list<double> magnitudes) {
  int exponent = 0;
  std::frexp(std::max(magnitudes), &exponent);
  return std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
}
double largest(const Matrix& w) {
  return w.size() == 0 ? 0.0 : w.cwiseAbs().maxCoeff();
}
double largest(const Vector& b) {
  return b.size() == 0 ? 0.0 : b.cwiseAbs().maxCoeff();
}

std::vector<Head> heads_along(const MultiHead& layer, const Balls& u) {
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  // No ≠ changes when W_Q, W_K, b_Q together, W_V, or W_O are scaled; then nothing overflows.
  const double score = power_of_two({largest(layer.W_Q), largest(layer.W_K), largest(layer.b_Q)});
  const Matrix all_q = score * layer.W_Q;
  const Matrix all_k = score * layer.W_K;
  const Matrix all_v = power_of_two({largest(layer.W_V)}) * layer.W_V;
  const Matrix all_o = power_of_two({largest(layer.W_O)}) * layer.W_O;
  std::vector<Head> heads;
  for (Index h = 0; h < layer.heads; ++h) {
    const auto w_q = all_q.middleCols(h * d, d);
    const Balls key = transposed_times(all_k.middleCols(h * d, d), u);
    Head head{.a = times(w_q, key)};
    if (layer.kind == AttentionKind::l2_untied) {
      const Balls own = times(all_k.middleCols(h * d, d), key);
      std::transform(head.a.begin(), head.a.end(), own.begin(), head.a.begin(), std::minus<>());
      head.last = dot(key, key);
    } else if (layer.b_Q.size() != 0) {
      const Vector b = score * layer.b_Q.segment(h * d, d);
      head.last = dot(Balls(b.begin(), b.end()), key);
    }
    const Balls values = transposed_times(all_v.middleCols(h * d_v, d_v), u);
    head.value =
        layer.W_O.size() == 0 ? values : transposed_times(all_o.middleRows(h * d_v, d_v), values);
    heads.push_back(std::move(head));
  }
  return heads;
}

/// Whether J is shown to grow with the square of the token radius.
bool grows(const MultiHead& layer) {
  Rng rng(0);
  const Balls u = random_direction(rng, layer.width());
  const std::vector<Head> heads = heads_along(layer, u);
  const bool concatenated = layer.W_O.size() == 0;
  for (const Head& h : heads) {
    if (nonzero(h.a) && nonzero(h.value) &&
        std::all_of(heads.begin(), heads.end(),
                    [&](const Head& g) { return concatenated || &g == &h || apart(g, h); })) {
      return true;
    }
  }
  if (layer.kind != AttentionKind::dot || largest(layer.b_Q) > 0.0 || concatenated) {
    return false;
  }
  const Balls y = random_direction(rng, layer.width());
  Balls sum(static_cast<std::size_t>(layer.output_width()));
  for (const Head& h : heads) {
    const Ball weight = dot(h.a, y);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += h.value[i] * weight;
    }
  }
  return nonzero(sum);
}

/// Why J is the same everywhere; empty when that is not seen at once.
std::string affine(const BoundContext& c) {
  const MultiHead& layer = c.layer();
  if (c.tokens() == 1) {
    return "the map is affine: one token attends to itself alone";
  }
  if (c.mask().most_seen <= 1) {
    return "the map is affine: no token sees two";
  }
  if (largest(layer.W_V) == 0.0 || (layer.W_O.size() != 0 && largest(layer.W_O) == 0.0)) {
    return "the map is constant: W_V W_O = 0";
  }
  const bool deaf =
      layer.kind == AttentionKind::dot && largest(layer.W_Q) == 0.0 && largest(layer.b_Q) == 0.0;
  return deaf || largest(layer.W_K) == 0.0 ? "the map is affine: all scores of a token are equal"
                                           : "";
}

Evaluation none_exists(const BoundContext& c) {
  if (std::isfinite(c.setting().radius)) {
    return fails(fmt::format("it speaks of all X, the radius is {}", c.setting().radius));
  }
  if (c.setting().x != nullptr) {
    return fails("it speaks of all X, not of one");
  }
  std::string finite = affine(c);
  if (!finite.empty()) {
    return fails(std::move(finite));
  }
  if (!c.mask().mixes) {
    return fails("no token sees itself and another");
  }
  const bool is_dot = c.layer().kind == AttentionKind::dot;
  if (!grows(c.layer())) {
    return fails(fmt::format("no head has certainly {} and W_V W_O not 0, uncancelled by others",
                             is_dot ? "W_Q W_K^T" : "(W_Q - W_K) W_K^T"));
  }
  return {.holds = true,
          .value = std::numeric_limits<double>::infinity(),
          .reason = fmt::format("no finite constant exists: J grows with the square of the token "
                                "radius, as {} and W_V W_O are not 0",
                                is_dot ? "W_Q W_K^T" : "(W_Q - W_K) W_K^T")};
}

constexpr CatalogEntry entry(std::string_view name, AttentionKind attention, Norm norm) {
  const bool is_dot = attention == AttentionKind::dot;
  return {.name = name,
          .statement = is_dot ? "no finite constant when W_Q W_K^T and W_V W_O are not 0 for a "
                                "head that no others cancel, and some token sees itself and another"
                              : "no finite constant when (W_Q - W_K) W_K^T and W_V W_O are not 0 "
                                "for a head that no others cancel, and some token sees itself and "
                                "another",
          .source = is_dot ? "Kim, Papamakarios & Mnih, ICML 2021, Theorem 3.1; conditions ours"
                           : "lipsa: a block of J that grows with the square of the token radius",
          .proof = is_dot ? "DotProduct.theorem_3_1_dot_product_not_lipschitz, "
                            "DotProduct.theorem_3_1_multihead, "
                            "derivation 9"
                          : "Untied.l2_untied_not_lipschitz, derivation 9",
          .domain = Domain::everywhere,
          .attention = attention,
          .norm = norm,
          .kind = is_dot ? BoundKind::corrected : BoundKind::ours,
          .formula = none_exists};
}

}  // namespace

std::span<const CatalogEntry> not_lipschitz_entries() {
  static constexpr std::array entries{
      entry("dot_not_lipschitz_1", AttentionKind::dot, Norm::one),
      entry("dot_not_lipschitz_2", AttentionKind::dot, Norm::two),
      entry("dot_not_lipschitz_inf", AttentionKind::dot, Norm::inf),
      entry("l2_untied_not_lipschitz_1", AttentionKind::l2_untied, Norm::one),
      entry("l2_untied_not_lipschitz_2", AttentionKind::l2_untied, Norm::two),
      entry("l2_untied_not_lipschitz_inf", AttentionKind::l2_untied, Norm::inf)};
  return entries;
}

}  // namespace lipsa
