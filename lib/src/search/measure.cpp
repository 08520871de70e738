#include "lipsa/search/measure.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/attention/local_norm.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "search/token_gain.hpp"

namespace lipsa {
namespace {

/// Between an estimate and what is proved of it.
constexpr double agreement = 1e-3;

Vector signs(const ConstVectorRef& row) {
  return row.unaryExpr([](double e) { return e < 0.0 ? -1.0 : 1.0; });
}

void measure(const Jacobian& j, const MultiHead& layer, Norm p, LocalNorm& norm) {
  norm.direction = Vector::Zero(j.cols());
  norm.residual = 0.0;
  norm.status = "converged";
  switch (p) {
    case Norm::inf: {
      const AttainedNorm attained = j.norm_inf();
      const Index width = layer.output_width();
      norm.estimate = attained.value;
      norm.direction =
          signs(j.row_block(attained.index / width).row(attained.index % width).transpose());
      break;
    }
    case Norm::max_token: {
      TokenGain largest = largest_token_gain(j, layer);
      norm.estimate = largest.gain.value;
      norm.direction = std::move(largest.gain.v);
      break;
    }
    case Norm::one: {
      const AttainedNorm attained = j.norm_1();
      norm.estimate = attained.value;
      norm.direction(attained.index) = 1.0;
      break;
    }
    case Norm::two: {
      const SpectralNorm spectral = spectral_norm(j, {.relative_tolerance = 1e-12});
      norm.estimate = spectral.value;
      norm.residual = spectral.residual;
      norm.status = to_string(spectral.termination);
      norm.direction = spectral.right_vector;
      break;
    }
  }
}

}  // namespace

LocalNorm local_norm(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask, Norm p) {
  LocalNorm norm;
  try {
    measure(Jacobian(layer, x, mask), layer, p, norm);
  } catch (const OverflowError&) {
    norm.status = "non-finite";
    return norm;
  }
  if (!std::isfinite(norm.estimate)) {
    norm.status = "non-finite";
  } else if (!norm.direction.isZero(0.0)) {
    norm.lower_bound = lower_bound_local_norm(layer, x, mask, p, norm.direction);
    // The estimate has no proof: where what is proved disagrees by more than rounding, say so.
    const bool close = norm.lower_bound <= norm.estimate * (1.0 + agreement) &&
                       norm.lower_bound >= norm.estimate * (1.0 - agreement);
    if (!close && norm.status == "converged") {
      norm.status = std::string("unproven");
    }
  }
  return norm;
}

}  // namespace lipsa
