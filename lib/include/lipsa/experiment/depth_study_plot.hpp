/// \file
/// Depth studies as pictures.
#pragma once

#include <string>

#include "lipsa/experiment/depth_study.hpp"

namespace lipsa {

/// A script for gnuplot that draws the test loss against the depth into STEM.svg and STEM.png
/// beside it: a mark a cell, a line through the means over seeds a kind of model, and the losses of
/// counted characters and pairs for comparison. Cells that diverged stand on the upper edge,
/// crossed. Empty when there are no cells.
///
/// \test tests/experiment/depth_study_plot_test.cpp
std::string depth_study_gnuplot(const DepthStudyResult& result,
                                const std::string& stem = "depth-study");

/// The same for attention-outputs.svg and attention-outputs.png: how what the attention layers give
/// is distributed, a panel a kind of model, of its shallowest cell of the first seed that did not
/// diverge. Empty when there is none.
///
/// \test tests/experiment/depth_study_plot_test.cpp
std::string attention_outputs_gnuplot(const DepthStudyResult& result);

}  // namespace lipsa
