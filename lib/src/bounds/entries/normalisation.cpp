#include "lipsa/bounds/normalisation.hpp"

#include <array>

#include "bounds/context.hpp"

namespace lipsa {
namespace {

template <Normalisation::Kind kind, Norm norm>
Evaluation lipschitz(const BoundContext& c) {
  const Normalisation& layer = *c.setting().normalisation;
  if (layer.kind != kind) {
    return fails(kind == Normalisation::Kind::layer_norm ? "it speaks of LayerNorm"
                                                         : "it speaks of RMSNorm");
  }
  return gives(normalisation_lipschitz(layer, norm));
}

template <Normalisation::Kind kind, Norm norm>
constexpr CatalogEntry entry(std::string_view name, std::string_view statement) {
  return {.name = name,
          .statement = statement,
          .source = "lipsa: the eigenvalues and rows of the closed form",
          .proof = "derivation 11",
          .domain = Domain::everywhere,
          .subject = Subject::normalisation,
          .attention = AttentionKind::dot,
          .norm = norm,
          .kind = BoundKind::ours,
          .formula = lipschitz<kind, norm>};
}

}  // namespace

std::span<const CatalogEntry> normalisation_entries() {
  constexpr auto ln = Normalisation::Kind::layer_norm;
  constexpr auto rms = Normalisation::Kind::rms_norm;
  constexpr std::string_view two = "max |gamma|/sqrt(eps)";
  constexpr std::string_view sums = "max |gamma|/sqrt(eps) (2 (D-1)/D + 2/(3 sqrt(3)) sqrt(D-1))";
  constexpr std::string_view rms_sums = "max |gamma|/sqrt(eps) (1 + (1 + sqrt(D))/(3 sqrt(3)))";
  static constexpr std::array entries{entry<ln, Norm::two>("layer_norm_2", two),
                                      entry<ln, Norm::max_token>("layer_norm_max_token", two),
                                      entry<ln, Norm::one>("layer_norm_1", sums),
                                      entry<ln, Norm::inf>("layer_norm_inf", sums),
                                      entry<rms, Norm::two>("rms_norm_2", two),
                                      entry<rms, Norm::max_token>("rms_norm_max_token", two),
                                      entry<rms, Norm::one>("rms_norm_1", rms_sums),
                                      entry<rms, Norm::inf>("rms_norm_inf", rms_sums)};
  return entries;
}

}  // namespace lipsa
