/// \file
/// Loops over several processors. What runs in parallel writes to places of its own; nothing is
/// summed across iterations, so that results do not depend on the number of threads.
#pragma once

#include <functional>
#include <memory>

#include "lipsa/core/types.hpp"

namespace lipsa {

/// Calls body(0), …, body(count − 1), each once, in any order and on any thread. May be nested.
/// An exception of one call stops those not yet begun and is rethrown here; calls that are under
/// way are finished, the loops within them too.
///
/// \test tests/core/parallel_test.cpp
void parallel_for(Index count, const std::function<void(Index)>& body);

/// While it lives, this process uses at most `threads` threads in `parallel_for`.
class ThreadLimit {
 public:
  /// \param threads  ≥ 1
  /// \throws std::invalid_argument
  explicit ThreadLimit(Index threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;
  ThreadLimit(ThreadLimit&&) = delete;
  ThreadLimit& operator=(ThreadLimit&&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lipsa
