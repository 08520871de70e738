#include "lipsa/bounds/dot_ball.hpp"

#include <array>

#include "bounds/context.hpp"
#include "bounds/l2_factors.hpp"

namespace lipsa {
namespace {

/// g = a R + |β|, from above: no score gradient is longer.
UpRounded gradient(const BoundContext& c, const HeadNorms& h) {
  return h.a * c.radius() + h.bias;
}

/// 1 + 1/2 + … + 1/n, from above.
UpRounded harmonic(Index n) {
  // beyond a million terms 1 + ln n is near enough, and above
  if (n > 1000000) {
    return 1.0 + std::log(static_cast<double>(n)) * (1.0 + 1e-12);
  }
  UpRounded sum;
  for (Index i = n; i >= 1; --i) {
    const double inverse = 1.0 / static_cast<double>(i);
    sum += std::fma(inverse, static_cast<double>(i), -1.0) < 0.0
               ? std::nextafter(inverse, std::numeric_limits<double>::infinity())
               : inverse;
  }
  return sum;
}

UpRounded columns(const BoundContext& c, const HeadNorms& h) {
  UpRounded known;
  switch (c.setting().mask.kind()) {
    case Mask::Kind::none:
      known = 1.0;
      break;
    case Mask::Kind::causal:
      known = harmonic(c.tokens());
      break;
    case Mask::Kind::arbitrary:
      break;
  }
  return dot_column_sum(c.radius(), gradient(c, h), c.column_count(), known);
}

UpRounded two(const BoundContext& c, const HeadNorms& h) {
  return dot_ball_2(h.a, gradient(c, h), c.radius(), columns(c, h));
}

UpRounded triangle(const BoundContext& c, const HeadNorms& h) {
  const UpRounded sums = columns(c, h);
  UpRounded p = sqrt(sums);
  if (c.setting().mask.kind() == Mask::Kind::causal) {
    // Hardy: P_ij ≤ e^(2Rg)/i, and the averages over the first i have norm at most 2.
    p = std::min(p, 2.0 * exp(2.0 * c.radius() * gradient(c, h)));
  }
  return dot_ball_triangle_2(h.a, gradient(c, h), c.radius(), sums, p);
}

UpRounded max_token(const BoundContext& c, const HeadNorms& h) {
  return dot_ball_max_token(h.a, gradient(c, h), c.radius());
}

Evaluation two_sum(const BoundContext& c) {
  return gives(c.sum_of_heads([&](const HeadNorms& h) { return two(c, h); }));
}
Evaluation two_concat(const BoundContext& c) {
  return gives(c.root_of_squares([&](const HeadNorms& h) { return two(c, h); }));
}
Evaluation triangle_sum(const BoundContext& c) {
  return gives(c.sum_of_heads([&](const HeadNorms& h) { return triangle(c, h); }));
}
Evaluation max_token_sum(const BoundContext& c) {
  return gives(c.sum_of_heads([&](const HeadNorms& h) { return max_token(c, h); }));
}
Evaluation max_token_concat(const BoundContext& c) {
  return gives(c.root_of_squares([&](const HeadNorms& h) { return max_token(c, h); }));
}

// A row of J, at output token i and feature f, is Σ_h [P_ij (w + (w·(x_j − m_i)) g_i) + 1{i=j} A
// C_i w] with w the column f of W_V W_O: |P_i-mean of |w·(x_j − m_i)|| ≤ R |w|_2 and |g_i|_1 ≤ √D
// |g_i|_2.
Evaluation inf(const BoundContext& c) {
  const UpRounded root = sqrt(UpRounded(count_up(c.layer().width())));
  const UpRounded r = c.radius();
  UpRounded sum;
  for (const HeadNorms& h : c.heads()) {
    sum += h.vo_1 + root * h.vo_column * r * (gradient(c, h) + h.a * r);
  }
  return gives(sum);
}

// A column of J, at input token j and feature b, sums over output tokens i: at most σ times
// |e_bᵀ W_V W_O|_1 + √D_out |W_V W_O|_2 2R g, and √D_out |W_V W_O|_2 a R² on the diagonal.
Evaluation one(const BoundContext& c) {
  const UpRounded root = sqrt(UpRounded(count_up(c.layer().output_width())));
  const UpRounded r = c.radius();
  UpRounded sum;
  for (const HeadNorms& h : c.heads()) {
    sum += columns(c, h) * (h.vo_inf + root * h.vo * 2.0 * r * gradient(c, h)) +
           root * h.vo * h.a * r * r;
  }
  return gives(sum);
}

Evaluation point(const BoundContext& c) {
  UpRounded sum;
  for (std::size_t h = 0; h < c.heads().size(); ++h) {
    const HeadAtPoint& at = c.heads_at_point()[h];
    sum += c.heads()[h].vo * (sqrt(at.spread * at.columns) + at.diagonal);
  }
  return gives(sum);
}

constexpr CatalogEntry entry(std::string_view name, std::string_view statement,
                             std::string_view proof, Norm norm,
                             Evaluation (*formula)(const BoundContext&),
                             Domain domain = Domain::token_ball) {
  return {.name = name,
          .statement = statement,
          .source = "lipsa: Cauchy-Schwarz over the attended tokens, whose cross term vanishes",
          .proof = proof,
          .domain = domain,
          .attention = AttentionKind::dot,
          .norm = norm,
          .kind = BoundKind::ours,
          .formula = formula};
}

}  // namespace

std::span<const CatalogEntry> dot_ball_entries() {
  static constexpr std::array entries{
      entry(
          "dot_ball_2_sum",
          "sum_h |W_V W_O|_2 (sqrt(c (1 + R^2 g^2)) + a R^2), a = s |W_Q W_K^T|_2, "
          "g = a R + s |W_K b_Q|_2, c = min(n, exp(2 R g)) without a mask, min(n, (1 + 1/2 + ... + "
          "1/n) exp(2 R g)) with a causal one, else the most tokens that see one",
          "Ball.dot_ball_unmasked, Ball.dot_ball_causal, Ball.dot_ball_seeing, "
          "Heads.lipschitz_heads_sum",
          Norm::two, two_sum),
      entry("dot_ball_2_concat",
            "|W_O|_2 sqrt(sum_h |W_V|_2^2 L_h^2), L_h = sqrt(c (1 + R^2 g^2)) + a R^2 as in "
            "dot_ball_2_sum",
            "Ball.dot_ball_unmasked, Ball.dot_ball_causal, Ball.dot_ball_seeing, "
            "Heads.lipschitz_heads_concat_2",
            Norm::two, two_concat),
      entry("dot_ball_triangle_2",
            "sum_h |W_V W_O|_2 (p + sqrt(c) R g + a R^2), a, g, c as in dot_ball_2_sum, "
            "p = min(sqrt(c), 2 exp(2 R g)) for causal masks, else sqrt(c)",
            "derivation 3", Norm::two, triangle_sum),
      entry("dot_ball_max_token_sum",
            "sum_h |W_V W_O|_2 (sqrt(1 + R^2 g^2) + a R^2), a, g as in dot_ball_2_sum",
            "Ball.dot_ball_head_token_max, Heads.lipschitz_heads_sum", Norm::max_token,
            max_token_sum),
      entry("dot_ball_max_token_concat",
            "|W_O|_2 sqrt(sum_h |W_V|_2^2 L_h^2), L_h = sqrt(1 + R^2 g^2) + a R^2",
            "Ball.dot_ball_head_token_max, Heads.lipschitz_heads_concat_token_max", Norm::max_token,
            max_token_concat),
      entry("dot_ball_inf",
            "sum_h |W_V W_O|_1 + sqrt(D) w R (g + a R), w the longest column of W_V W_O, "
            "a, g as in dot_ball_2_sum",
            "derivation 3", Norm::inf, inf),
      entry("dot_ball_1",
            "sum_h c (|W_V W_O|_inf + 2 sqrt(D_out) |W_V W_O|_2 R g) + sqrt(D_out) |W_V W_O|_2 a "
            "R^2, "
            "a, g, c as in dot_ball_2_sum",
            "derivation 3", Norm::one, one),
      entry("dot_point_2",
            "sum_h |W_V W_O|_2 (sqrt(max_i (1 + |C_i|_2 |A^T x_i + b|_2^2) max_j sum_i P_ij) + "
            "max_i |C_i A^T|_2), C_i the covariance of what token i attends to",
            "derivation 3", Norm::two, point, Domain::point)};
  return entries;
}

}  // namespace lipsa
