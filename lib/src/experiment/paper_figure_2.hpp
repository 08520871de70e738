/// \file
/// Figure 2 of Kim, Papamakarios & Mnih: what is concluded from bounds and ascents. Private to
/// lib/.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "experiment/paper_fits.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/experiment/report.hpp"

namespace lipsa {

/// One n of the figure: L2 attention with D = H = 1 and unit weights, infinity norm.
struct TightnessPoint {
  Index n = 0;
  double published = std::numeric_limits<double>::quiet_NaN();  ///< kim2021_inf, upper bound
  double sharp = std::numeric_limits<double>::quiet_NaN();      ///< sharp_l2_inf, upper bound
  std::vector<double> lower_bounds{};  ///< five best of random and analytic starts, highest first
  double random_lower_bound = 0.0;     ///< best of as many random starts alone
  double analytic = 0.0;               ///< lower bound at the analytic tokens as they are
  std::string status{};

  double best() const { return lower_bounds.empty() ? 0.0 : lower_bounds.front(); }
};

/// The figure in numbers, over log n.
struct TightnessSummary {
  LineFit published{};
  LineFit sharp{};
  LineFit lower{};                     ///< of the best lower bounds
  std::pair<double, double> offset{};  ///< least and largest published − best
  std::pair<double, double> share{};  ///< least and largest (published − sharp)/(published − best)
  std::pair<double, double> share_random{};  ///< with random starts alone
  double largest_ratio = 0.0;                ///< of sharp/best
  bool ordered = false;                      ///< lower ≤ sharp ≤ published everywhere
};

TightnessSummary tightness_summary(const std::vector<TightnessPoint>& points);

std::string figure_2_verdict(const TightnessSummary& summary);

/// \param restarts  random starts an n
std::vector<Agreement> figure_2_agreements(const std::vector<PaperFact>& facts,
                                           const std::vector<TightnessPoint>& points,
                                           Index restarts);

}  // namespace lipsa
