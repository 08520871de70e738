/// \file
/// Files of datasets/ that are built into the program.
#pragma once

#include <string_view>

#include "lipsa/experiment/depth_study.hpp"

namespace lipsa::cli {

/// papers/kim2021.csv.
std::string_view kim2021_facts();

/// reference/kim2021-fig4-small.
const DepthStudyFiles& recorded_figure_4();

/// reference/kim2021-table1-small.
const DepthStudyFiles& recorded_table_1();

}  // namespace lipsa::cli
