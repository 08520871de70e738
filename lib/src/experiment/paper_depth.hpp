/// \file
/// Table 1 and figure 4 of Kim, Papamakarios & Mnih: what the sections say, as functions of a
/// study. Private to lib/.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "experiment/paper_sections.hpp"

namespace lipsa {

/// A row a model and depth, over the seeds.
Table depth_loss_table(const DepthStudyResult& result);

/// Whether ours trains where the paper's does. Losses are of another text and smaller models, and
/// do not compare.
std::vector<Agreement> depth_agreements(const std::vector<PaperFact>& facts,
                                        const DepthStudyResult& result);

/// The claims of figure 4 about which model is better, each at all depths where both trained.
std::vector<Agreement> figure_4_agreements(const std::vector<PaperFact>& facts,
                                           const DepthStudyResult& result);

/// Claim by claim.
std::string figure_4_verdict(const std::vector<Agreement>& agreements);

std::string depth_verdict(const DepthStudyResult& result);

/// How many times the variance of the outputs of the first tied L2 attention those of the first
/// dot-product attention have, at the least depth at which a model of each trained; means over
/// seeds.
struct OutputVariance {
  Index depth = 0;  ///< 0: there is none
  double ratio = std::numeric_limits<double>::quiet_NaN();
  Index deeper = 0;  ///< of greater depths at which both trained, with the ratios there
  double least_deeper = std::numeric_limits<double>::quiet_NaN();
  double most_deeper = std::numeric_limits<double>::quiet_NaN();
};

OutputVariance output_variance(const DepthStudyResult& result);

std::string output_verdict(const OutputVariance& found);

}  // namespace lipsa
