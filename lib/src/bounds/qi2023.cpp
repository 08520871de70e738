#include "lipsa/bounds/qi2023.hpp"

#include "bounds/l2_factors.hpp"

namespace lipsa {

UpRounded qi2023_cosine(const UpRounded& q, const UpRounded& k, const UpRounded& v,
                        const UpRounded& tau, const UpRounded& epsilon_root_inverse, Index tokens) {
  const UpRounded n = count_up(tokens);
  const UpRounded others = count_up(tokens - 1);
  return epsilon_root_inverse * (2.0 * n * others * tau * k + 2.0 * others * tau * q + 2.0 * n * v);
}

UpRounded nair2025_cosine(const UpRounded& q, const UpRounded& k, const UpRounded& v,
                          const UpRounded& tau, const UpRounded& epsilon_root_inverse,
                          Index tokens) {
  const UpRounded n = count_up(tokens);
  return epsilon_root_inverse * (n * n * tau * k + n * tau * q + 2.0 * n * v);
}

UpRounded cosine_2(const UpRounded& q, const UpRounded& k, const UpRounded& v, const UpRounded& tau,
                   const UpRounded& epsilon_root_inverse, const UpRounded& beta, Index tokens) {
  return epsilon_root_inverse * (beta * v + 0.5 * tau * count_up(tokens) * (q + k));
}

UpRounded cosine_max_token(const UpRounded& q, const UpRounded& k, const UpRounded& v,
                           const UpRounded& tau, const UpRounded& epsilon_root_inverse) {
  return epsilon_root_inverse * (v + tau * (q + k));
}

}  // namespace lipsa
