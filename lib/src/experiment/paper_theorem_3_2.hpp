/// \file
/// Theorem 3.2 of Kim, Papamakarios & Mnih: what is concluded from bounds and measured norms.
/// Private to lib/.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lipsa/core/types.hpp"
#include "lipsa/experiment/report.hpp"
#include "lipsa/linalg/norms.hpp"
#include "lipsa/search/certificate.hpp"

namespace lipsa {

/// Bounds of one layer of L2 attention, and the best lower bound of an ascent.
struct L2Bounds {
  std::string weights{};
  Norm norm = Norm::inf;
  Index n = 0;
  Index D = 0;
  Index H = 0;
  double lower_bound = 0.0;
  double published = std::numeric_limits<double>::quiet_NaN();  ///< kim2021_inf or kim2021_2
  double printed = std::numeric_limits<double>::quiet_NaN();    ///< kim2021_2_printed; p = 2 only
  double sharp = std::numeric_limits<double>::quiet_NaN();      ///< sharp_l2_inf; p = inf only
  double best = std::numeric_limits<double>::quiet_NaN();       ///< smallest of the catalogue
  std::string best_name{};
  std::string status{};
};

/// A layer and tokens that violate the printed formula of the 2-norm, and what verify() says.
struct L2Violation {
  std::string found_by{};
  Index n = 0;
  Index D = 0;
  Index H = 0;
  double printed = std::numeric_limits<double>::quiet_NaN();
  double corrected = std::numeric_limits<double>::quiet_NaN();
  Verdict verdict{};
};

/// Whether verify() proved a ratio above the printed formula.
bool is_violated(const L2Violation& violation);

/// Whether the corrected formula lies above the certified ratio.
bool correction_holds(const L2Violation& violation);

std::string theorem_3_2_verdict(const std::vector<L2Bounds>& rows,
                                const std::vector<L2Violation>& violations);

/// \param shift  the least and the largest W(n/e) − W((n−1)/e) over the n looked at
std::vector<Agreement> theorem_3_2_agreements(const std::vector<PaperFact>& facts,
                                              const std::vector<L2Bounds>& rows,
                                              const std::vector<L2Violation>& violations,
                                              std::pair<double, double> shift);

}  // namespace lipsa
