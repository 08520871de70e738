#include "lipsa/core/parallel.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lipsa {
namespace {

TEST_CASE("parallel_for: calls each index once, nested too", "[core]") {
  const auto threads = GENERATE(Index{1}, Index{2}, Index{4});
  const ThreadLimit limit(threads);
  std::vector<int> calls(1000, 0);
  parallel_for(10, [&](Index i) {
    parallel_for(100, [&](Index j) { ++calls[static_cast<std::size_t>(i * 100 + j)]; });
  });
  CHECK(calls == std::vector<int>(1000, 1));
}

TEST_CASE("parallel_for: nothing to do is nothing done", "[core]") {
  parallel_for(0, [](Index) { FAIL("called"); });
}

TEST_CASE("parallel_for: hands an exception of the body to the caller", "[core]") {
  CHECK_THROWS_WITH(parallel_for(50,
                                 [](Index i) {
                                   if (i == 13) {
                                     throw std::runtime_error("thirteen");
                                   }
                                 }),
                    "thirteen");
}

TEST_CASE("parallel_for: an exception cuts no loop short within another call", "[core]") {
  std::atomic<int> begun{0};
  std::atomic<int> finished{0};
  std::atomic<int> short_of{0};
  for (int trial = 0; trial < 20; ++trial) {
    try {
      parallel_for(2, [&](Index i) {
        // Both are under way before one throws, when there are two threads to do so.
        ++begun;
        for (int wait = 0; wait < 1000 && begun < 2 * trial + 2; ++wait) {
          std::this_thread::sleep_for(std::chrono::microseconds(10));
        }
        if (i == 0) {
          throw std::runtime_error("stop");
        }
        std::atomic<int> calls{0};
        for (int loop = 0; loop < 50; ++loop) {
          parallel_for(64, [&](Index) { ++calls; });
        }
        short_of += 50 * 64 - calls;
        ++finished;
      });
    } catch (const std::runtime_error&) {
      begun = 2 * trial + 2;
    }
  }
  CHECK(short_of == 0);
}

TEST_CASE("ThreadLimit: of one keeps every call on the caller's thread", "[core]") {
  const ThreadLimit limit(1);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  parallel_for(50, [&](Index) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // time for another to join
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  CHECK(threads == std::set{std::this_thread::get_id()});
}

TEST_CASE("ThreadLimit: refuses fewer than one thread", "[core]") {
  CHECK_THROWS_WITH(ThreadLimit(0), "ThreadLimit: threads must be at least 1, got 0");
}

}  // namespace
}  // namespace lipsa
