/// \file
/// Inversions as a picture.
#pragma once

#include <string>
#include <vector>

#include "lipsa/experiment/inversion.hpp"

namespace lipsa {

/// A script for gnuplot that draws the reconstruction error against the iteration, on a log axis,
/// into inversion.svg and inversion.png beside it: a panel an attention, a mark a range, a dash a
/// contraction. Errors of 0 have no place on the axis and are left out. Empty when nothing is left.
///
/// \test tests/experiment/inversion_plot_test.cpp
std::string inversion_gnuplot(const Inversion& inversion, const std::vector<InversionRow>& rows);

}  // namespace lipsa
