#include "lipsa/model/activation.hpp"

#include <algorithm>
#include <array>
#include <limits>
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

/// erfcx(z/√2)/2 = e^(z²/2) Φ(−z) for z ≥ 0, as a polynomial in 1.3 − 13.8/(z + 6), which takes
/// [0, 40] to [−1, 1]: its Chebyshev series by mpmath with 50 digits, cut below 1e-17.
constexpr std::array<double, 22> scaled_tail{
    0x1.535912c40bd8ep-4,   -0x1.1501711c8e602p-3,  0x1.bfb1f4db4087dp-4,   -0x1.3f06ba5eabf6ap-4,
    0x1.8f7d69aa18b6cp-5,   -0x1.b41c5b5dc8b82p-6,  0x1.994ec1508646dp-7,   -0x1.4241195ded048p-8,
    0x1.96064427ad375p-10,  -0x1.6d73009b39119p-12, 0x1.1aafc74cd9e16p-15,  0x1.705a2768ba988p-17,
    -0x1.630cfccb527f2p-18, 0x1.1afdfb93d8f16p-21,  0x1.2f612a730ca1bp-22,  -0x1.97ccd91b04714p-24,
    -0x1.145ebfbae254ep-27, 0x1.3c693095e3f49p-27,  -0x1.15aa45385e97cp-32, -0x1.a2adb612dbf58p-31,
    0x1.8d59534e2bfabp-35,  0x1.8c4c8edd5b05dp-35};

/// Eight at once, which fill the registers: with t = Φ(−|x|), x Φ(x) = max(x, 0) − |x| t, and
/// Φ(x) = 1/2 + sign(x) (1/2 − t).
void gelu_of_eight(double* value, double* slope) {
  using Eight = Eigen::Array<double, 8, 1>;
  constexpr double density_factor = std::numbers::inv_sqrtpi / std::numbers::sqrt2;  // 1/√(2π)
  const Eight x = Eigen::Map<const Eight>(value);  // a copy: `value` is written to
  const Eight size = x.abs();
  const Eight at = 1.3 - 13.8 / (size + 6.0);
  Eight tail = Eight::Constant(scaled_tail.back());
  for (std::size_t k = scaled_tail.size() - 1; k-- > 0;) {
    tail = tail * at + scaled_tail[k];
  }
  const Eight decay = (-0.5 * x.square()).exp();
  tail *= decay;
  const Eight sign = x / size.max(std::numeric_limits<double>::min());
  Eigen::Map<Eight> slopes(slope);
  Eigen::Map<Eight> values(value);
  slopes = 0.5 + sign * (0.5 - tail) + density_factor * x * decay;
  values = x.max(0.0) - size * tail;
  // Eigen's exp stops at 5e-309 where e^(−x²/2) goes on to zero, and a huge x would bring that
  // back.
  constexpr double beyond = 38.5;
  if (!(size.maxCoeff<Eigen::PropagateNaN>() <= beyond)) {
    for (Index k = 0; k < size.size(); ++k) {
      if (size(k) > beyond) {
        slopes(k) = x(k) > 0.0 ? 1.0 : 0.0;
        values(k) = x(k) > 0.0 ? x(k) : 0.0;
      }
    }
  }
}

void gelu(Index count, double* x, double* slope) {
  Index k = 0;
  for (; k + 8 <= count; k += 8) {
    gelu_of_eight(x + k, slope + k);
  }
  if (k < count) {
    std::array<double, 8> values{};
    std::array<double, 8> slopes{};
    std::copy(x + k, x + count, values.begin());
    gelu_of_eight(values.data(), slopes.data());
    std::copy_n(values.begin(), count - k, x + k);
    std::copy_n(slopes.begin(), count - k, slope + k);
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
