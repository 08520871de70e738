/// \file
/// Curves through measured points, for sections of paper_tables. Private to lib/.
#pragma once

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace lipsa {

/// y ≈ slope x + intercept by least squares.
///
/// \test tests/experiment/paper_fits_test.cpp
struct LineFit {
  double slope = std::numeric_limits<double>::quiet_NaN();
  double intercept = std::numeric_limits<double>::quiet_NaN();
  /// R² = 1 − Σ(y − fit)²/Σ(y − ȳ)²; NaN with fewer than three points or equal y.
  double r_squared = std::numeric_limits<double>::quiet_NaN();
};

/// y ≈ factor xᵖ by least squares in y, not in log y, so that its R² compares with that of a line.
/// p is the best of [0, 4].
///
/// \test tests/experiment/paper_fits_test.cpp
struct PowerFit {
  double exponent = std::numeric_limits<double>::quiet_NaN();
  double factor = std::numeric_limits<double>::quiet_NaN();
  double r_squared = std::numeric_limits<double>::quiet_NaN();
};

/// The points need two different x.
LineFit fit_line(const std::vector<std::pair<double, double>>& points);

/// The points need x > 0.
PowerFit fit_power(const std::vector<std::pair<double, double>>& points);

}  // namespace lipsa
