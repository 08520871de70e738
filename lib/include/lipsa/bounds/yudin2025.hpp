/// \file
/// The bound of dot-product attention at given tokens of Yudin, Gaponov, Kudriashov & Rakhuba 2025
/// (arXiv 2507.07814).
#pragma once

#include "lipsa/bounds/up_rounded.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

/// |J(X)|_2 ≤ v (|P|_2 + 2 |X|_2² a max_i g₁(P_i)), one head without biases, any mask; see
/// upper_bound_softmax_g1. Arguments from above.
///
/// \source Theorem 3.
/// \test   tests/bounds/point_bounds_test.cpp
UpRounded yudin2025_point(const UpRounded& a, const UpRounded& v, const UpRounded& p,
                          const UpRounded& x, const UpRounded& g1);

/// The same on |X' − X|_F ≤ ε with |P|_2 ≤ √n and g₁ ≤ ½: v (√n + a (|X|_2 + ε)²).
///
/// \source Theorem 3, its terms bounded over the ball here.
/// \test   tests/bounds/point_bounds_test.cpp
UpRounded yudin2025_ball(const UpRounded& a, const UpRounded& v, const UpRounded& x,
                         const UpRounded& around, Index tokens);

}  // namespace lipsa
