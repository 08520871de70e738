#include "lipsa/bounds/havens2024.hpp"

namespace lipsa {

UpRounded havens2024_weights_term(const UpRounded& xa, const UpRounded& xat, const UpRounded& a,
                                  const UpRounded& xw, const UpRounded& w, const UpRounded& around,
                                  const UpRounded& softmax) {
  return softmax * (xa + xat + a * around) * (xw + around * w);
}

}  // namespace lipsa
