#include "lipsa/bounds/ramapuram2025.hpp"

#include <algorithm>
#include <array>

#include "bounds/context.hpp"
#include "bounds/l2_factors.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {
namespace {

/// Sigmoid weights do not sum to one: biases of keys and values count too.
std::string any_bias(const BoundContext& c) {
  const MultiHead& layer = c.layer();
  return layer.b_Q.isZero(0.0) && layer.b_K.isZero(0.0) && layer.b_V.isZero(0.0)
             ? ""
             : "it speaks of layers without biases of q, k and v";
}

/// Scores are within a |x|² of the bias for tokens no longer than |x|.
UpRounded sum_of(const BoundContext& c, const UpRounded& longest, const UpRounded& squares) {
  UpRounded sum;
  for (const HeadNorms& h : c.heads()) {
    const double reach = (h.a * longest * longest).value();
    sum += ramapuram2025_sigmoid(h.a, h.vo, upper_bound_sigmoid(c.layer().score_bias, reach),
                                 upper_bound_sigmoid_slope(c.layer().score_bias, reach), squares,
                                 c.tokens());
  }
  return sum;
}

Evaluation ball(const BoundContext& c) {
  return unless({any_bias(c)},
                [&] { return sum_of(c, c.radius(), c.n() * c.radius() * c.radius()); });
}

Evaluation point(const BoundContext& c) {
  return unless({any_bias(c)}, [&] {
    const Matrix& x = *c.setting().x;
    UpRounded longest;
    for (Index i = 0; i < x.rows(); ++i) {
      longest = std::max(longest, UpRounded(upper_bound_norm_frobenius(x.row(i))));
    }
    const UpRounded all = upper_bound_norm_frobenius(x);
    return sum_of(c, longest, all * all);
  });
}

constexpr CatalogEntry entry(std::string_view name, std::string_view statement, Domain domain,
                             Evaluation (*formula)(const BoundContext&)) {
  return {
      .name = name,
      .statement = statement,
      .source = "Ramapuram et al., ICLR 2025, Theorem 3.2, recalled, derived again; heads added",
      .proof = "derivation 8",
      .domain = domain,
      .attention = AttentionKind::sigmoid,
      .norm = Norm::two,
      .kind = BoundKind::corrected,
      .formula = formula};
}

}  // namespace

std::span<const CatalogEntry> ramapuram2025_entries() {
  static constexpr std::array entries{
      entry(
          "ramapuram2025_ball",
          "sum_h |W_V W_O|_2 n (S + 2 S' a R^2), S and S' the largest sigmoid and slope for scores "
          "within a R^2 of their bias, a = s |W_Q W_K^T|_2, b_Q = b_K = b_V = 0",
          Domain::token_ball, ball),
      entry("ramapuram2025_point",
            "sum_h |W_V W_O|_2 (n S + 2 S' a |X|_F^2), S and S' the largest sigmoid and slope for "
            "scores within a max |x_i|_2^2 of their bias, a as in ramapuram2025_ball, b_Q = b_K = "
            "b_V = 0",
            Domain::point, point)};
  return entries;
}

}  // namespace lipsa
