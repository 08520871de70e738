/// \file
/// Every bound of the catalogue on common work: what the section says, as functions of the answers.
/// Private to lib/.
#pragma once

#include <string>
#include <vector>

#include "experiment/paper_sections.hpp"
#include "lipsa/experiment/bound_table.hpp"

namespace lipsa {

struct AllBoundsSizes {
  Index tokens = 128;
  Index dim = 64;
  Index heads = 8;
  Index restarts = 8;  ///< of the ascent, norms 2 and inf
};

AllBoundsSizes all_bounds_sizes(bool full);

/// What the catalogue answers to one question, with those of its entries that speak of it.
struct BoundsCell {
  AttentionKind attention = AttentionKind::l2;
  Norm norm = Norm::two;
  Domain asked = Domain::everywhere;  ///< or token_ball, or point
  BoundAnswer answer{};
};

/// Entries about softmax and LayerNorm, of which nothing is measured here.
struct OtherBounds {
  Subject subject = Subject::softmax;
  Norm norm = Norm::two;
  std::vector<Bound> bounds{};
};

struct AllBounds {
  double radius = 0.0;  ///< of the ball
  std::vector<BoundsCell> cells{};
  std::vector<OtherBounds> others{};
};

AllBounds compute_all_bounds(const AllBoundsSizes& sizes, std::uint64_t seed);

/// One row a bound and question, of one kind of attention and one norm.
Table all_bounds_table(const std::vector<BoundsCell>& cells, AttentionKind attention, Norm norm);

/// One row a question: how many hold, the tightest of them.
Table all_bounds_summary(const std::vector<BoundsCell>& cells);

Table other_bounds_table(const std::vector<OtherBounds>& others);

/// Ratios of the finite bounds that hold, in NAME.svg; empty when there are none.
std::string all_bounds_gnuplot(const std::vector<BoundsCell>& cells, AttentionKind attention,
                               const std::string& name);

std::string all_bounds_verdict(const std::vector<BoundsCell>& cells);

/// The section at any size.
ReportSection all_bounds_section(const PaperTableOptions& options, const AllBoundsSizes& sizes);

}  // namespace lipsa
