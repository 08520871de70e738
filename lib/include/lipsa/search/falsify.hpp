/// \file
/// Trying to violate the bounds of the catalogue, at random and at adversarial layers and tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lipsa/bounds/catalog.hpp"
#include "lipsa/model/witness.hpp"

namespace lipsa {

struct FalsifyOptions {
  /// Names of catalogue entries; empty: all that are not known to be false.
  std::vector<std::string> bounds{};
  std::uint64_t seed = 0;
  /// What bounds are multiplied by before they are compared: below one it plants a fault. > 0.
  double shrink = 1.0;
};

/// What happened to one entry.
struct FalsifyTally {
  std::string name{};
  std::int64_t trials = 0;             ///< in which it held and gave a finite number
  double worst_ratio = 0.0;            ///< largest measured norm/bound at n ≥ 2, an estimate
  std::int64_t worst_trial = -1;       ///< where that was, the first
  double worst_ratio_one_token = 0.0;  ///< the same at n = 1, where attention is linear and most
                                       ///< bounds are attained
  std::int64_t worst_trial_one_token = -1;
  double worst() const { return std::max(worst_ratio, worst_ratio_one_token); }  ///< > 1: violated
};

/// A layer and tokens, one of the settings in which bounds are asked for, and what was measured.
struct FalsifyTrial {
  MultiHead layer{};
  Mask mask = Mask::none();
  Matrix x{};       ///< where |J| is measured
  Matrix centre{};  ///< within `around` of x
  double around = 0.0;
  double radius = std::numeric_limits<double>::infinity();
};

/// Trial k of a seed: shapes up to 8 tokens, 5 features, 3 heads; weights over six decades each, or
/// zero, or equal queries and keys; biases; all masks; tokens random, equal, in two groups, with
/// one far away, near those the theory calls steep, or at the end of a short ascent. A function of
/// (seed, k) and the kind alone.
FalsifyTrial falsify_trial(AttentionKind kind, std::uint64_t seed, std::int64_t k);

/// The trials [first, first + count), each tried against every entry named, of each kind of
/// attention in turn. Tallies come in the catalogue's order; merged by maximum, they are those of
/// the whole range, whatever the pieces and the number of threads.
///
/// A trial counts for an entry when its hypotheses hold there and its value is finite and not
/// zero. The norm is that of the dense Jacobian, with a relative error below measurement_error.
///
/// \throws std::invalid_argument  unknown name, count < 0, shrink ≤ 0
/// \test   tests/search/falsify_test.cpp, tests/property/bounds_property.cpp
std::vector<FalsifyTally> falsify(const FalsifyOptions& options, std::int64_t first,
                                  std::int64_t count);

/// Adds the tallies of other trials to these; both of the same entries.
void merge(std::vector<FalsifyTally>& tallies, const std::vector<FalsifyTally>& others);

/// A ratio above 1 by no more than this may be rounding of the measurement.
inline constexpr double measurement_error = 1e-9;

/// Fills in what follows from the layer and x: the radius, the centre x − step and its distance.
void complete(FalsifyTrial& trial, const Matrix& step);

/// Measured norm/bound of one trial, an estimate; NaN when the entry has nothing to compare there.
double trial_ratio(const CatalogEntry& entry, const FalsifyTrial& trial);

/// The claim that trial k violates the entry: a direction at x with |J v| > value |v|, or, for a
/// bound of pairs, the two points; none when it does not.
std::optional<Witness> violation(const CatalogEntry& entry, const FalsifyTrial& trial);

}  // namespace lipsa
