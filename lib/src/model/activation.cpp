#include "lipsa/model/activation.hpp"

#include <cmath>
#include <numbers>

#include "core/same_shapes.hpp"
#include "linalg/row_products.hpp"

namespace lipsa {
namespace {

/// x becomes f(x), and slope f'(x).
void relu(Index count, double* x, double* slope) {
  for (Index k = 0; k < count; ++k) {
    slope[k] = x[k] > 0.0 ? 1.0 : 0.0;
    x[k] = x[k] < 0.0 ? 0.0 : x[k];  // a NaN stays one
  }
}

void gelu(Index count, double* x, double* slope) {
  constexpr double density_factor = std::numbers::inv_sqrtpi / std::numbers::sqrt2;  // 1/√(2π)
  for (Index k = 0; k < count; ++k) {
    const double at = x[k];
    const double below = 0.5 * (1.0 + std::erf(at / std::numbers::sqrt2));  // Φ(x)
    x[k] = at * below;
    slope[k] = below + at * density_factor * std::exp(-0.5 * at * at);
  }
}

}  // namespace

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
  }
  return "unknown";
}

Activation parse_activation(std::string_view text) {
  for (const Activation activation : {Activation::relu, Activation::gelu}) {
    if (text == to_string(activation)) {
      return activation;
    }
  }
  throw std::invalid_argument(fmt::format("activation must be relu or gelu, got '{}'", text));
}

double activation_slope_upper_bound(Activation activation) {
  return activation == Activation::relu ? 1.0 : 0x1.20ffdcafe39a8p+0;
}

ActivationAt::ActivationAt(Activation activation, Matrix x)
    : output_(std::move(x)), slopes_(output_.rows(), output_.cols()) {
  for_row_pieces(output_.rows(), [&](Index first, Index count) {
    const Index start = first * output_.cols();
    (activation == Activation::relu ? relu : gelu)(count * output_.cols(), output_.data() + start,
                                                   slopes_.data() + start);
  });
}

Matrix ActivationAt::apply(Matrix dx) const {
  require_shape("ActivationAt", "dx or dy", dx, rows(), input_width());
  for_row_pieces(rows(), [&](Index first, Index count) {
    dx.middleRows(first, count).array() *= slopes_.middleRows(first, count).array();
  });
  return dx;
}

}  // namespace lipsa
