/// \file
/// Arithmetic of upper bounds: rounded upwards, and free of overflow.
#pragma once

#include <compare>
#include <cstdint>

namespace lipsa {

/// A number ≥ 0 in a formula that grows with each of its operands. Every operation rounds
/// upwards, and by less than one unit in the last place: exact results stay exact. The exponent
/// has 64 bits, so that the product of the constants of a deep network keeps its logarithm when
/// its value is beyond double.
///
///     UpRounded product = 1.0;
///     for (double constant : constants) { product *= constant; }
///     print(product.value(), product.log10_value());
///
/// Made from upper bounds of quantities it bounds the formula of these quantities from above. An
/// infinite operand stands for a finite quantity too large to say: zero times it is zero.
///
/// \test tests/bounds/up_rounded_test.cpp
class UpRounded {
 public:
  /// \param value  ≥ 0, may be infinite
  /// \throws std::invalid_argument  negative or NaN
  UpRounded(double value = 0.0);  // NOLINT(google-explicit-constructor): formulas mix both

  UpRounded& operator*=(const UpRounded& other);
  UpRounded& operator+=(const UpRounded& other);

  double value() const;        ///< infinite when beyond double, never below the number
  double log10_value() const;  ///< log₁₀ of it, rounded upwards; −inf for zero

  friend UpRounded operator*(UpRounded a, const UpRounded& b) { return a *= b; }
  friend UpRounded operator+(UpRounded a, const UpRounded& b) { return a += b; }
  friend UpRounded sqrt(const UpRounded& a);
  friend UpRounded exp(const UpRounded& a);  ///< trusted: std::exp, to four units in the last place

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads a defaulted comparison
  friend std::partial_ordering operator<=>(const UpRounded&, const UpRounded&) = default;
  friend bool operator==(const UpRounded&, const UpRounded&) = default;

 private:
  /// mantissa · 2^exponent for a mantissa in (0, 4], brought back to [1, 2).
  UpRounded(std::int64_t exponent, double mantissa);

  // In this order they compare as the numbers do. Zero has the least exponent and mantissa 0,
  // infinity the greatest and mantissa 1.
  std::int64_t exponent_;
  double mantissa_;
};

}  // namespace lipsa
