/// \file
/// Errors against the iteration, a panel an attention: what pictures of inversions have in common.
/// Private to lib/.
#pragma once

#include <string>
#include <vector>

#include "lipsa/experiment/inversion.hpp"

namespace lipsa {

struct InversionCurves {
  std::string data{};   ///< blocks of numbers and the axes, for gnuplot; empty: nothing to draw
  std::string plots{};  ///< the panels side by side, once a terminal is set
};

/// What the picture is of: a panel, dash and mark keep their place when a curve is missing.
struct InversionPanels {
  std::vector<AttentionKind> attention{};
  std::vector<double> contractions{};
  std::vector<double> ranges{};
  Index iterations = 0;
  std::string divisor = "none";  ///< as in InversionSettings
  std::string error{};           ///< what the axis is of
};

/// Curves of the errors above 0 and up to 1e6: a map that explodes would flatten all others.
InversionCurves inversion_curves(const InversionPanels& panels,
                                 const std::vector<InversionRow>& rows);

}  // namespace lipsa
