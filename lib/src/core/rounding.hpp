/// \file
/// Arithmetic that errs upwards only. Each function returns a double at or above the exact result,
/// in the default rounding mode: a correctly rounded result is at most half a unit too small, and
/// the next double covers it. Private to lib/.
#pragma once

#include <cmath>
#include <limits>

namespace lipsa {

inline double next_up(double x) {
  return std::nextafter(x, std::numeric_limits<double>::infinity());
}
inline double next_down(double x) {
  return std::nextafter(x, -std::numeric_limits<double>::infinity());
}

inline double add_up(double x, double y) {
  return next_up(x + y);
}
inline double mul_up(double x, double y) {
  return x == 0.0 || y == 0.0 ? 0.0 : next_up(x * y);
}
inline double div_up(double x, double y) {
  return x == 0.0 ? 0.0 : next_up(x / y);
}
inline double sqrt_up(double x) {
  return x == 0.0 ? 0.0 : next_up(std::sqrt(x));
}

}  // namespace lipsa
