/// \file
/// Every table and figure of Kim, Papamakarios & Mnih, ICML 2021, computed again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lipsa/experiment/depth_study.hpp"
#include "lipsa/experiment/report.hpp"

namespace lipsa {

/// Language models by depth, and how they came about or why there are none: sentences.
struct PaperStudy {
  std::optional<DepthStudyResult> result{};
  std::string origin{};
  std::string option{};  ///< of `lipsa paper-tables`, which names it
};

struct PaperTableOptions {
  bool full = false;  ///< the sizes of the paper, in hours, instead of sizes that take minutes
  std::uint64_t seed = 0;
  std::vector<PaperFact> facts{};  ///< of datasets/papers/kim2021.csv
  /// Layers of checkpoints to show beside random ones, read as dot-product attention.
  /// One that cannot be is a std::runtime_error of theorem-3.1.
  std::vector<std::filesystem::path> weights{};
  PaperStudy shallow_study{};  ///< of figure 4
  PaperStudy depth_study{};    ///< of table 1 and the variance of outputs
};

/// A section that can be computed.
struct PaperTable {
  std::string_view name;   ///< "theorem-3.1"
  std::string_view title;  ///< one line
  ReportSection (*compute)(const PaperTableOptions& options);
};

/// | name            | what                                                                     |
/// |-----------------|--------------------------------------------------------------------------|
/// | theorem-3.1     | growth of the dot-product Jacobian, p = 1, 2, inf; a proved counterexample |
/// | theorem-3.2     | both bounds of L2 attention against measured norms; the printed 2-norm refuted |
/// | figure-2        | tightness of the infinity bound, with the sharp constant                  |
/// | appendix-ascent | ascent on |J|_2 of L2 attention; ascent on dot-product attention diverges  |
/// | figure-3        | invertibility of X + c F(X), and the grid of its appendix                 |
/// | figure-4        | test loss of five kinds of language models of few layers                  |
/// | table-1         | test loss by depth at a fixed rate                                        |
/// | output-variance | what trained attention layers give                                        |
/// | layer-norm      | the constant of LayerNorm against measured                                |
/// | all-bounds      | every bound of the catalogue on common work                               |
///
/// In this order. Same options, same build: same bytes, whatever the number of threads.
///
/// \test tests/experiment/paper_tables_test.cpp
const std::vector<PaperTable>& paper_tables();

/// The facts of a place: "Figure 2".
std::vector<PaperFact> facts_at(const PaperTableOptions& options, std::string_view place);

}  // namespace lipsa
