#include "lipsa/core/parallel.hpp"

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
