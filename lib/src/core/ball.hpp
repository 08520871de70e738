/// \file
/// Numbers with a bound on their error: running error analysis in double precision. Private to
/// lib/.
#pragma once

#include <cmath>
#include <limits>

namespace lipsa {

/// An unknown real number within `radius` of `middle`. Every operation returns a ball around all
/// results its operands allow.
///
/// With u = 2⁻⁵³, a rounded result r errs by at most u |r|, or by `tiny` where it underflows. A
/// radius is a sum of at most six positive terms of at most three factors, each operation of
/// which errs by at most u relative: less than 16 u together, which `slack` covers. A radius
/// that is infinite or NaN means that nothing is known.
struct Ball {
  static constexpr double u = 0x1p-53;
  static constexpr double tiny = std::numeric_limits<double>::min();
  static constexpr double slack = 1.0 + 16.0 * u;
  /// The error of std::exp, relative. glibc's is below one unit in the last place (2u).
  static constexpr double exp_error = 8.0 * u;

  double middle = 0.0;
  double radius = 0.0;

  Ball() = default;
  Ball(double exact) : middle(exact) {}  // NOLINT(google-explicit-constructor): doubles are exact
  Ball(double m, double r) : middle(m), radius(r) {}

  Ball operator-() const { return {-middle, radius}; }

  friend Ball operator+(const Ball& a, const Ball& b) {
    const double m = a.middle + b.middle;
    return {m, (a.radius + b.radius + u * std::abs(m)) * slack};
  }
  friend Ball operator-(const Ball& a, const Ball& b) { return a + (-b); }
  friend Ball operator*(const Ball& a, const Ball& b) {
    const double m = a.middle * b.middle;
    return {m, (std::abs(a.middle) * b.radius + std::abs(b.middle) * a.radius +
                a.radius * b.radius + u * std::abs(m) + tiny) *
                   slack};
  }
  friend Ball operator/(const Ball& a, const Ball& b) {
    const double least = (std::abs(b.middle) - b.radius) * (1.0 - 4.0 * u);
    if (!(least > 0.0)) {
      return {0.0, std::numeric_limits<double>::infinity()};
    }
    // a/b − m = (a − m b)/b: |a − ã| + |m| |b − b̃| + the rounding of m, times |b|, over |b|
    const double m = a.middle / b.middle;
    return {m, ((a.radius + std::abs(m) * b.radius) / least + u * std::abs(m) + tiny) * slack};
  }
  Ball& operator+=(const Ball& b) { return *this = *this + b; }

  double lower() const {
    return std::nextafter(middle - radius, -std::numeric_limits<double>::infinity());
  }
  double upper() const {
    return std::nextafter(middle + radius, std::numeric_limits<double>::infinity());
  }

  /// A lower bound of the absolute value.
  double magnitude_lower() const {
    return std::fmax(0.0, std::nextafter(std::abs(middle) - radius, 0.0));
  }
  /// An upper bound of the absolute value.
  double magnitude_upper() const {
    return std::nextafter(std::abs(middle) + radius, std::numeric_limits<double>::infinity());
  }
};

inline Ball abs(const Ball& a) {
  return {std::abs(a.middle), a.radius};
}

/// The root of what the ball holds. Nothing is known of that of a ball that reaches zero.
inline Ball sqrt(const Ball& a) {
  const double least = (a.middle - a.radius) * (1.0 - 4.0 * Ball::u);
  if (!(least > 0.0)) {
    return {0.0, std::numeric_limits<double>::infinity()};
  }
  // |√(m + δ) − √m| = |δ|/(√(m + δ) + √m)
  const double m = std::sqrt(a.middle);
  const double sum = (m + std::sqrt(least)) * (1.0 - 4.0 * Ball::u);
  return {m, (a.radius / sum + Ball::u * m + Ball::tiny) * Ball::slack};
}

inline Ball exp(const Ball& a) {
  // |e^(m + δ) − e^m| ≤ e^m (e^|δ| − 1)
  const double m = std::exp(a.middle);
  if (!(m >= 0x1p-960)) {  // near underflow m says too little: |e^x − m| ≤ the larger of both
    const double most = std::exp(a.upper()) * (1.0 + Ball::exp_error);
    return {m, (most + Ball::tiny) * Ball::slack};
  }
  return {m, (m * (std::expm1(a.radius) * (1.0 + Ball::exp_error) + Ball::exp_error) + Ball::tiny) *
                 Ball::slack};
}

}  // namespace lipsa
