#include "lipsa/experiment/sweep_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace lipsa {
namespace {

struct Axis {
  std::string label;
  double (*value)(const SweepRow&);
};

const std::vector<Axis>& axes() {
  static const std::vector<Axis> all{
      {"radius of the ball of tokens, R", [](const SweepRow& r) { return r.radius; }},
      {"number of tokens, n", [](const SweepRow& r) { return static_cast<double>(r.n); }},
      {"features, D", [](const SweepRow& r) { return static_cast<double>(r.D); }},
      {"heads, H", [](const SweepRow& r) { return static_cast<double>(r.H); }}};
  return all;
}

/// The first axis along which the rows differ.
const Axis* axis_of(const std::vector<SweepRow>& rows) {
  for (const Axis& axis : axes()) {
    std::set<double> values;
    for (const SweepRow& row : rows) {
      values.insert(axis.value(row));
    }
    values.erase(std::numeric_limits<double>::infinity());
    if (values.size() > 1) {
      return &axis;
    }
  }
  return nullptr;
}

using Points = std::vector<std::pair<double, double>>;

/// A curve of the plot: what gnuplot says about it, and its points.
struct Curve {
  std::string title;
  std::string style;
  Points points;
};

/// Rows that share all but the axis, in order of appearance.
std::vector<std::pair<std::string, std::vector<const SweepRow*>>> groups_of(
    const std::vector<SweepRow>& rows, const Axis& axis) {
  const auto differs = [&](auto field) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const SweepRow& row) { return field(row) != field(rows.front()); });
  };
  const bool by_attention = differs([](const SweepRow& r) { return r.attention; });
  const bool by_mask = differs([](const SweepRow& r) { return r.mask; });
  const bool by_norm = differs([](const SweepRow& r) { return r.norm; });
  const auto name = [&](const SweepRow& row) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (by_attention) {
      add(std::string(to_string(row.attention)));
    }
    if (by_mask) {
      add(fmt::format("mask {}", to_string(row.mask)));
    }
    if (by_norm) {
      add(fmt::format("norm {}", to_string(row.norm)));
    }
    constexpr std::array letters{"R", "n", "D", "H"};
    for (std::size_t a = 0; a < axes().size(); ++a) {
      if (&axes()[a] != &axis && differs(axes()[a].value)) {
        add(fmt::format("{}={}", letters.at(a), axes()[a].value(row)));
      }
    }
    return text;
  };
  std::vector<std::pair<std::string, std::vector<const SweepRow*>>> groups;
  for (const SweepRow& row : rows) {
    const std::string key = name(row);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& known) { return known.first == key; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {key, {}});
    }
    group->second.push_back(&row);
  }
  return groups;
}

std::vector<Curve> curves_of(const std::vector<SweepRow>& rows, const Axis& axis) {
  std::vector<Curve> curves;
  const auto add = [&](const std::string& title, const std::string& style, Points points) {
    std::erase_if(points, [](const auto& p) {
      return !(p.second > 0.0) || !std::isfinite(p.second) || !std::isfinite(p.first);
    });
    if (!points.empty()) {
      curves.push_back({title, style, std::move(points)});
    }
  };
  int colour = 0;
  int group_number = 1;
  for (const auto& [name, group] : groups_of(rows, axis)) {
    const std::string suffix = name.empty() ? "" : " (" + name + ")";
    std::vector<std::pair<std::string, bool>> bounds;
    for (const SweepRow* row : group) {
      for (const SweepBound& bound : row->bounds) {
        const std::pair key{bound.name, bound.refuted};
        if (std::find(bounds.begin(), bounds.end(), key) == bounds.end()) {
          bounds.push_back(key);
        }
      }
    }
    int dash = 2;
    for (const auto& [bound_name, refuted] : bounds) {
      Points points;
      for (const SweepRow* row : group) {
        for (const SweepBound& bound : row->bounds) {
          if (bound.name == bound_name) {
            points.emplace_back(axis.value(*row), bound.value);
          }
        }
      }
      add(fmt::format("{} {}{}", refuted ? "refuted" : "upper bound", bound_name, suffix),
          fmt::format("lines lw 2.5 dt {} lc {}", dash, ++colour), points);
      dash = 2 + (dash - 1) % 4;
    }
    Points best;
    Points others;
    Points witness;
    Points norms;
    for (const SweepRow* row : group) {
      const double x = axis.value(*row);
      for (std::size_t k = 0; k < row->lower_bounds.size(); ++k) {
        (k == 0 ? best : others).emplace_back(x, row->lower_bounds[k]);
      }
      witness.emplace_back(x, row->lower_bound_witness);
      norms.emplace_back(x, row->local_norm);
    }
    const int shape = 5 + 2 * (group_number % 5);  // filled, told apart without colour too
    const int mark = 1 + group_number++ % 3;       // plus, cross, star
    ++colour;
    add("lower bound, best start" + suffix,
        fmt::format("linespoints lw 1 pt {} ps 0.8 lc {}", shape, colour), best);
    add("lower bound, starts 2 to 5" + suffix, fmt::format("points pt 6 ps 1.1 lc {}", colour),
        others);
    add("lower bound, witness" + suffix, fmt::format("points pt {} ps 1.2 lc {}", mark, ++colour),
        witness);
    add("local norm at the input, estimate" + suffix,
        fmt::format("points pt 4 ps 1.2 lc {}", ++colour), norms);
  }
  return curves;
}

}  // namespace

