#include "search/token_gain.hpp"

#include <mutex>
#include <utility>

#include "lipsa/core/parallel.hpp"

namespace lipsa {

TokenGain largest_token_gain(const Jacobian& j, const MultiHead& layer) {
  const auto gain_of = [&](Index token) {
    return TokenGain{token, estimate_block_gain(j.row_block(token), layer.width())};
  };
  TokenGain best = gain_of(0);  // before the threads: the first block prepares what all share
  std::mutex mutex;
  parallel_for(j.rows() / layer.output_width() - 1, [&](Index i) {
    TokenGain found = gain_of(i + 1);
    const std::lock_guard lock(mutex);
    if (found.gain.value > best.gain.value ||
        (found.gain.value == best.gain.value && found.token < best.token)) {
      best = std::move(found);
    }
  });
  return best;
}

}  // namespace lipsa
