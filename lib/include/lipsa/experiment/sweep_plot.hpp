/// \file
/// A sweep as a picture.
#pragma once

#include <string>
#include <vector>

#include "lipsa/experiment/sweep.hpp"

namespace lipsa {

/// A script for gnuplot that draws upper and lower curves, one group a curve, on log axes, into
/// sweep.svg and sweep.png beside it. Empty when the rows span no axis (one point).
///
/// \test tests/experiment/sweep_plot_test.cpp
std::string sweep_gnuplot(const std::vector<SweepRow>& rows);

}  // namespace lipsa
