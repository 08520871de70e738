#include "lipsa/core/parallel.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "core/check.hpp"

namespace lipsa {

void parallel_for(Index count, const std::function<void(Index)>& body) {
  if (count == 1) {
    body(0);
  } else {
    // Isolated: while a loop waits for its last calls, its thread takes none of another loop's,
    // which might need a lock that the waiting caller holds.
    // A context of its own: when a loop around this one is stopped by an exception, this one must
    // not end early as if it were done, with half its results missing.
    tbb::this_task_arena::isolate([&] {
      tbb::task_group_context context(tbb::task_group_context::isolated);
      tbb::parallel_for(Index{0}, count, body, context);
    });
  }
}

/// A global_control limits by its address: a copy would limit nothing.
struct ThreadLimit::State {
  explicit State(std::size_t threads)
      : control(tbb::global_control::max_allowed_parallelism, threads) {}
  tbb::global_control control;
};

ThreadLimit::ThreadLimit(Index threads) {
  require(threads >= 1, "ThreadLimit: threads must be at least 1, got {}", threads);
  state_ = std::make_unique<State>(static_cast<std::size_t>(threads));
}

ThreadLimit::~ThreadLimit() = default;

}  // namespace lipsa
