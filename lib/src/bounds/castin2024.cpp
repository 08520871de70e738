#include "lipsa/bounds/castin2024.hpp"

#include "bounds/l2_factors.hpp"

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

}  // namespace lipsa
