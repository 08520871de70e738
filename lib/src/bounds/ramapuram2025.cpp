#include "lipsa/bounds/ramapuram2025.hpp"

#include <algorithm>
#include <cmath>

#include "bounds/l2_factors.hpp"
#include "core/ball.hpp"
#include "core/check.hpp"

namespace lipsa {
namespace {

void require_range(double bias, double reach) {
  require(std::isfinite(bias) && reach >= 0.0,
          "upper_bound_sigmoid: bias must be finite and reach not negative, got {} and {}", bias,
          reach);
}

}  // namespace

UpRounded ramapuram2025_sigmoid(const UpRounded& a, const UpRounded& v, const UpRounded& sigma,
                                const UpRounded& slope, const UpRounded& squares, Index tokens) {
  return v * (count_up(tokens) * sigma + 2.0 * slope * a * squares);
}

double upper_bound_sigmoid(double bias, double reach) {
  require_range(bias, reach);
  const Ball top = Ball(bias) + Ball(reach);
  if (!(top.upper() < 36.0)) {
    return 1.0;
  }
  // e^t/(1 + e^t), which grows with e^t.
  const Ball power(exp(top).upper());
  return std::min(1.0, (power / (Ball(1.0) + power)).upper());
}

double upper_bound_sigmoid_slope(double bias, double reach) {
  require_range(bias, reach);
  const double least = (Ball(std::abs(bias)) - Ball(reach)).lower();
  if (!(least > 0.0)) {
    return 0.25;
  }
  const Ball power(exp(Ball(-least)).upper());  // σ' = e^(−t)/(1 + e^(−t))² falls as t > 0 grows
  const Ball one_more = Ball(1.0) + power;
  return std::min(0.25, (power / (one_more * one_more)).upper());
}

}  // namespace lipsa
