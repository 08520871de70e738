#include "lipsa/experiment/depth_study_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "experiment/plot_style.hpp"

namespace lipsa {
namespace {

/// In the order in which they come.
std::vector<LanguageModelKind> models_of(const DepthStudyResult& result) {
  std::vector<LanguageModelKind> models;
  for (const DepthStudyCell& cell : result.cells) {
    if (std::find(models.begin(), models.end(), cell.model) == models.end()) {
      models.push_back(cell.model);
    }
  }
  return models;
}

std::string name_of(LanguageModelKind model) {
  return settings({.model = model}).front().value;
}

double largest_output(const DepthStudyCell& cell) {
  double largest = 0.0;
  for (const AttentionValues& values : cell.values) {
    largest = std::max(largest, values.largest);
  }
  return largest;
}

bool diverged(const DepthStudyCell& cell) {
  return !std::isfinite(cell.test.nats);
}

}  // namespace

std::string depth_study_gnuplot(const DepthStudyResult& result, const std::string& stem) {
  if (result.cells.empty()) {
    return {};
  }
  double least = result.bigram;
  double most = std::max(result.unigram, result.bigram);
  std::set<Index> depths;
  for (const DepthStudyCell& cell : result.cells) {
    depths.insert(cell.depth);
    if (!diverged(cell)) {
      least = std::min(least, cell.test.nats);
      most = std::max(most, cell.test.nats);
    }
  }
  const double margin = std::max(0.08 * (most - least), 0.01);
  const double edge = most + margin;
  const auto first = static_cast<double>(*depths.begin());
  const auto last = static_cast<double>(*depths.rbegin());
  const double side = std::max(0.05 * (last - first), 0.5);

  std::string out =
      fmt::format("# Draws {0}.svg and {0}.png: gnuplot {0}.gp\nset encoding utf8\n", stem);
  std::string plot = fmt::format(
      "plot {0:.17g} with lines dt (2,6) lw 1.5 lc rgb \"#555555\" title \"counts of characters\", "
      "\\\n     {1:.17g} with lines dt (8,4) lw 1.5 lc rgb \"#555555\" title \"counts of pairs\"",
      result.unigram, result.bigram);
  const std::vector<LanguageModelKind> models = models_of(result);
  for (std::size_t m = 0; m < models.size(); ++m) {
    std::string points;
    std::string crosses;
    std::map<Index, std::vector<double>> losses;
    // Side by side, as cells that agree would hide one another.
    const double shift = std::min(0.12, 0.3 / static_cast<double>(models.size())) *
                         (static_cast<double>(m) - 0.5 * static_cast<double>(models.size() - 1));
    for (const DepthStudyCell& cell : result.cells) {
      if (cell.model != models[m]) {
        continue;
      }
      const double x = static_cast<double>(cell.depth) + shift;
      if (diverged(cell)) {
        crosses += fmt::format("{:.17g} {:.17g}\n", x, edge);
        losses[cell.depth].push_back(std::nan(""));
      } else {
        points += fmt::format("{:.17g} {:.17g}\n", x, cell.test.nats);
        losses[cell.depth].push_back(cell.test.nats);
      }
    }
    std::string means;  // a gap where a seed diverged: the mean of the others would flatter
    for (const auto& [depth, values] : losses) {
      double sum = 0.0;
      for (const double value : values) {
        sum += value;
      }
      means += std::isfinite(sum)
                   ? fmt::format("{:.17g} {:.17g}\n", static_cast<double>(depth) + shift,
                                 sum / static_cast<double>(values.size()))
                   : std::string("\n");
    }
    const auto add = [&](const char* kind, const std::string& data, const std::string& style) {
      if (data.find_first_not_of('\n') != std::string::npos) {
        out += fmt::format("${}{} << EOD\n{}EOD\n", kind, m, data);
        plot += fmt::format(", \\\n     ${}{} using 1:2 with {}", kind, m, style);
      }
    };
    const std::string colour = plot_colours.at(m % plot_colours.size());
    const int mark = plot_marks.at(m % plot_marks.size());
    add("mean", means,
        fmt::format("lines dt {} lw 2 lc rgb \"{}\" notitle",
                    plot_dashes.at(m % plot_dashes.size()), colour));
    add("cell", points,
        fmt::format(R"(points pt {} ps 0.9 lc rgb "{}" title "{}" noenhanced)", mark, colour,
                    name_of(models[m])));
    add("lost", crosses,
        fmt::format(R"(points pt 2 ps 1.3 lw 2 lc rgb "{}" title "{} diverged" noenhanced)", colour,
                    name_of(models[m])));
  }
  out += fmt::format(
      "set xrange [{:.6g}:{:.6g}]\nset yrange [{:.6g}:{:.6g}]\nset xlabel \"blocks\"\n"
      "set ylabel \"test loss, nats a character\"\nset grid ytics lt 1 lc rgb \"#dddddd\"\n"
      "set key outside right top Left reverse\n",
      first - side, last + side, std::max(0.0, least - margin), edge + 0.5 * margin);
  if (depths.size() <= 20) {
    out += "set xtics (";
    for (const Index depth : depths) {
      out += fmt::format("{}{}", depth == *depths.begin() ? "" : ", ", depth);
    }
    out += ")\n";
  }
  return out + into_svg_and_png(stem, plot + "\n", 900, 520);
}

std::string attention_outputs_gnuplot(const DepthStudyResult& result) {
  std::vector<const DepthStudyCell*> cells;
  for (const LanguageModelKind model : models_of(result)) {
    const DepthStudyCell* shallowest = nullptr;
    for (const DepthStudyCell& cell : result.cells) {
      if (cell.model == model && !cell.values.empty() && !cell.values.front().counts.empty() &&
          (shallowest == nullptr || cell.depth < shallowest->depth)) {
        shallowest = &cell;
      }
    }
    if (shallowest != nullptr) {
      cells.push_back(shallowest);
    }
  }
  if (cells.empty()) {
    return {};
  }
  std::string out =
      "# Draws attention-outputs.svg and attention-outputs.png: gnuplot attention-outputs.gp\n"
      "set encoding utf8\n";
  constexpr std::size_t most_key_rows = 6;
  std::size_t layers = 1;
  for (const DepthStudyCell* cell : cells) {
    layers = std::max(layers, cell->values.size());
  }
  const std::size_t key_rows = std::min(layers, most_key_rows);
  std::string plots = fmt::format(
      "set multiplot layout 1,{}\nset xlabel \"output of an attention layer\"\n"
      "set grid xtics lt 1 lc rgb \"#dddddd\"\nset yrange [0:*]\nset offsets 0, 0, graph 0.08, "
      "0\nset bmargin {}\nset key at graph 0.5, character {} center top vertical maxrows {} Left "
      "reverse\n",
      cells.size(), key_rows + 5, key_rows + 1, key_rows);
  // Panels whose outputs are of the same size have one axis, so that spreads compare.
  double widest_of_all = 0.0;
  for (const DepthStudyCell* cell : cells) {
    widest_of_all = std::max(widest_of_all, largest_output(*cell));
  }
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const DepthStudyCell& cell = *cells[c];
    std::string plot;
    double widest = largest_output(cell);
    if (10.0 * widest >= widest_of_all) {
      widest = widest_of_all;
    }
    for (std::size_t layer = 0; layer < cell.values.size(); ++layer) {
      const AttentionValues& values = cell.values[layer];
      double total = 0.0;
      for (const std::int64_t count : values.counts) {
        total += static_cast<double>(count);
      }
      const double width = 2.0 * values.largest / static_cast<double>(AttentionValues::bins);
      if (!(width > 0.0)) {
        continue;  // all outputs are zero: no density
      }
      out += fmt::format("$hist{}_{} << EOD\n", c, layer);
      for (std::size_t bin = 0; bin < values.counts.size(); ++bin) {
        out += fmt::format("{:.9g} {:.9g}\n",
                           -values.largest + width * (static_cast<double>(bin) + 0.5),
                           static_cast<double>(values.counts[bin]) / (total * width));
      }
      out += "EOD\n";
      plot += fmt::format(
          R"({}$hist{}_{} using 1:2 with histeps dt {} lw 1.8 lc rgb "{}" title "layer {}{}")",
          plot.empty() ? "plot " : ", \\\n     ", c, layer,
          plot_dashes.at(layer % plot_dashes.size()), plot_colours.at(layer % plot_colours.size()),
          layer,
          std::isnan(values.output_deviation)  // of a study that was read
              ? ""
              : fmt::format(", deviation {:.2g}", values.output_deviation));
    }
    if (widest > 0.0) {  // few enough to be read, however small the numbers
      plots += fmt::format(
          "set xrange [{2:.9g}:{3:.9g}]\nset xtics (\"{0:.2g}\" {0:.9g}, \"0\" 0, \"{1:.2g}\" "
          "{1:.9g})\n",
          -widest / 2.0, widest / 2.0, -widest, widest);
    }
    plots += fmt::format("set title \"{}, {} {}\" noenhanced\n{}\n{}\n", name_of(cell.model),
                         cell.depth, cell.depth == 1 ? "block" : "blocks",
                         c == 0 ? "set ylabel \"density\"" : "unset ylabel",
                         plot.empty() ? std::string("plot NaN notitle") : plot);
  }
  plots += "unset multiplot\n";
  return out + into_svg_and_png("attention-outputs", plots, 150 + 330 * cells.size(), 480);
}

}  // namespace lipsa
