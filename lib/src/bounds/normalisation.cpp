#include "lipsa/bounds/normalisation.hpp"

#include <cmath>

#include "bounds/l2_factors.hpp"
#include "core/ball.hpp"
#include "core/check.hpp"
#include "core/rounding.hpp"

namespace lipsa {
namespace {

constexpr double two_over_three_root_three = 0.38490017945975053;  // 0.384900179459750509…, above

void require_valid(const Normalisation& layer) {
  require(layer.width >= 1, "Normalisation: width must be at least 1, got {}", layer.width);
  require(layer.epsilon > 0.0 && std::isfinite(layer.epsilon),
          "Normalisation: epsilon must be positive, got {}", layer.epsilon);
  require(layer.gamma_max >= 0.0 && std::isfinite(layer.gamma_max),
          "Normalisation: gamma_max must be finite and not negative, got {}", layer.gamma_max);
  require(layer.beta_norm >= 0.0 && std::isfinite(layer.beta_norm),
          "Normalisation: beta_norm must be finite and not negative, got {}", layer.beta_norm);
}

UpRounded over_root(double gamma, double square) {
  return UpRounded(gamma) * div_up(1.0, next_down(std::sqrt(square)));
}

}  // namespace

UpRounded normalisation_lipschitz(const Normalisation& layer, Norm norm) {
  require_valid(layer);
  const UpRounded two = over_root(layer.gamma_max, layer.epsilon);
  if (norm == Norm::two || norm == Norm::max_token) {
    return two;
  }
  const auto d = static_cast<double>(layer.width);
  if (layer.kind == Normalisation::Kind::layer_norm) {
    const UpRounded others = count_up(layer.width - 1);
    return two * (2.0 * others * div_up(1.0, d) + two_over_three_root_three * sqrt(others));
  }
  return two * (1.0 + 0.5 * two_over_three_root_three * (1.0 + sqrt(UpRounded(d))));
}

UpRounded normalisation_point_2(const Normalisation& layer, const ConstVectorRef& x) {
  require_valid(layer);
  require(x.size() == layer.width && x.allFinite(),
          "normalisation_point_2: x must be finite and of length {}, got length {}", layer.width,
          x.size());
  const Ball by_width = Ball(1.0) / Ball(static_cast<double>(layer.width));
  Ball mean;
  if (layer.kind == Normalisation::Kind::layer_norm) {
    for (const double e : x) {
      mean += by_width * Ball(e);
    }
  }
  Ball square;
  for (const double e : x) {
    const Ball difference = Ball(e) - mean;
    square += by_width * difference * difference;
  }
  const double below = (square + Ball(layer.epsilon)).lower();
  return over_root(layer.gamma_max,
                   std::isfinite(below) && below > layer.epsilon ? below : layer.epsilon);
}

UpRounded normalisation_radius(const Normalisation& layer) {
  require_valid(layer);
  return layer.gamma_max * sqrt(UpRounded(count_up(layer.width))) + layer.beta_norm;
}

UpRounded residual_lipschitz(const UpRounded& f) {
  return 1.0 + f;
}

UpRounded composed_lipschitz(std::span<const UpRounded> layers) {
  UpRounded product = 1.0;
  for (const UpRounded& layer : layers) {
    product *= layer;
  }
  return product;
}

}  // namespace lipsa
