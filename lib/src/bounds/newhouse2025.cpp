#include "lipsa/bounds/newhouse2025.hpp"

#include <algorithm>

namespace lipsa {

UpRounded newhouse2025_functional(const UpRounded& scale_times_d, const UpRounded& q,
                                  const UpRounded& k, const UpRounded& v) {
  return std::max(UpRounded(1.0), scale_times_d * v * std::max(q, k));
}

UpRounded newhouse2025_functional_printed(const UpRounded& scale_times_d, const UpRounded& q,
                                          const UpRounded& k, const UpRounded& v) {
  return sqrt(scale_times_d) * std::max(UpRounded(1.0), v * std::max(q, k));
}

}  // namespace lipsa
