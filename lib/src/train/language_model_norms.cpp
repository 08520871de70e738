#include "lipsa/train/language_model_norms.hpp"

#include <cmath>

#include "lipsa/bounds/catalog.hpp"

namespace lipsa {
namespace {

LanguageModelNorm attention_norm(const AttentionLayer& layer, const Matrix& x,
                                 const SpectralNormOptions& options) {
  LanguageModelNorm norm;
  if (!x.allFinite()) {  // the termination of the estimate says so
    return norm;
  }
  const Index n = x.rows();
  const AttentionLayerAt at(layer, x, n);
  norm.estimate = spectral_norm(JacobianOperator(at), options);
  const Bound best =
      best_bound({.layer = layer.weights, .mask = layer.mask, .tokens = n, .x = &x}, Norm::two);
  if (best.holds) {
    const double product = std::abs(layer.gain) * best.value;
    norm.upper_bound =
        layer.gain == 0.0 ? 0.0 : std::nextafter(product, std::numeric_limits<double>::infinity());
    norm.bound = best.name;
    norm.domain = best.domain;
  }
  return norm;
}

std::vector<LanguageModelNorm> norms_of(const LanguageModel& model, std::span<const Index> ids,
                                        const SpectralNormOptions& options) {
  const auto n = static_cast<Index>(ids.size());
  const Matrix embedded = EmbeddingAt(model.embedding, ids, n).take_output();
  std::vector<LanguageModelNorm> list;
  list.reserve(model.stack.blocks.size() + 1);
  Matrix x = embedded;
  for (const Block& block : model.stack.blocks) {
    list.push_back(attention_norm(
        block.attention,
        block.placement == NormPlacement::post ? x : LayerNormAt(block.attention_norm, x).output(),
        options));
    list.back().part = "blocks." + std::to_string(list.size() - 1) + ".attention";
    x = BlockAt(block, std::move(x), n).take_output();
  }
  const StackAt network(model.stack, embedded, n);
  list.push_back(
      {.part = "network", .estimate = spectral_norm(JacobianOperator(network), options)});
  return list;
}

std::vector<LanguageModelNorm> norms_of(const LstmModel& model, std::span<const Index> ids,
                                        const SpectralNormOptions& options) {
  const LstmModelAt network(model, ids, static_cast<Index>(ids.size()));
  return {{.part = "network", .estimate = spectral_norm(JacobianOperator(network), options)}};
}

}  // namespace

std::vector<LanguageModelNorm> language_model_norms(const AnyLanguageModel& model,
                                                    std::span<const Index> ids,
                                                    const SpectralNormOptions& options) {
  return std::visit([&](const auto& own) { return norms_of(own, ids, options); }, model);
}

}  // namespace lipsa
