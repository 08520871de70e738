#include "lipsa/core/rng.hpp"

#include <catch2/catch.hpp>
#include <set>

namespace lipsa {
namespace {

TEST_CASE("Rng: gives the published known answer of Philox 4x64-10", "[core]") {
  Rng rng(0);
  CHECK(rng.next() == 0x16554d9eca36314cU);  // Random123's kat_vectors, zero key and counter
  CHECK(rng.next() == 0xdb20fe9d672d0fdcU);
  CHECK(rng.next() == 0xd7e772cee186176bU);
  CHECK(rng.next() == 0x7e68b68aec7ba23bU);
}

TEST_CASE("Rng: seed, configuration and restart each name another stream", "[core]") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed : {0U, 1U}) {
    for (std::uint64_t configuration : {0U, 1U, 7U}) {
      for (std::uint64_t restart : {0U, 1U, 2U}) {
        Rng rng(seed, configuration, restart);
        for (int draw = 0; draw < 100; ++draw) {
          seen.insert(rng.next());
        }
      }
    }
  }
  CHECK(seen.size() == 2U * 3U * 3U * 100U);
}

TEST_CASE("Rng: normals have mean 0, variance 1, kurtosis 3 within five standard errors",
          "[core]") {
  Rng rng(3);
  const Index count = 200000;
  const Matrix z = normal_matrix(rng, count, 1);
  const double n = static_cast<double>(count);
  CHECK(std::abs(z.mean()) <= 5.0 / std::sqrt(n));
  CHECK(std::abs(z.array().square().mean() - 1.0) <= 5.0 * std::sqrt(2.0 / n));
  CHECK(std::abs(z.array().pow(4).mean() - 3.0) <= 5.0 * std::sqrt(96.0 / n));
}

TEST_CASE("Rng: uniforms stay in their half-open interval", "[core]") {
  Rng rng(4);
  const Matrix u = uniform_matrix(rng, 1000, 10, -2.0, 3.0);
  CHECK(u.minCoeff() > -2.0);
  CHECK(u.maxCoeff() <= 3.0);
  CHECK(std::abs(u.mean() - 0.5) <= 5.0 * 5.0 / std::sqrt(12.0 * 10000.0));
}

}  // namespace
}  // namespace lipsa
