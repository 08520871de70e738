#include "lipsa/train/sampling.hpp"

#include <cmath>

#include "core/check.hpp"

namespace lipsa {

Index sample(const ConstVectorRef& logits, double temperature, Rng& rng) {
  require(logits.size() >= 1, "sample: logits must be at least one, got none");
  for (const double x : logits) {
    require(std::isfinite(x), "sample: logits must be finite, got {}", x);
  }
  require(temperature >= 0.0 && std::isfinite(temperature),
          "sample: temperature must be from 0 and finite, got {}", temperature);
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

}  // namespace lipsa
