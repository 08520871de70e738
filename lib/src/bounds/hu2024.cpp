#include "lipsa/bounds/hu2024.hpp"

#include "bounds/l2_factors.hpp"

namespace lipsa {

UpRounded hu2024_specformer(const UpRounded& a, const UpRounded& v, const UpRounded& x_frobenius,
                            const UpRounded& around, Index tokens) {
  const UpRounded n = count_up(tokens);
  const UpRounded farthest = x_frobenius + around;
  return n * (n + 1.0) * farthest * farthest * v * a + n * v;
}

}  // namespace lipsa
