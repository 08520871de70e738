#include "lipsa/bounds/yudin2025.hpp"

#include "bounds/l2_factors.hpp"

namespace lipsa {

UpRounded yudin2025_point(const UpRounded& a, const UpRounded& v, const UpRounded& p,
                          const UpRounded& x, const UpRounded& g1) {
  return v * (p + 2.0 * x * x * a * g1);
}

UpRounded yudin2025_ball(const UpRounded& a, const UpRounded& v, const UpRounded& x,
                         const UpRounded& around, Index tokens) {
  const UpRounded farthest = x + around;
  return v * (sqrt(UpRounded(count_up(tokens))) + a * farthest * farthest);
}

}  // namespace lipsa
