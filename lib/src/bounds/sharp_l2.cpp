#include "lipsa/bounds/sharp_l2.hpp"

#include <cmath>

#include "bounds/l2_factors.hpp"
#include "core/ball.hpp"
#include "core/check.hpp"
#include "core/rounding.hpp"
#include "lipsa/bounds/lambert.hpp"

namespace lipsa {

UpRounded sharp_l2_core_inf(Index tokens, Index head_width) {
  require(tokens >= 1, "sharp_l2_core_inf: tokens must be at least 1, got {}", tokens);
  require(head_width >= 1, "sharp_l2_core_inf: head_width must be at least 1, got {}", head_width);
  const auto d = static_cast<double>(head_width);
  const double root = std::sqrt(d);
  const Ball half_kappa = Ball(1.0) + Ball(root, 2.0 * Ball::u * root);
  const double shift = exp(Ball(-1.0) - Ball(1.0) / half_kappa).upper();
  const double w = upper_bound_lambert_w(mul_up(count_up(tokens - 1), shift));
  return 1.0 + 2.0 * (1.0 + sqrt(UpRounded(d))) * w;
}

UpRounded sharp_l2_inf(const MultiHead& layer, Index tokens) {
  require_l2("sharp_l2_inf", layer, tokens);
  return sharp_l2_core_inf(tokens, layer.head_width()) * l2_weights_inf(layer);
}

}  // namespace lipsa
