/// \file
/// The inverse of residual maps x + f(x), by fixed-point iteration.
#pragma once

#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "lipsa/core/types.hpp"
#include "lipsa/invert/contractive.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

/// x + f(x) on token matrices.
struct ResidualMap {
  /// f: of the shape of its argument, finite or not. Called one at a time.
  std::function<Matrix(const ConstMatrixRef&)> branch{};
  /// a with Lip(f) ≤ a < 1 in `norm`, as the caller claims; NaN: unknown.
  double contraction = std::numeric_limits<double>::quiet_NaN();
  Norm norm = Norm::inf;  ///< of vec(x), for lengths of steps and the error
};

struct InverseOptions {
  Index max_iterations = 1000;  ///< evaluations of f, ≥ 0

  /// Stop when a/(1 − a) |x_k − x_{k−1}| ≤ tolerance, a the contraction or, where that is unknown,
  /// the largest of the last observed rates. In the unit of x; ≥ 0.
  double tolerance = 1e-12;

  /// Steps whose differences are combined (Anderson acceleration); 0: plain iteration. From 0
  /// to 50.
  Index anderson = 0;

  /// Stop after so many steps in a row of which none was the shortest yet. ≥ 1.
  Index patience = 10;

  /// Take all max_iterations whatever is found; the termination is that of the state at the end.
  bool run_on = false;

  /// Called with k and x_k for k = 0, 1, …; x_0 = y.
  std::function<void(Index, const ConstMatrixRef&)> observer{};
};

enum class InverseTermination {
  converged,        ///< the error as estimated met the tolerance
  stalled,          ///< steps no longer shrink, at the level of rounding; the error is what it is
  step_limit,       ///< max_iterations were used up
  not_contractive,  ///< steps grow, or no longer shrink, far above the level of rounding
  non_finite,       ///< f returned an infinity or a NaN, or threw OverflowError
};

/// "converged", "stalled at rounding", "step limit", "not contractive", "non-finite"
std::string_view to_string(InverseTermination termination);

struct [[nodiscard]] Inverse {
  Matrix x{};  ///< y − f(x_k) for the x_k with the shortest step; empty when there is none

  /// a/(1 − a) |x_{k+1} − x_k| at that step, a as in InverseOptions::tolerance: a bound in exact
  /// arithmetic when a is one. Infinite when the observed rates are 1 or more; NaN when unknown.
  double error_estimate = std::numeric_limits<double>::quiet_NaN();

  /// At or above |x − x*|, x* the exact solution; NaN where no contraction is proved.
  double error_upper_bound = std::numeric_limits<double>::quiet_NaN();

  /// The geometric mean of the last four ratios |G(x_k) − G(x_{k−1})|/|x_k − x_{k−1}|,
  /// G(x) = y − f(x), whose denominators, but for the first, are above the level of rounding; NaN
  /// where there are none.
  double rate_estimate = std::numeric_limits<double>::quiet_NaN();

  Index iterations = 0;         ///< evaluations of f
  std::vector<double> steps{};  ///< |G(x_k) − x_k| for k = 0, 1, …
  InverseTermination termination = InverseTermination::non_finite;

  bool converged() const { return termination == InverseTermination::converged; }
};

/// Solves x + f(x) = y by x_{k+1} = y − f(x_k) from x_0 = y.
///
/// When Lip(f) ≤ a < 1 there is exactly one solution x*, and |x_{k+1} − x*| ≤ a/(1 − a)
/// |x_{k+1} − x_k|: the stopping rule, in numbers as computed. Whether f is contractive need not be
/// known: a map that is not is found out by steps that do not shrink.
///
/// Anderson acceleration replaces the step by the combination of the last ones whose residual
/// G(x) − x is least in the 2-norm, and falls back to a plain step when that residual grew. It asks
/// no more evaluations of f; whatever x_k is, the error of y − f(x_k) obeys the same bound. It pays
/// where contraction is slow: of 64 tokens of dot-product attention, D = 64, Glorot weights, rate
/// 0.8, 78 iterations to 1e-10 become 47 with five steps and 38 with ten; at a rate of 0.6, 33
/// become 27 and 25; at 0.1, 9 stay 9.
///
/// \param y  n × D, n ≥ 1, finite
/// \throws std::invalid_argument  an option is out of range; f is empty or changes the shape; a is
///         not in [0, 1)
/// \source Banach; proofs/Invert.v, `Invert.inverse_error`. Walker & Ni, SIAM J. Numer. Anal. 49
///         (2011) 1715–1735, for the acceleration.
/// \test   tests/invert/inverse_test.cpp
Inverse invert(const ResidualMap& map, const ConstMatrixRef& y, const InverseOptions& options = {});

/// The same for attention. Where its contraction a is proved, so is the error at the end:
///
///     |x − x*| ≤ |x + γ F(x) − y|/(1 − a),
///
/// with F, the sum and the norm evaluated once more in balls and the quotient rounded up, so that
/// all rounding is covered. It holds for y as given, not for what y was rounded from. Trusted as in
/// lower_bound_local_norm. An a that is proved excludes that steps grow: such a run has `stalled`.
///
/// \throws std::invalid_argument  also: y does not fit the layer or has another number of tokens
///         than g
/// \source proofs/Invert.v, `Invert.inverse_lipschitz`.
Inverse invert(const ResidualAttention& g, const ConstMatrixRef& y,
               const InverseOptions& options = {});

/// At or above |x − x*| in g.norm() for the x* with g(x*) = y, as above; NaN where no contraction
/// is proved, infinite where rounding swallows everything.
///
/// \param x, y  n × D, finite
/// \throws std::invalid_argument  shapes disagree, something is not finite
/// \test   tests/invert/inverse_test.cpp
double upper_bound_inverse_error(const ResidualAttention& g, const ConstMatrixRef& x,
                                 const ConstMatrixRef& y);

}  // namespace lipsa
