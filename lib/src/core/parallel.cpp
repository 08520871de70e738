#include "lipsa/core/parallel.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>

#include "core/check.hpp"

namespace lipsa {

void parallel_for(Index count, const std::function<void(Index)>& body) {
  tbb::parallel_for(Index{0}, count, body);
}

struct ThreadLimit::State {
  tbb::global_control control;
};

ThreadLimit::ThreadLimit(Index threads) {
  require(threads >= 1, "ThreadLimit: threads must be at least 1, got {}", threads);
  state_ = std::make_unique<State>(tbb::global_control(tbb::global_control::max_allowed_parallelism,
                                                       static_cast<std::size_t>(threads)));
}

ThreadLimit::~ThreadLimit() = default;

}  // namespace lipsa
