#include "lipsa/core/parallel.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "core/check.hpp"

namespace lipsa {

void parallel_for(Index count, const std::function<void(Index)>& body) {
  if (count == 1) {
    body(0);
  } else {
    // Isolated: while a loop waits for its last calls, its thread takes none of another loop's,
    // which might need a lock that the waiting caller holds.
    tbb::this_task_arena::isolate([&] { tbb::parallel_for(Index{0}, count, body); });
  }
}

struct ThreadLimit::State {
  tbb::global_control control;
};

ThreadLimit::ThreadLimit(Index threads) {
  require(threads >= 1, "ThreadLimit: threads must be at least 1, got {}", threads);
  // Built in place: a global_control limits by its address, so a copy would limit nothing.
  state_.reset(new State{tbb::global_control(tbb::global_control::max_allowed_parallelism,
                                             static_cast<std::size_t>(threads))});
}

ThreadLimit::~ThreadLimit() = default;

}  // namespace lipsa
