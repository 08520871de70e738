/// \file
/// Lower bounds of |J(X)|_p that hold with the rounding of their own computation.
#pragma once

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

/// A number below |J(X) v|_p / |v|_p, hence below the operator norm |J(X)|_p, hence below the
/// Lipschitz constant of any set in whose interior X lies.
///
/// The product J(X) v is computed afresh, sharing no code with Jacobian: every operation carries
/// a bound on its error (balls in double precision), with weights, X and v taken as exact. What
/// is trusted is IEEE arithmetic and that std::exp errs by at most four units in the last place.
/// Costs n D H (2d + d_v) + r n H (2d + 2d_v) operations, each some ten times a multiply-add, for r
/// output tokens; memory n H (2d + 2d_v). Normalising rows for cosine adds n H (2d² + d_v²).
///
/// It is as good as v: the right singular vector for p = 2, the signs of the largest row for
/// p = inf, the unit vector of the largest column for p = 1.
///
/// \param v        of length n D, not zero
/// \param outputs  tokens whose rows of J take part; fewer are cheaper and give a smaller bound
/// \return         at least 0, which is also returned when the error swallows the value
/// \throws std::invalid_argument  as Jacobian; v of another length, not finite or zero
/// \test   tests/attention/local_norm_test.cpp
double lower_bound_local_norm(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask,
                              Norm p, const ConstVectorRef& v, TokenRange outputs = {});

}  // namespace lipsa
