/// \file
/// Every bound of the catalogue for one layer, beside what is measured of it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/bounds/bound.hpp"
#include "lipsa/bounds/normalisation.hpp"
#include "lipsa/experiment/table.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

/// A layer and the domain in question, as BoundSetting has it.
struct BoundQuestion {
  MultiHead layer{};
  Mask mask = Mask::none();
  Norm norm = Norm::two;
  Index tokens = 0;  ///< n ≥ 1; with x: its rows
  /// Of the ball of tokens. With x and left infinite: the longest token of x, and `around` more,
  /// rounded up.
  double radius = std::numeric_limits<double>::infinity();
  std::optional<Matrix> x{};
  double around = 0.0;
  /// Random starts of the ascent that finds a lower bound where no x is given; 0: none, and no
  /// lower bound.
  Index restarts = 20;
  std::uint64_t seed = 0;
  bool certify = false;  ///< also evaluate in ball arithmetic what can be
  /// Whose bounds: of attention, with |J| measured; of its softmax or of `normalisation`, without.
  Subject subject = Subject::attention;
  std::optional<Normalisation> normalisation{};
};

struct BoundAnswer {
  double radius = std::numeric_limits<double>::infinity();       ///< that bounds on a ball took
  double local_norm = std::numeric_limits<double>::quiet_NaN();  ///< |J(x)|, estimate; with x
  double residual = std::numeric_limits<double>::quiet_NaN();    ///< of it
  double lower_bound = 0.0;          ///< proven: |J| at x, or at the best tokens found
  std::string lower_bound_source{};  ///< "x", "restart 7", an analytic start; empty: none
  std::string status{};             ///< how the measurement ended: "converged", …, "not measured"
  std::vector<Bound> bounds{};      ///< those that hold by value, the others in catalogue order
  std::vector<double> certified{};  ///< upper bounds in ball arithmetic, NaN where there are none
};

/// \throws std::invalid_argument  as CatalogEntry::evaluate
/// \test   tests/experiment/bound_table_test.cpp
BoundAnswer answer(const BoundQuestion& question);

/// One row a bound: bound, upper_bound and its log10, certified_upper_bound, ratio to the lower
/// bound, the value of a refuted formula, domain, kind, status ("holds", "refuted: …", or the
/// hypothesis that fails), source.
Table bound_table(const BoundAnswer& answer);

/// A transformer block around the layer.
enum class BlockKind {
  residual,  ///< x + f(x)
  pre_norm,  ///< x + f(N(x))
  post_norm  ///< N(x + f(x))
};

/// The constant of every component of the block and of the whole, by the best bound for the
/// attention in the ball that reaches it: that of the question, or for pre_norm the one N maps
/// into. One row a component: component, bound, upper_bound, log10_upper_bound, status.
///
/// \throws std::invalid_argument  as CatalogEntry::evaluate; D_out ≠ D; the width of N is not D
/// \test   tests/experiment/bound_table_test.cpp
Table block_table(const BoundQuestion& question, BlockKind block, const Normalisation& norm);

}  // namespace lipsa
