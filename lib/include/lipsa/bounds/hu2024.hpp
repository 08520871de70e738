/// \file
/// The bound of dot-product attention around given tokens of Hu et al., "SpecFormer", ECCV 2024.
#pragma once

#include "lipsa/bounds/up_rounded.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

/// n (n + 1) (|X|_F + δ)² v a + n v on |X' − X|_F ≤ δ, one head without biases. As printed a is
/// |W_Q|_2 |W_K|_2, which is no bound for scales above one; it holds with a = |A|_2, and is very
/// loose. Arguments from above.
///
/// \source Theorem 4.3; the text could not be compared letter by letter.
/// \test   tests/bounds/point_bounds_test.cpp
UpRounded hu2024_specformer(const UpRounded& a, const UpRounded& v, const UpRounded& x_frobenius,
                            const UpRounded& around, Index tokens);

}  // namespace lipsa
