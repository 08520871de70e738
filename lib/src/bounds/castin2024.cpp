#include "lipsa/bounds/castin2024.hpp"

#include <algorithm>
#include <cmath>

#include "bounds/l2_factors.hpp"
#include "core/ball.hpp"
#include "core/check.hpp"

namespace lipsa {

UpRounded castin2024_ball(const UpRounded& a, const UpRounded& v, const UpRounded& radius,
                          Index tokens) {
  const UpRounded n = count_up(tokens);
  const UpRounded ar2 = a * radius * radius;
  return sqrt(UpRounded(3.0)) * v * sqrt(ar2 * ar2 * (4.0 * n + 1.0) + n);
}

UpRounded castin2024_mean_field(const UpRounded& a, const UpRounded& v, const UpRounded& radius) {
  const UpRounded ar2 = a * radius * radius;
  return v * (1.0 + 3.0 * ar2) * exp(2.0 * ar2);
}

UpRounded castin2024_code(const UpRounded& v, const UpRounded& diameter, const UpRounded& gradient,
                          Index tokens) {
  const UpRounded n = count_up(tokens);
  const UpRounded rg = diameter * gradient;
  return v * sqrt(rg * rg * (n + 1.0) + n);
}

double castin2024_lower_bound(double gamma_max, double gamma_min, double radius, Index tokens) {
  const double gamma = std::max(-gamma_min, 0.125 * gamma_max);
  require(std::isfinite(gamma_max) && std::isfinite(gamma_min) && gamma > 0.0,
          "castin2024_lower_bound: one of -gamma_min and gamma_max must be positive, got {} and {}",
          -gamma_min, gamma_max);
  require(radius >= 0.0 && std::isfinite(radius),
          "castin2024_lower_bound: radius must be finite and not negative, got {}", radius);
  require(tokens >= 2, "castin2024_lower_bound: tokens must be at least 2, got {}", tokens);
  const Ball others = static_cast<double>(tokens - 1);
  const Ball decay = exp(Ball(-2.0) * Ball(radius) * Ball(radius) * Ball(gamma));
  const double root = std::sqrt(others.middle);
  return std::max(0.0, (Ball(root, 2.0 * Ball::u * root) / (Ball(1.0) + others * decay)).lower());
}

}  // namespace lipsa
