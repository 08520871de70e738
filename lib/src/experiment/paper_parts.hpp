/// \file
/// What several sections of paper_tables are put together from. Private to lib/.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/rounding.hpp"
#include "lipsa/experiment/paper_tables.hpp"
#include "lipsa/experiment/sweep.hpp"
#include "lipsa/experiment/table.hpp"

namespace lipsa {

using PlotPoints = std::vector<std::pair<double, double>>;

inline Cell number_cell(double x) {
  Cell cell;
  if (!std::isnan(x)) {
    cell = x;
  }
  return cell;
}

/// upper/lower rounded up, so many times a constant the upper bound is at most; NaN without a lower
/// bound.
inline double tightness(double upper, double lower) {
  return lower > 0.0 ? div_up(upper, lower) : std::numeric_limits<double>::quiet_NaN();
}

inline Cell tightness_cell(double upper, double lower) {
  return number_cell(tightness(upper, lower));
}

/// The k-th of the lower bounds, or nothing.
inline Cell start_cell(const std::vector<double>& lower_bounds, std::size_t k) {
  return number_cell(k < lower_bounds.size() ? lower_bounds[k]
                                             : std::numeric_limits<double>::quiet_NaN());
}

inline Cell count_cell(Index i) {
  return Cell(std::int64_t{i});
}

/// x in five digits, on the side of x that a bound may err to.
inline std::string rounded_text(double x, double direction) {
  double near = x;
  std::string text = fmt::format("{:.5g}", near);
  while (std::isfinite(near) &&
         direction * static_cast<double>(std::strtold(text.c_str(), nullptr) - x) < 0.0) {
    near += direction * 5e-6 * std::abs(x);
    text = fmt::format("{:.5g}", near);
  }
  return text;
}

/// What a fact gets that nothing here speaks of.
inline Agreement not_tested(const PaperFact& fact) {
  return {.fact = fact, .agreement = std::string("not tested")};
}

/// `lipsa paper-tables` for one section with these options; `study` where it takes one.
inline std::string command_of(const PaperTableOptions& options, std::string_view section,
                              std::string_view study = {}) {
  std::string weights;
  for (const std::filesystem::path& path : options.weights) {
    weights += (weights.empty() ? " --weights '" : ",") + path.string();
  }
  return fmt::format("lipsa paper-tables --only {} {} --seed {}{}{}{}{}", section,
                     options.full ? "--full" : "--quick", options.seed, weights,
                     weights.empty() ? "" : "'", study.empty() ? "" : " ", study);
}

inline std::string lower_text(double x) {
  return rounded_text(x, -1.0);
}

inline std::string upper_text(double x) {
  return rounded_text(x, 1.0);
}

/// The highest lower bound of a row: of the ascent, or of an analytic start as it is.
inline double lower_bound_of(const SweepRow& row) {
  return std::fmax(row.lower_bounds.empty() ? 0.0 : row.lower_bounds.front(),
                   row.lower_bound_witness);
}

/// What the entry gives in this row; NaN where it does not speak of it.
inline double bound_of(const SweepRow& row, std::string_view name) {
  for (const SweepBound& bound : row.bounds) {
    if (bound.name == name) {
      return bound.value;
    }
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// The smallest of those that hold; without a name and NaN when none does.
inline SweepBound smallest_bound_of(const SweepRow& row) {
  SweepBound best;
  for (const SweepBound& bound : row.bounds) {
    if (!bound.refuted && !std::isnan(bound.value) && !(bound.value >= best.value)) {
      best = bound;
    }
  }
  return best;
}

/// The points as data of a script, without those that have no place on a log axis.
inline std::string data_block(const std::string& name, const PlotPoints& points) {
  std::string out = "$" + name + " << EOD\n";
  for (const auto& [x, y] : points) {
    if (std::isfinite(x) && std::isfinite(y) && y > 0.0) {
      out += fmt::format("{:.17g} {:.17g}\n", x, y);
    }
  }
  return out + "EOD\n";
}

/// Ranges of log axes that leave a margin about what is drawn.
inline std::string log_ranges(const std::vector<const PlotPoints*>& curves) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  double left = inf;
  double right = 0.0;
  double low = inf;
  double high = 0.0;
  for (const PlotPoints* curve : curves) {
    for (const auto& [x, y] : *curve) {
      if (std::isfinite(y) && y > 0.0) {
        left = std::min(left, x);
        right = std::max(right, x);
        low = std::min(low, y);
        high = std::max(high, y);
      }
    }
  }
  return high > 0.0 ? fmt::format("set xrange [{:.6g}:{:.6g}]\nset yrange [{:.6g}:{:.6g}]\n",
                                  left / 1.15, right * 1.15, low / 1.6, high * 1.6)
                    : std::string();
}

/// The plots into NAME.svg.
inline std::string into_svg(const std::string& name, const std::string& plots) {
  std::string id = name;  // of what is inside the picture: gnuplot takes no hyphens
  std::replace(id.begin(), id.end(), '-', '_');
  return fmt::format(
             "set encoding utf8\nset terminal svg size 900,520 dynamic name \"{}\" font "
             "\"sans-serif,14\" background rgb \"white\"\nset output \"{}.svg\"\n",
             id, name) +
         plots + "set output\n";
}

}  // namespace lipsa
