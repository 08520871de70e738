/// \file
/// Maximising the local Lipschitz constant |J(X)|_p over X: lower bounds of the Lipschitz constant.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

struct AscentOptions {
  Norm norm = Norm::inf;

  /// Random starts: tokens uniform on (−c, c] in each feature, c uniform on (0, 10] for each start,
  /// or on (0, radius] in a ball. ≥ 0.
  Index restarts = 50;

  /// Ascent steps a start may take. ≥ 1.
  Index steps = 400;

  /// Step of Adam, in the unit of X (or of radius/10 in a ball). > 0.
  double learning_rate = 0.1;

  /// Also start from analytic_starts, and report what they reach by themselves.
  bool analytic = true;

  /// Tokens are kept within ‖x_i‖₂ ≤ radius, by projection. > 0.
  double radius = std::numeric_limits<double>::infinity();

  /// A start stops when `patience` steps in a row improved its best value by less than
  /// relative_tolerance · value, and so did those with each of seven ever smaller steps.
  double relative_tolerance = 1e-9;
  Index patience = 20;

  /// Names of the random streams: a start depends on these and on its own number only.
  std::uint64_t seed = 0;
  std::uint64_t configuration = 0;
};

enum class AscentTermination {
  converged,   ///< see relative_tolerance
  step_limit,  ///< `steps` were used up; more might find more
  non_finite,  ///< nothing finite was seen; the lower bound is 0
  unproven,    ///< the rounding error swallows the value found; the lower bound is 0
};

std::string_view to_string(AscentTermination termination);

/// Where one start ended.
struct LocalMaximum {
  /// A proven lower bound of |J(x)|_p, see lower_bound_local_norm.
  double lower_bound = 0.0;
  /// |J(x)|_p as computed.
  double estimate = std::numeric_limits<double>::quiet_NaN();
  std::string source{};  ///< "restart K" or the name of an analytic start
  Matrix x{};            ///< n × D
  Vector direction{};    ///< v with |J(x) v|_p / |v|_p ≥ lower_bound
  Index steps = 0;
  AscentTermination termination = AscentTermination::non_finite;
};

struct [[nodiscard]] Ascent {
  std::vector<LocalMaximum> maxima{};  ///< of all starts, the highest lower bound first
  LocalMaximum witness{};              ///< the best analytic start as it is, no step taken
  double median = 0.0;                 ///< of the lower bounds of all starts

  /// The best of all, the witness included.
  const LocalMaximum& best() const;
};

/// Maximises |J(X)|_p over X by Adam from random and analytic starts, with exact gradients: at the
/// row, the column or the singular pair that attains the norm, the gradient is that of ⟨u, J(X) v⟩
/// (envelope theorem). Starts run in parallel; each is a function of its own number and the
/// options.
///
/// For p = inf the rows of one token suffice without a mask, by permutation symmetry, and an
/// ascent step is O(n); see probe_token. For p = 2 the singular pair follows X by two power steps
/// an ascent step, and is computed to the end once the ascent is over.
///
/// What is found is a lower bound of the Lipschitz constant on the ball, or everywhere; how far
/// below is not known from the ascent.
///
/// \throws std::invalid_argument  an option out of range, an invalid layer
/// \source Kim et al. 2021, section 5.1 and appendix; Kingma & Ba 2015 for Adam.
/// \test   tests/search/ascent_test.cpp
Ascent maximise_local_norm(const MultiHead& layer, const Mask& mask, Index n,
                           const AscentOptions& options = {});

}  // namespace lipsa
