#include "lipsa/train/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/check.hpp"

namespace lipsa {
namespace {

constexpr std::uint64_t sample_stream = 0x73616d706c650000U;  // "sample": apart from other streams

}  // namespace

Index draw(const ConstVectorRef& logits, double temperature, Rng& rng) {
  require(logits.size() >= 1, "draw: logits must be at least one, got none");
  for (const double x : logits) {
    require(std::isfinite(x), "draw: logits must be finite, got {}", x);
  }
  require(temperature >= 0.0 && std::isfinite(temperature),
          "draw: temperature must be from 0 and finite, got {}", temperature);
  Index largest = 0;
  const double top = logits.maxCoeff(&largest);
  const double u = rng.uniform();  // (0, 1]
  if (temperature == 0.0) {
    return largest;
  }
  // Half the difference cannot overflow; over a tiny temperature it may be −∞, of weight 0.
  const auto weight = [&](Index k) {
    return std::exp(2.0 * ((0.5 * logits(k) - 0.5 * top) / temperature));
  };
  double total = 0.0;
  for (Index k = 0; k < logits.size(); ++k) {
    total += weight(k);
  }
  double below = 0.0;
  Index last = largest;  // of weight above zero, should rounding leave u beyond the sum
  for (Index k = 0; k < logits.size(); ++k) {
    const double w = weight(k);
    below += w;
    last = w > 0.0 ? k : last;
    if (w > 0.0 && u * total <= below) {
      return k;
    }
  }
  return last;
}

std::vector<CharacterId> sample(const AnyLanguageModel& model, std::span<const CharacterId> prompt,
                                const SampleOptions& options) {
  require(options.length >= 0, "sample: length must not be negative, got {}", options.length);
  require(options.temperature >= 0.0 && std::isfinite(options.temperature),
          "sample: temperature must be from 0 and finite, got {}", options.temperature);
  require(options.context >= 1, "sample: context must be at least 1, got {}", options.context);
  require(!prompt.empty(), "sample: prompt must not be empty, got no characters");
  const auto context = static_cast<std::size_t>(
      std::min(options.context, most_tokens(model).value_or(options.context)));
  std::vector<Index> ids(prompt.begin(), prompt.end());
  std::vector<CharacterId> written;
  Rng rng(options.seed, sample_stream);
  for (Index k = 0; k < options.length; ++k) {
    const std::size_t n = std::min(context, ids.size());
    const std::span<const Index> seen = std::span<const Index>(ids).last(n);
    const Matrix logits = AnyLanguageModelAt(model, seen, static_cast<Index>(n)).take_output();
    const Vector last = logits.bottomRows(1).transpose();
    if (!last.allFinite()) {
      throw std::runtime_error(
          fmt::format("sample: expected finite logits after {} characters, found others", k));
    }
    ids.push_back(draw(last, options.temperature, rng));
    written.push_back(static_cast<CharacterId>(ids.back()));
  }
  return written;
}

}  // namespace lipsa
