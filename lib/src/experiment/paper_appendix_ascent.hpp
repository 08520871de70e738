/// \file
/// The appendix of Kim, Papamakarios & Mnih on ascent: what is concluded from how it grows. Private
/// to lib/.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "experiment/paper_fits.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/experiment/report.hpp"

namespace lipsa {

/// |J|_2 of L2 attention with D = H = 1 and unit weights.
struct TwoNormPoint {
  Index n = 0;
  std::vector<double> lower_bounds{};  ///< five best of random and analytic starts, highest first
  double median = std::numeric_limits<double>::quiet_NaN();    ///< of all starts
  double analytic = std::numeric_limits<double>::quiet_NaN();  ///< lower bound, no step taken
  double kim = std::numeric_limits<double>::quiet_NaN();       ///< kim2021_2
  double best_upper = std::numeric_limits<double>::quiet_NaN();
  std::string best_name{};
  std::string status{};

  double best() const;  ///< the highest lower bound
};

/// What curve the best lower bounds follow over n.
struct TwoNormGrowth {
  LineFit logarithm{};     ///< a log n + b
  LineFit lambert{};       ///< a W((n−1)/e) + b, which is log n up to log log n
  PowerFit power{};        ///< c nᵖ
  PowerFit power_early{};  ///< the same through the lower half of the points
  PowerFit power_late{};   ///< and the upper
};

TwoNormGrowth two_norm_growth(const std::vector<TwoNormPoint>& points);

/// Whether the exponent of a power falls by a tenth or more from the lower half of the points to
/// the upper: of a power it stays, of a logarithm it falls.
bool grows_slower_than_powers(const TwoNormGrowth& growth);

/// The best lower bounds of |J|_inf after so many steps, with tokens free to go anywhere.
struct DivergencePoint {
  Index steps = 0;
  double dot = 0.0;
  std::string dot_status{};
  double l2 = 0.0;
  std::string l2_status{};
  double l2_upper = std::numeric_limits<double>::quiet_NaN();  ///< sharp_l2_inf
};

/// Whether the lower bounds for dot-product attention rise at every point, the last doubling of the
/// steps by a factor of 1.5 at least, and no ascent has come to rest at the end.
bool diverges(const std::vector<DivergencePoint>& points);

std::string appendix_ascent_verdict(const std::vector<TwoNormPoint>& two_norm,
                                    const std::vector<DivergencePoint>& divergence);

std::vector<Agreement> appendix_ascent_agreements(const std::vector<PaperFact>& facts,
                                                  const std::vector<TwoNormPoint>& two_norm,
                                                  const std::vector<DivergencePoint>& divergence);

}  // namespace lipsa
