#include "lipsa/core/rng.hpp"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

namespace lipsa {

std::uint64_t Rng::next() noexcept {
  if (left_ == 0) {
    const r123::Philox4x64::ctr_type counter{{block_++, restart_, 0, 0}};
    const r123::Philox4x64::key_type key{{key_[0], key_[1]}};
    const auto block = r123::Philox4x64()(counter, key);
    buffer_ = {block[0], block[1], block[2], block[3]};
    left_ = 4;
  }
  return buffer_.at(4 - left_--);
}

double Rng::normal() noexcept {
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

Matrix normal_matrix(Rng& rng, Index rows, Index cols) {
  Matrix m(rows, cols);
  for (double& x : m.reshaped<Eigen::RowMajor>()) {
    x = rng.normal();
  }
  return m;
}

Matrix uniform_matrix(Rng& rng, Index rows, Index cols, double low, double high) {
  Matrix m(rows, cols);
  for (double& x : m.reshaped<Eigen::RowMajor>()) {
    x = rng.uniform(low, high);
  }
  return m;
}

}  // namespace lipsa
