/// \file
/// |J(X)|_p at given tokens, with what attains it and what is proved of it.
#pragma once

#include <limits>
#include <string>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

struct [[nodiscard]] LocalNorm {
  double estimate = std::numeric_limits<double>::quiet_NaN();  ///< |J(X)|_p as computed
  double residual = std::numeric_limits<double>::quiet_NaN();  ///< of p = 2; 0 for closed forms
  double lower_bound = 0.0;  ///< proven, see lower_bound_local_norm
  Vector direction{};        ///< v with |J v|_p ≥ lower_bound |v|_p
  /// "converged"; "unproven": the proved lower bound and the estimate differ by more than a
  /// thousandth; or how the iteration ended: "non-finite", …
  std::string status{};
};

/// p = 1 and inf in closed form, p = 2 by Lanczos to 1e-12, max-token by estimate_block_gain, whose
/// estimate is one from below.
///
/// \throws std::invalid_argument  as Jacobian, but for OverflowError, which is a status
/// \test   tests/search/measure_test.cpp
LocalNorm local_norm(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask, Norm p);

}  // namespace lipsa
