#include "lipsa/bounds/softmax.hpp"

#include <algorithm>
#include <array>

#include "bounds/context.hpp"

namespace lipsa {
namespace {

Evaluation half(const BoundContext& /*unused*/) {
  return gives(softmax_lipschitz);
}
Evaluation one(const BoundContext& /*unused*/) {
  return gives(1.0);
}
Evaluation quarter(const BoundContext& /*unused*/) {
  return gives(0.25);
}

/// The largest over heads of what is known of the rows of P at X.
template <UpRounded HeadAtPoint::*fact>
Evaluation at_point(const BoundContext& c) {
  if (c.layer().kind != AttentionKind::dot) {
    return fails("weights at X are enclosed for dot-product attention only");
  }
  UpRounded largest;
  for (const HeadAtPoint& head : c.heads_at_point()) {
    largest = std::max(largest, head.*fact);
  }
  return gives(largest);
}

constexpr CatalogEntry entry(std::string_view name, std::string_view statement,
                             std::string_view source, Norm norm, Domain domain,
                             Evaluation (*formula)(const BoundContext&),
                             BoundKind kind = BoundKind::as_printed,
                             std::string_view refutation = {}) {
  return {.name = name,
          .statement = statement,
          .source = source,
          .proof = refutation.empty() ? "derivation 10" : "",
          .domain = domain,
          .subject = Subject::softmax,
          .attention = AttentionKind::dot,
          .norm = norm,
          .kind = kind,
          .refutation = refutation,
          .formula = formula};
}

}  // namespace

std::span<const CatalogEntry> softmax_entries() {
  constexpr std::string_view nair = "Nair, TMLR 2025, Theorem 1";
  constexpr std::string_view secular =
      "lipsa: the secular equation of diag(p) less a rank-one matrix";
  static constexpr std::array entries{
      entry("softmax_half_1", "1/2", nair, Norm::one, Domain::everywhere, half),
      entry("softmax_half_2", "1/2", nair, Norm::two, Domain::everywhere, half),
      entry("softmax_half_inf", "1/2", nair, Norm::inf, Domain::everywhere, half),
      entry("softmax_gao2017", "1", "Gao & Pavel 2017, Proposition 4", Norm::two,
            Domain::everywhere, one),
      entry("softmax_quarter", "1/4", "attributed to a submission by Nair 2025", Norm::two,
            Domain::everywhere, quarter, BoundKind::as_printed,
            "two equal scores have |diag(p) - p p^T|_2 = 1/2"),
      entry("softmax_secular_2",
            "max_i of the root x in [p_(2), p_(1)] of sum_j p_j/(p_j - x) = 0, "
            "p = P_i",
            secular, Norm::two, Domain::point, at_point<&HeadAtPoint::softmax>, BoundKind::ours),
      entry("softmax_yudin2025_2", "max_i p_(1) (1 - p_(1) + p_(2)), p = P_i",
            "Yudin, Gaponov, Kudriashov & Rakhuba 2025, Corollary 1", Norm::two, Domain::point,
            at_point<&HeadAtPoint::g1>),
      entry("softmax_trace_2", "max_i 1 - sum_j P_ij^2", "Qi et al., LipsFormer, ICLR 2023",
            Norm::two, Domain::point, at_point<&HeadAtPoint::softmax_trace>),
      entry("softmax_nair2025_1", "max_ij 2 P_ij (1 - P_ij)", nair, Norm::one, Domain::point,
            at_point<&HeadAtPoint::softmax_inf>),
      entry("softmax_nair2025_inf", "max_ij 2 P_ij (1 - P_ij)", nair, Norm::inf, Domain::point,
            at_point<&HeadAtPoint::softmax_inf>)};
  return entries;
}

}  // namespace lipsa