std::string sweep_gnuplot(const std::vector<SweepRow>& rows) {
  const Axis* axis = rows.empty() ? nullptr : axis_of(rows);
  if (axis == nullptr) {
    return {};
  }
  std::vector<Curve> curves = curves_of(rows, *axis);
  if (curves.empty()) {
    return {};
  }
  std::string out =
      "# Draws sweep.svg and sweep.png: gnuplot sweep.gp\nset encoding utf8\n"
      "set linetype 5 lc rgb \"#7a5c00\"\n";  // for the yellow that paper swallows
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    out += fmt::format("$curve{} << EOD\n", c);
    std::sort(curves[c].points.begin(), curves[c].points.end());
    for (const auto& [x, y] : curves[c].points) {
      out += fmt::format("{:.17g} {:.17g}\n", x, y);
      least = std::min(least, y);
      most = std::max(most, y);
    }
    out += "EOD\n";
  }
  std::set<double> ticks;
  for (const SweepRow& row : rows) {
    ticks.insert(axis->value(row));
  }
  ticks.erase(std::numeric_limits<double>::infinity());
  const std::size_t key_rows = (curves.size() + 1) / 2;
  out += fmt::format(
      "set logscale xy\nset yrange [{:.6g}:{:.6g}]\nset offsets graph 0.03, graph 0.03, 0, 0\n"
      "set xlabel \"{}\"\nset ylabel \"Lipschitz constant, norm {}\"\n"
      "set grid xtics ytics lc rgb \"#dddddd\"\nset format y \"%g\"\n"
      "set bmargin {}\nset key at screen 0.5, screen 0.02 center bottom vertical maxrows {} Left "
      "reverse\n",
      least / 1.15, most * 1.15, axis->label, to_string(rows.front().norm), key_rows + 4, key_rows);
  if (ticks.size() <= 12) {
    out += "set xtics (";
    for (const double tick : ticks) {
      out += fmt::format("{}\"{:.4g}\" {:.17g}", tick == *ticks.begin() ? "" : ", ", tick, tick);
    }
    out += ")\n";
  }
  if (most / least < 20.0) {  // less than two decades: round numbers would leave an axis unlabelled
    out +=
        "set ytics (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 25, 30, 40, 50, 60, "
        "80, 100, 150, 200, 300, 400, 500, 700, 1000)\n";
  }
  std::string plot = "plot ";
  for (std::size_t c = 0; c < curves.size(); ++c) {
    plot += fmt::format("{}$curve{} using 1:2 with {} title \"{}\" noenhanced",
                        c == 0 ? "" : ", \\\n     ", c, curves[c].style, curves[c].title);
  }
  plot += "\n";
  out +=
      "set terminal svg size 900,640 dynamic font \"sans-serif,14\" background rgb \"white\"\nset "
      "output \"sweep.svg\"\n" +
      plot;
  out +=
      "set terminal pngcairo size 1350,960 font \"sans-serif,14\"\nset output "
      "\"sweep.png\"\nreplot\nset output\n";
  return out;
}

}  // namespace lipsa
