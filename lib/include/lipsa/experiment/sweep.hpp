/// \file
/// Bounds from above and from below over a grid of configurations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/experiment/table.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

/// What a sweep computes. Lists span a grid; every combination is one configuration, in the order
/// of the fields here, the last fastest.
struct SweepSettings {
  std::vector<AttentionKind> attention{AttentionKind::l2};
  std::vector<Mask::Kind> masks{Mask::Kind::none};
  std::vector<Norm> norms{Norm::inf};
  std::vector<Index> dims{1};
  std::vector<Index> heads{1};
  std::vector<Index> tokens{};
  std::vector<double> radii{std::numeric_limits<double>::infinity()};

  /// "identity", "glorot", "gaussian:SIGMA", or a file that read_layer_file takes; a file sets its
  /// own D and H, in place of `dims` and `heads`.
  std::string weights = "identity";

  /// A file that read_tokens takes. With it the norm is computed at those tokens, in place of the
  /// ascent; `tokens` must be empty and `radii` at its default.
  std::optional<std::filesystem::path> input{};

  /// Names of catalogue entries to set beside it; empty: all that speak of a configuration. The
  /// tightness is that of the smallest of them.
  std::vector<std::string> bounds{};

  Index restarts = 50;
  Index steps = 400;
  double learning_rate = 0.1;
  std::uint64_t seed = 0;
};

/// A bound of the catalogue in one configuration.
struct SweepBound {
  std::string name{};
  bool refuted = false;                                     ///< shown, and trusted for nothing
  double value = std::numeric_limits<double>::quiet_NaN();  ///< NaN where its hypotheses fail
};

/// One configuration and what was found.
struct SweepRow {
  AttentionKind attention = AttentionKind::l2;
  Mask::Kind mask = Mask::Kind::none;
  Norm norm = Norm::inf;
  Index n = 0;
  Index D = 0;
  Index H = 0;
  Index d = 0;
  double radius = std::numeric_limits<double>::infinity();

  double local_norm = std::numeric_limits<double>::quiet_NaN();  ///< estimate; with input only
  double residual = std::numeric_limits<double>::quiet_NaN();    ///< of it

  std::vector<double> lower_bounds{};  ///< the five best starts, highest first; one with input
  double lower_bound_median = std::numeric_limits<double>::quiet_NaN();
  std::string lower_bound_source{};
  double lower_bound_witness = std::numeric_limits<double>::quiet_NaN();
  std::string witness{};

  std::vector<SweepBound>
      bounds{};          ///< every entry of the catalogue that speaks of this configuration
  std::string status{};  ///< "converged", or how the best start or the norm ended

  bool settled() const { return status == "converged"; }

  /// Smallest upper bound that holds / highest lower bound, rounded up: what that bound is above
  /// Lip, at most. NaN without either, inf when no finite bound exists.
  double tightness() const;
};

/// The configurations of the settings, with the weights and tokens they need.
///
/// \throws std::invalid_argument  a list is empty or out of range, options contradict each other
/// \throws std::runtime_error     a file is at fault
/// \test   tests/experiment/sweep_test.cpp
class Sweep {
 public:
  explicit Sweep(SweepSettings settings);

  const SweepSettings& settings() const { return settings_; }
  Index size() const { return static_cast<Index>(grid_.size()); }
  const std::vector<std::string>& notes() const { return notes_; }  ///< about the files read

  /// Everything that decides the rows, as JSON with the version: equal texts, equal results. Files
  /// count by their name and their content.
  std::string identity() const;

  /// Configuration k with nothing found yet.
  const SweepRow& configuration(Index k) const { return grid_.at(static_cast<std::size_t>(k)); }

  /// Computes configuration k. A row depends on its own configuration and the settings of the
  /// ascent, not on the rest of the grid nor on the number of threads.
  SweepRow run(Index k) const;

 private:
  SweepSettings settings_;
  std::vector<SweepRow> grid_{};
  std::vector<std::string> notes_{};
  std::vector<MultiHead> file_layers_{};  ///< of a weights file, one an attention
  std::optional<Matrix> input_{};

  MultiHead layer_of(const SweepRow& row) const;
};

/// The rows as a table: the columns of SweepRow, one upper_bound_NAME (or refuted_NAME) a
/// catalogue entry that occurs, tightness_upper_bound, status.
Table sweep_table(const Sweep& sweep, const std::vector<SweepRow>& rows);

/// How the lower bounds of one curve grow with the radius: the slope of log(lower bound) over
/// log(radius), by least squares over the upper half of the radii on a log scale, where growth
/// has become a power.
struct GrowthFit {
  std::string curve{};  ///< what stays fixed: "dot, norm inf, n=3, D=1, H=1"
  double radius_from = 0.0;
  double radius_to = 0.0;
  double slope = std::numeric_limits<double>::quiet_NaN();  ///< estimate, lower_bound
  double slope_witness =
      std::numeric_limits<double>::quiet_NaN();  ///< estimate, lower_bound_witness
};

/// One fit a curve with at least three finite radii in its upper half.
std::vector<GrowthFit> fit_growth(const std::vector<SweepRow>& rows);

/// The result as JSON: version, settings, seed, rows as in the table, fits.
std::string sweep_json(const Sweep& sweep, const std::vector<SweepRow>& rows);

}  // namespace lipsa
