#include "lipsa/attention/sigmoid.hpp"

#include <cmath>

namespace lipsa {

void sigmoid_weights(double bias, MatrixRef s, MatrixRef slopes) {
  for (Index i = 0; i < s.rows(); ++i) {
    for (Index j = 0; j < s.cols(); ++j) {
      const double t = s(i, j) + bias;
      const double small = std::exp(-std::abs(t));
      const double whole = 1.0 + small;
      s(i, j) = (t >= 0.0 ? 1.0 : small) / whole;
      slopes(i, j) = small / (whole * whole);
    }
  }
}

}  // namespace lipsa
