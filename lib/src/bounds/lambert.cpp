#include "lipsa/bounds/lambert.hpp"

#include <boost/math/special_functions/lambert_w.hpp>
#include <cmath>
#include <numbers>
#include <string_view>

#include "core/ball.hpp"
#include "core/check.hpp"
#include "core/rounding.hpp"

namespace lipsa {
namespace {

void require_argument(std::string_view function, double y) {
  require(y >= 0.0 && std::isfinite(y), "{}: argument must be finite and not negative, got {}",
          function, y);
}

double upper_bound(double y) {
  if (y == 0.0) {
    return 0.0;
  }
  double w = boost::math::lambert_w0(y);
  while (!(exp(Ball(w)).lower() >= div_up(y, w))) {  // eʷ ≥ y / w, which cannot overflow
    w = next_up(w);
  }
  return w;
}

}  // namespace

double lambert_w(double y) {
  require_argument("lambert_w", y);
  return boost::math::lambert_w0(y);
}

double upper_bound_lambert_w(double y) {
  require_argument("upper_bound_lambert_w", y);
  return upper_bound(y);
}

double phi_inverse(double y) {
  require_argument("phi_inverse", y);
  return boost::math::lambert_w0(y / std::numbers::e);
}

double upper_bound_phi_inverse(double y) {
  require_argument("upper_bound_phi_inverse", y);
  static_assert(std::numbers::e == 0x1.5bf0a8b145769p+1);  // e = 0x1.5bf0a8b1457695…, rounded down
  return upper_bound(div_up(y, std::numbers::e));
}

}  // namespace lipsa
