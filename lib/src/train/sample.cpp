#include "lipsa/train/sample.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/check.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

constexpr std::uint64_t sample_stream = 0x73616d706c650000U;  // "sample": apart from other streams

/// The first id at which the sum of probabilities reaches u in (0, 1].
Index draw(const Vector& logits, double temperature, double u) {
  Index best = 0;
  const double largest = logits.maxCoeff(&best);
  if (temperature == 0.0) {
    return best;
  }
  const Vector weights = ((logits.array() - largest) / temperature).exp();
  double left = u * weights.sum();
  for (Index id = 0; id < weights.size(); ++id) {
    left -= weights(id);
    if (left <= 0.0 && weights(id) > 0.0) {
      return id;
    }
  }
  return best;  // rounding of the sum
}

}  // namespace

std::vector<CharacterId> sample(const LanguageModel& model, std::span<const CharacterId> prompt,
                                const SampleOptions& options) {
  require(options.length >= 0, "sample: length must not be negative, got {}", options.length);
  require(options.temperature >= 0.0 && std::isfinite(options.temperature),
          "sample: temperature must be from 0 and finite, got {}", options.temperature);
  require(!prompt.empty(), "sample: prompt must not be empty, got no characters");
  const auto positions = static_cast<std::size_t>(model.embedding.positions.rows());
  std::vector<Index> ids(prompt.begin(), prompt.end());
  std::vector<CharacterId> written;
  Rng rng(options.seed, sample_stream);
  for (Index k = 0; k < options.length; ++k) {
    const std::size_t n = positions == 0 ? ids.size() : std::min(positions, ids.size());
    const std::span<const Index> seen = std::span<const Index>(ids).last(n);
    const Matrix logits = LanguageModelAt(model, seen, static_cast<Index>(n)).take_output();
    const Vector last = logits.bottomRows(1).transpose();
    if (!last.allFinite()) {
      throw std::runtime_error(
          fmt::format("sample: expected finite logits after {} characters, found others", k));
    }
    const Index id = draw(last, options.temperature, rng.uniform());
    ids.push_back(id);
    written.push_back(static_cast<CharacterId>(id));
  }
  return written;
}

}  // namespace lipsa
