#include "lipsa/experiment/inversion_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiment/plot_style.hpp"

namespace lipsa {
namespace {

constexpr double most_shown = 1e6;  // a map that explodes would flatten all other curves

template <class T>
std::size_t place_of(const std::vector<T>& list, const T& item) {
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), item) - list.begin());
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

std::string panel(const Inversion& inversion, const std::vector<InversionRow>& rows,
                  AttentionKind kind) {
  const InversionSettings& s = inversion.settings();
  std::string plot;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].attention != kind || points_of(rows[r]).empty()) {
      continue;
    }
    const std::size_t range = place_of(s.ranges, rows[r].range);
    const std::size_t factor = place_of(s.contractions, rows[r].contraction);
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

std::string inversion_gnuplot(const Inversion& inversion, const std::vector<InversionRow>& rows) {
  const InversionSettings& s = inversion.settings();
  std::string out =
      "# Draws inversion.svg and inversion.png: gnuplot inversion.gp\nset encoding utf8\n";
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto points = points_of(rows[r]);
    if (points.empty()) {
      continue;
    }
    out += fmt::format("$curve{} << EOD\n", r);
    for (const auto& [k, error] : points) {
      out += fmt::format("{} {:.17g}\n", k, error);
      least = std::min(least, error);
      most = std::max(most, error);
    }
    out += "EOD\n";
  }
  if (most == 0.0) {
    return {};
  }
  const std::size_t curves = s.contractions.size() * s.ranges.size();
  const std::size_t key_rows = (curves + 2) / 3;
  out += fmt::format(
      "set logscale y\nset xrange [0:{}]\nset yrange [{:.3g}:{:.3g}]\nset format y "
      "\"10^{{%T}}\"\nset "
      "xlabel \"iteration k\"\nset grid xtics ytics lt 1 lc rgb \"#dddddd\"\nunset mytics\n",
      s.iterations, std::pow(10.0, std::floor(std::log10(least / 2.0))),
      std::pow(10.0, std::ceil(std::log10(most * 1.001))));
  const std::size_t panels = s.attention.size();
  const double width = 0.99 / static_cast<double>(panels);
  std::string plots = "set multiplot\n";
  for (std::size_t p = 0; p < panels; ++p) {
    const double left = width * static_cast<double>(p);
    plots += fmt::format(
        "set lmargin at screen {:.4f}\nset rmargin at screen {:.4f}\nset tmargin at screen 0.93\n"
        "set bmargin at screen {:.4f}\nset title \"{} attention{}\" noenhanced\n",
        left + 0.18 / static_cast<double>(panels), left + width - 0.02,
        0.13 + 0.035 * static_cast<double>(key_rows), to_string(s.attention[p]),
        s.divisor == "none" ? "" : fmt::format(", divided by {}", s.divisor));
    plots += p == 0
                 ? fmt::format(
                       "set ylabel \"largest |x_k - x|, estimate\" noenhanced\nset key at "
                       "screen 0.5, screen 0.02 center bottom vertical maxrows {} Left reverse\n",
                       key_rows)
                 : std::string("unset ylabel\nunset key\n");
    plots += panel(inversion, rows, s.attention[p]) + "\n";
  }
  plots += "unset multiplot\n";
  out += into_svg_and_png("inversion", plots, 100 + 450 * panels, 560);
  return out;
}

}  // namespace lipsa
