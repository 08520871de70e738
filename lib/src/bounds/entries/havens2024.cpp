#include "lipsa/bounds/havens2024.hpp"

#include <array>

#include "bounds/context.hpp"
#include "lipsa/bounds/softmax.hpp"

namespace lipsa {
namespace {

/// Beyond this size Σ_h P_h ⊗ W_hᵀ is not formed, and its norm is bounded by Σ_h |P_h|_2 |W_h|_2.
constexpr Index largest_kronecker = 1536;

/// |Σ_h P_h ⊗ W_hᵀ|_2.
UpRounded values_term(const BoundContext& c) {
  UpRounded sum;
  std::vector<EnclosedMatrix> p;
  std::vector<EnclosedMatrix> w;
  for (std::size_t h = 0; h < c.heads().size(); ++h) {
    const HeadAtPoint& at = c.heads_at_point()[h];
    sum += at.p * c.heads()[h].vo;
    p.push_back(at.P);
    w.push_back(at.value_map);
  }
  const Index widest = std::max(c.layer().width(), c.layer().output_width());
  if (c.heads().size() == 1 || c.tokens() * widest > largest_kronecker) {
    return sum;
  }
  return std::min(sum, up_rounded(upper_bound_spectral_norm(kronecker_sum(p, w))));
}

Evaluation point(const BoundContext& c) {
  UpRounded sum = values_term(c);
  for (std::size_t h = 0; h < c.heads().size(); ++h) {
    const HeadAtPoint& at = c.heads_at_point()[h];
    sum += havens2024_weights_term(at.xa, at.xat, 0.0, at.xw, 0.0, 0.0, at.softmax);
  }
  return gives(sum);
}

Evaluation point_centred(const BoundContext& c) {
  UpRounded sum = values_term(c);
  for (std::size_t h = 0; h < c.heads().size(); ++h) {
    const HeadAtPoint& at = c.heads_at_point()[h];
    sum += havens2024_weights_term(at.xa, at.xat_centred, 0.0, at.xw_centred, 0.0, 0.0, at.softmax);
  }
  return gives(sum);
}

Evaluation around(const BoundContext& c) {
  UpRounded sum = values_term(c);
  const UpRounded eps = c.setting().around;
  for (std::size_t h = 0; h < c.heads().size(); ++h) {
    const HeadAtPoint& at = c.heads_at_point()[h];
    const HeadNorms& norms = c.heads()[h];
    sum += havens2024_weights_term(at.xa, at.xat_centred, norms.a, at.xw_centred, norms.vo, eps,
                                   softmax_lipschitz);
  }
  return gives(sum);
}

}  // namespace

std::span<const CatalogEntry> havens2024_entries() {
  static constexpr std::array entries{
      CatalogEntry{
          .name = "havens2024_point",
          .statement = "|sum_h P_h (x) W_h^T|_2 + sum_h |X W_h|_2 max_i |diag(P_i) - P_i "
                       "P_i^T|_2 (|X A + 1 b^T|_2 + |X A^T|_2), W_h = W_V W_O, "
                       "A = s W_Q W_K^T, b = s W_K b_Q",
          .source = "lipsa: in the manner of Havens, Araujo, Zhang & Hu, ICML 2024, eps -> 0",
          .proof = "derivation 5",
          .domain = Domain::point,
          .attention = AttentionKind::dot,
          .norm = Norm::two,
          .kind = BoundKind::ours,
          .formula = point},
      CatalogEntry{
          .name = "havens2024_point_centred",
          .statement = "havens2024_point with the mean token taken from X in X W_h and X A^T",
          .source = "lipsa: rows of the softmax's derivative sum to zero",
          .proof = "derivation 5",
          .domain = Domain::point,
          .attention = AttentionKind::dot,
          .norm = Norm::two,
          .kind = BoundKind::ours,
          .formula = point_centred},
      CatalogEntry{.name = "havens2024_from_point",
                   .statement =
                       "|F(X') - F(X)|_F <= L |X' - X|_F, L = |sum_h P_h (x) W_h^T|_2 + sum_h "
                       "(|X W_h|_2 + eps |W_h|_2) (|X A + 1 b^T|_2 + |X A^T|_2 + a eps)/2, "
                       "the mean token taken from X as in havens2024_point_centred",
                   .source = "lipsa: in the manner of Havens, Araujo, Zhang & Hu, ICML 2024",
                   .proof = "derivation 5",
                   .domain = Domain::from_point,
                   .attention = AttentionKind::dot,
                   .norm = Norm::two,
                   .kind = BoundKind::ours,
                   .formula = around}};
  return entries;
}

}  // namespace lipsa
