#include "lipsa/bounds/up_rounded.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "core/ball.hpp"
#include "core/check.hpp"
#include "core/rounding.hpp"

namespace lipsa {
namespace {

constexpr std::int64_t infinite = std::int64_t{1} << 60U;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// x y, and √x, rounded upwards, for numbers of order one: there a fused multiply-add shows the
/// sign of the rounding error.
double product_up(double x, double y) {
  const double p = x * y;
  return std::fma(x, y, -p) > 0.0 ? next_up(p) : p;
}
double root_up(double x) {
  const double r = std::sqrt(x);
  return std::fma(r, r, -x) < 0.0 ? next_up(r) : r;
}

/// x + y rounded upwards, for x ≥ y ≥ 0: s − x is exact.
double sum_up(double x, double y) {
  const double s = x + y;
  return s - x < y ? next_up(s) : s;
}

}  // namespace

UpRounded::UpRounded(std::int64_t exponent, double mantissa) {
  int shift = 0;
  mantissa_ = 2.0 * std::frexp(mantissa, &shift);
  exponent_ = exponent + shift - 1;
  if (exponent_ >= infinite) {
    exponent_ = infinite;
    mantissa_ = 1.0;
  } else if (exponent_ <= -infinite) {
    exponent_ = 1 - infinite;
  }
}

UpRounded::UpRounded(double value) : exponent_(-infinite), mantissa_(0.0) {
  require(value >= 0.0, "UpRounded: value must not be negative or NaN, got {}", value);
  if (value == infinity) {
    exponent_ = infinite;
    mantissa_ = 1.0;
  } else if (value > 0.0) {
    *this = UpRounded(0, value);
  }
}

UpRounded& UpRounded::operator*=(const UpRounded& other) {
  if (mantissa_ == 0.0 || other.mantissa_ == 0.0) {
    return *this = 0.0;
  }
  if (exponent_ == infinite || other.exponent_ == infinite) {
    return *this = infinity;
  }
  return *this = UpRounded(exponent_ + other.exponent_, product_up(mantissa_, other.mantissa_));
}

UpRounded& UpRounded::operator+=(const UpRounded& other) {
  const auto& [small, large] = *this < other ? std::pair(*this, other) : std::pair(other, *this);
  if (small.mantissa_ == 0.0 || large.exponent_ == infinite) {
    return *this = large;
  }
  const std::int64_t shift = small.exponent_ - large.exponent_;
  const double part =
      shift > -1000 ? std::ldexp(small.mantissa_, static_cast<int>(shift)) : 0x1p-999;
  return *this = UpRounded(large.exponent_, sum_up(large.mantissa_, part));
}

UpRounded sqrt(const UpRounded& a) {
  if (a.mantissa_ == 0.0 || a.exponent_ == infinite) {
    return a;
  }
  const std::int64_t odd = a.exponent_ & 1;
  return {(a.exponent_ - odd) / 2, root_up(odd != 0 ? 2.0 * a.mantissa_ : a.mantissa_)};
}

UpRounded exp(const UpRounded& a) {
  const double x = a.value();
  if (x > 0x1p52) {
    return infinity;
  }
  const double turns = std::floor(x / std::numbers::ln2);
  constexpr double ln2_error = 0x1p-54;
  const Ball rest = Ball(x) - Ball(turns) * Ball(std::numbers::ln2, ln2_error);
  return {static_cast<std::int64_t>(turns), exp(rest).upper()};
}

double UpRounded::value() const {
  if (mantissa_ == 0.0) {
    return 0.0;
  }
  if (exponent_ > 1023) {
    return infinity;
  }
  if (exponent_ < -1074) {
    return std::numeric_limits<double>::denorm_min();
  }
  const auto shift = static_cast<int>(exponent_);
  const double value = std::ldexp(mantissa_, shift);  // rounds only below the normal numbers
  return std::ldexp(value, -shift) < mantissa_ ? next_up(value) : value;
}

double UpRounded::log10_value() const {
  if (mantissa_ == 0.0) {
    return -infinity;
  }
  if (exponent_ == infinite) {
    return infinity;
  }
  // Trusted: std::log10 errs by at most four units in the last place, 8 u relative with u = 2⁻⁵³.
  const double of_mantissa = std::log10(mantissa_) * (1.0 + 0x1p-49);
  if (exponent_ == 0) {
    return of_mantissa;
  }
  constexpr double log10_2 = std::numbers::ln2 / std::numbers::ln10;  // within 3 u
  const double of_exponent = static_cast<double>(exponent_) * log10_2;
  return add_up(of_mantissa, of_exponent + std::abs(of_exponent) * 0x1p-50);
}

}  // namespace lipsa
