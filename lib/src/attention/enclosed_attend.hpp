/// \file
/// Self-attention with a bound on the error of every entry. Private to lib/.
#pragma once

#include "attention/ball_features.hpp"
#include "lipsa/attention/mask.hpp"

namespace lipsa {

/// Balls around F(X) in real numbers, n × D_out, with weights and X taken as exact and 1/√d or the
/// named scale as s; a radius is infinite where nothing is known. Trusted as in
/// lower_bound_local_norm: IEEE arithmetic, and std::exp to four units in the last place. Costs n D
/// H (2d + d_v) + n² H (d + d_v) operations, each some ten times a multiply-add.
///
/// \param layer  valid
/// \param x      n × D, n ≥ 1, finite
/// \param mask   for any number of tokens or n
/// \test  tests/attention/enclosed_attend_test.cpp
Balls enclosed_attend(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask);

}  // namespace lipsa
