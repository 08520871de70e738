/// \file
/// How residual maps of attention are inverted, iteration by iteration, over a grid of
/// configurations: figure 3 of Kim, Papamakarios & Mnih.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/experiment/table.hpp"
#include "lipsa/invert/inverse.hpp"
#include "lipsa/invert/log_det.hpp"

namespace lipsa {

/// What is inverted. Lists span a grid; every combination is one configuration, in the order of the
/// fields here, the last fastest.
struct InversionSettings {
  std::vector<AttentionKind> attention{AttentionKind::l2, AttentionKind::dot};
  std::vector<double> contractions{0.5, 0.7, 0.9};  ///< c, each in (0, 1)
  std::vector<double> ranges{1.0};                  ///< r > 0

  /// Of g(X) = X + c F(X)/L: a word or an entry of the catalogue as in ContractiveOptions, or
  /// "none": L = 1.
  std::string divisor = "none";

  /// "identity", "glorot", "gaussian:SIGMA", or a file that read_layer_file takes, which sets its
  /// own D and H in place of `dim` and `heads`.
  std::string weights = "glorot";
  Mask::Kind mask = Mask::Kind::none;
  Index tokens = 64;
  Index dim = 64;
  Index heads = 8;

  /// Inputs of a configuration: the first token 0, the others uniform on (−r, r]. The same numbers,
  /// times r, for every configuration.
  Index batch = 128;
  Index iterations = 25;     ///< evaluations of F for each input, ≥ 1
  double tolerance = 1e-10;  ///< as in InverseOptions
  Index anderson = 0;        ///< likewise
  bool log_det = false;      ///< also log|det| of g at the first input of the batch
  std::uint64_t seed = 0;    ///< of weights, inputs and probes
};

/// One configuration and what was found.
struct InversionRow {
  AttentionKind attention = AttentionKind::l2;
  double contraction = 0.0;  ///< c
  double range = 0.0;        ///< r
  Index D = 0;
  Index H = 0;
  double gain = std::numeric_limits<double>::quiet_NaN();  ///< c/L
  /// Lip of c F/L in the norm of L; NaN when undivided.
  double contraction_upper_bound = std::numeric_limits<double>::quiet_NaN();

  /// For k = 0, …, iterations the largest |x_k − x| of all entries and inputs, x the input that was
  /// mapped to y: an estimate, as y is rounded. Infinite where it is not finite.
  std::vector<double> errors{};

  /// The largest over the inputs of Inverse::error_upper_bound and rate_estimate.
  double error_upper_bound = std::numeric_limits<double>::quiet_NaN();
  Norm norm = Norm::inf;  ///< of the two bounds
  double rate = std::numeric_limits<double>::quiet_NaN();
  LogDet log_det{};

  /// | status           | what was seen                                                          |
  /// |------------------|------------------------------------------------------------------------|
  /// | converged        | every input came back, to the tolerance or the level of rounding       |
  /// | converging       | not yet all, but the last half of the iterations halved the largest error |
  /// | not converging   | it did not                                                             |
  /// | not contractive  | the steps of some input no longer shrink                               |
  /// | another solution | every iteration came to rest, one away from its input: g maps both to y |
  /// | non-finite       | some input left the range of double                                    |
  std::string status{};
};

/// The configurations of the settings, with the weights they need.
///
/// \throws std::invalid_argument  a setting is empty or out of range, a bound does not hold for an
///         attention it is to divide
/// \throws std::runtime_error     a file is at fault
/// \test   tests/experiment/inversion_test.cpp
class Inversion {
 public:
  explicit Inversion(InversionSettings settings);

  const InversionSettings& settings() const { return settings_; }
  Index size() const { return static_cast<Index>(grid_.size()); }
  const std::vector<std::string>& notes() const { return notes_; }  ///< about the files read

  /// Configuration k with nothing found yet.
  const InversionRow& configuration(Index k) const { return grid_.at(static_cast<std::size_t>(k)); }

  /// Inverts the batch of configuration k. Does not depend on the rest of the grid nor on the
  /// number of threads.
  InversionRow run(Index k) const;

 private:
  InversionSettings settings_;
  std::vector<MultiHead> layers_{};  ///< one an attention
  std::vector<InversionRow> grid_{};
  std::vector<std::string> notes_{};

  ResidualAttention map_of(const InversionRow& row) const;
};

/// One row a configuration and iteration: its settings, iteration, reconstruction_error_estimate,
/// and what holds of the configuration: rate_estimate, upper_bound_contraction, log_det_…, status;
/// upper_bound_error, of what came out in the end, in the last iteration's row alone.
Table inversion_table(const Inversion& inversion, const std::vector<InversionRow>& rows);

/// One row a configuration, with the error after some iterations: reconstruction_error_estimate_5
/// after five.
Table inversion_summary(const Inversion& inversion, const std::vector<InversionRow>& rows);

/// The result as JSON: version, settings, rows as in inversion_table.
std::string inversion_json(const Inversion& inversion, const std::vector<InversionRow>& rows);

}  // namespace lipsa
