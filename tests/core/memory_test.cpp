#include "lipsa/core/memory.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "lipsa/core/types.hpp"

namespace lipsa {
namespace {

/// Pages the system had to provide while an array of 80 MB lives.
long faults_of_an_array() {
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  const long before = faults();
  Matrix m(10000, 1000);
  m.setConstant(1.0);
  CHECK(m(9999, 999) == 1.0);
  return faults() - before;
}

TEST_CASE("keep_freed_memory: an array takes the place of one that was freed", "[core]") {
  if (!keep_freed_memory()) {
    return;  // another allocator
  }
  faults_of_an_array();
  CHECK(faults_of_an_array() < 1000);  // of 20000 pages
}

}  // namespace
}  // namespace lipsa
