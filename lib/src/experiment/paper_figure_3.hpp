/// \file
/// Figure 3 of Kim, Papamakarios & Mnih: what the section says, as functions of what was found.
/// Private to lib/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiment/paper_sections.hpp"
#include "lipsa/experiment/inversion.hpp"

namespace lipsa {

struct Figure3Sizes {
  Index tokens = 64;
  Index dim = 64;
  Index heads = 8;
  Index batch = 128;
  Index iterations = 25;
  std::vector<double> contractions{0.5, 0.7, 0.9};
  std::vector<double> ranges{1.0, 3.0, 10.0};
  std::vector<Index> grid{16, 32, 64};  ///< n and D of the appendix
  Index grid_batch = 32;
  Index draws = 5;  ///< of weights and inputs: seeds from the first on
};

Figure3Sizes figure_3_sizes(bool full);

/// An inversion with those of its settings that its row does not have.
struct Figure3Row {
  Index n = 0;
  Index batch = 0;
  std::string divisor = "none";
  std::string weights = "glorot";
  std::uint64_t seed = 0;
  InversionRow found{};
};

struct Figure3Result {
  std::vector<Figure3Row> undivided{};  ///< the figure, draw after draw
  std::vector<Figure3Row> grid{};       ///< its appendix
  std::vector<Figure3Row> trained{};    ///< its appendix: layers of files
  std::vector<Figure3Row> divided{};    ///< contractive
};

Figure3Result compute_figure_3(const Figure3Sizes& sizes, std::uint64_t seed,
                               const std::vector<std::filesystem::path>& weights = {});

/// Every input came back, or is on its way.
bool inverts(const Figure3Row& row);

Table figure_3_table(const std::vector<Figure3Row>& rows);

/// Two panels in figure-3.svg, of the first draw; errors of 0 and those above 1e6 have no place on
/// the axis. Empty when nothing is left.
std::string figure_3_gnuplot(const std::vector<Figure3Row>& draws);

std::vector<Agreement> figure_3_agreements(const std::vector<PaperFact>& facts,
                                           const Figure3Sizes& sizes, const Figure3Result& result);

std::string figure_3_verdict(const Figure3Result& result);

/// The section at any size.
ReportSection figure_3_section(const PaperTableOptions& options, const Figure3Sizes& sizes);

}  // namespace lipsa
