/// \file
/// The row-wise softmax and its derivative, both in place.
#pragma once

#include "lipsa/core/types.hpp"

namespace lipsa {

/// Each row s of `scores` becomes p = exp(s − max s) / Σ exp(s − max s). A score of −∞ takes no
/// part, and a row of nothing else becomes zero.
///
/// \test tests/attention/softmax_test.cpp
void softmax_rows(MatrixRef scores);

/// ds becomes P ∘ (dS − (P ∘ dS) 1 1ᵀ): the derivative of softmax_rows at P, in direction dS.
/// Each row's Jacobian diag(p) − p pᵀ is symmetric, so this is its own adjoint; rows of the
/// result sum to zero.
void softmax_derivative(const ConstMatrixRef& p, MatrixRef ds);

}  // namespace lipsa
