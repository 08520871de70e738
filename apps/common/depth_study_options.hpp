/// \file
/// The options of `lipsa lm depth-study`, for all that run one.
#pragma once

#include <boost/program_options.hpp>
#include <string>

#include "common/text_options.hpp"
#include "lipsa/experiment/depth_study.hpp"

namespace lipsa::cli {

struct DepthStudyOptions {
  TextOptions text{};
  std::string preset{};
  std::string out = "depth-study";
  DepthStudy study{};
  bool resume = false;
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

boost::program_options::options_description describe_depth_study(DepthStudyOptions& o);

/// Fills o.study: the grid and what its cells have in common.
/// \throws std::invalid_argument  naming an option that is out of range
void read_depth_study_options(DepthStudyOptions& o,
                              const boost::program_options::variables_map& values);

/// The study of a preset, without a folder.
/// \throws std::invalid_argument  no such preset
DepthStudy depth_study_of_preset(const std::string& preset);

}  // namespace lipsa::cli
