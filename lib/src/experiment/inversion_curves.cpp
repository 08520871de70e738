#include "experiment/inversion_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "experiment/plot_style.hpp"

namespace lipsa {
namespace {

constexpr double most_shown = 1e6;

template <class T>
std::size_t place_of(const std::vector<T>& list, const T& item) {
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), item) - list.begin());
}

std::string name_of(AttentionKind kind) {
  return kind == AttentionKind::dot ? "dot-product" : std::string(to_string(kind));
}

/// What is plotted of a row: iteration and error.
std::vector<std::pair<std::size_t, double>> points_of(const InversionRow& row) {
  std::vector<std::pair<std::size_t, double>> points;
  for (std::size_t k = 0; k < row.errors.size(); ++k) {
    if (row.errors[k] > 0.0 && row.errors[k] <= most_shown) {
      points.emplace_back(k, row.errors[k]);
    }
  }
  return points;
}

std::string panel(const InversionPanels& panels, const std::vector<InversionRow>& rows,
                  AttentionKind kind) {
  std::string plot;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].attention != kind || points_of(rows[r]).empty()) {
      continue;
    }
    const std::size_t range = place_of(panels.ranges, rows[r].range);
    const std::size_t factor = place_of(panels.contractions, rows[r].contraction);
    plot += fmt::format(
        "{}$curve{} using 1:2 with linespoints dt {} lw 1.8 lc rgb \"{}\" pt {} ps 0.7 pi 2 title "
        "\"c = {:g}, r = {:g}\" noenhanced",
        plot.empty() ? "plot " : ", \\\n     ", r, plot_dashes.at(factor % plot_dashes.size()),
        plot_colours.at(range % plot_colours.size()), plot_marks.at(range % plot_marks.size()),
        rows[r].contraction, rows[r].range);
  }
  return plot.empty() ? std::string("plot NaN notitle") : plot;
}

}  // namespace

InversionCurves inversion_curves(const InversionPanels& panels,
                                 const std::vector<InversionRow>& rows) {
  InversionCurves curves;
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto points = points_of(rows[r]);
    if (points.empty()) {
      continue;
    }
    curves.data += fmt::format("$curve{} << EOD\n", r);
    for (const auto& [k, error] : points) {
      curves.data += fmt::format("{} {:.17g}\n", k, error);
      least = std::min(least, error);
      most = std::max(most, error);
    }
    curves.data += "EOD\n";
  }
  if (most == 0.0) {
    return {};
  }
  curves.data += fmt::format(
      "set logscale y\nset xrange [0:{}]\nset yrange [{:.3g}:{:.3g}]\nset format y "
      "\"10^{{%T}}\"\nset xlabel \"iteration k\"\nset grid xtics ytics lt 1 lc rgb \"#dddddd\"\n"
      "unset mytics\n",
      panels.iterations, std::pow(10.0, std::floor(std::log10(least / 2.0))),
      std::pow(10.0, std::ceil(std::log10(most * 1.001))));
  const std::size_t key_rows = (panels.contractions.size() * panels.ranges.size() + 2) / 3;
  const auto count = static_cast<double>(panels.attention.size());
  const double width = 0.99 / count;
  curves.plots = "set multiplot\n";
  for (std::size_t p = 0; p < panels.attention.size(); ++p) {
    const double left = width * static_cast<double>(p);
    curves.plots += fmt::format(
        "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\nset tmargin at screen 0.92\n"
        "set bmargin at screen {:.4f}\nset title \"{} attention{}\" noenhanced\n",
        left + 0.24 / count, left + width - 0.02, 0.15 + 0.042 * static_cast<double>(key_rows),
        name_of(panels.attention[p]),
        panels.divisor == "none" ? "" : fmt::format(", divided by {}", panels.divisor));
    curves.plots +=
        p == 0 ? fmt::format(
                     "set ylabel \"{}\" noenhanced\nset key at screen 0.5, screen 0.015 center "
                     "bottom vertical maxrows {} Left reverse\n",
                     panels.error, key_rows)
               : std::string("unset ylabel\nunset key\n");
    curves.plots += panel(panels, rows, panels.attention[p]) + "\n";
  }
  curves.plots += "unset multiplot\n";
  return curves;
}

}  // namespace lipsa
