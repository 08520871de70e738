#include "lipsa/bounds/dot_ball.hpp"

#include <algorithm>

namespace lipsa {

UpRounded dot_column_sum(const UpRounded& radius, const UpRounded& gradient, const UpRounded& count,
                         const UpRounded& harmonic) {
  return harmonic == UpRounded(0.0) ? count
                                    : std::min(count, harmonic * exp(2.0 * radius * gradient));
}

UpRounded dot_ball_2(const UpRounded& a, const UpRounded& gradient, const UpRounded& radius,
                     const UpRounded& columns) {
  const UpRounded rg = radius * gradient;
  return sqrt(columns * (1.0 + rg * rg)) + a * radius * radius;
}

UpRounded dot_ball_triangle_2(const UpRounded& a, const UpRounded& gradient,
                              const UpRounded& radius, const UpRounded& columns,
                              const UpRounded& p) {
  return p + sqrt(columns) * radius * gradient + a * radius * radius;
}

UpRounded dot_ball_max_token(const UpRounded& a, const UpRounded& gradient,
                             const UpRounded& radius) {
  const UpRounded rg = radius * gradient;
  return sqrt(1.0 + rg * rg) + a * radius * radius;
}

}  // namespace lipsa
