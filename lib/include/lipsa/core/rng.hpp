/// \file
/// Reproducible random numbers, addressed rather than consumed: a stream is named by seed,
/// configuration and restart, so that its numbers do not depend on which thread asks first.
#pragma once

#include <array>
#include <cstdint>

#include "lipsa/core/types.hpp"

namespace lipsa {

/// Philox 4x64-10 in counter mode: key (seed, configuration), counter (block, restart, 0, 0).
/// Streams that differ in seed, configuration or restart share no block. The integers and
/// `uniform` are the same bits on every platform; `normal` uses the platform's log and cos.
///
/// \source Salmon, Moraes, Dror & Shaw, SC 2011 (Random123).
/// \test   tests/core/rng_test.cpp
class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint64_t configuration = 0,
               std::uint64_t restart = 0) noexcept
      : key_{seed, configuration}, restart_(restart) {}

  std::uint64_t next() noexcept;

  /// Uniform on (0, 1]; 53 random bits.
  double uniform() noexcept { return (static_cast<double>(next() >> 11U) + 1.0) * 0x1.0p-53; }

  /// Uniform on (low, high].
  double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }

  /// Standard normal, by Box–Muller.
  double normal() noexcept;

 private:
  std::array<std::uint64_t, 2> key_;
  std::uint64_t restart_;
  std::uint64_t block_ = 0;
  std::array<std::uint64_t, 4> buffer_{};
  unsigned left_ = 0;
};

/// A rows × cols matrix of independent standard normals, filled row by row.
Matrix normal_matrix(Rng& rng, Index rows, Index cols);

/// A rows × cols matrix of independent uniforms on (low, high], filled row by row.
Matrix uniform_matrix(Rng& rng, Index rows, Index cols, double low, double high);

}  // namespace lipsa
