#include "experiment/paper_figure_2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiment/paper_parts.hpp"
#include "experiment/paper_sections.hpp"
#include "experiment/plot_style.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/experiment/sweep.hpp"
#include "lipsa/model/initial_weights.hpp"
#include "lipsa/search/ascent.hpp"

namespace lipsa {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr std::size_t shown_starts = 5;
constexpr double adam_rate = 0.1;

std::vector<Index> tokens_of(bool full) {
  if (!full) {
    return {100, 200, 300, 500, 700, 1000};
  }
  std::vector<Index> tokens;
  for (Index n = 100; n <= 1000; n += 100) {
    tokens.push_back(n);
  }
  return tokens;
}

Index restarts_of(bool full) {
  return full ? 50 : 12;
}

std::vector<TightnessPoint> ascend(const std::vector<Index>& tokens, Index restarts,
                                   std::uint64_t seed) {
  SweepSettings settings;
  settings.tokens = tokens;
  settings.bounds = {"kim2021_inf", "sharp_l2_inf"};
  settings.restarts = restarts;
  settings.learning_rate = adam_rate;
  settings.seed = seed;
  const Sweep sweep(settings);
  const MultiHead layer = initial_layer({}, AttentionKind::l2, 1, 1, seed);
  std::vector<TightnessPoint> points;
  for (Index k = 0; k < sweep.size(); ++k) {
    const SweepRow row = sweep.run(k);
    double random = 0.0;
    if (restarts > 0) {
      random = maximise_local_norm(layer, Mask::none(), row.n,
                                   {.restarts = restarts,
                                    .learning_rate = adam_rate,
                                    .analytic = false,
                                    .seed = seed,
                                    .configuration = static_cast<std::uint64_t>(row.n)})
                   .best()
                   .lower_bound;
    }
    points.push_back({.n = row.n,
                      .published = bound_of(row, "kim2021_inf"),
                      .sharp = bound_of(row, "sharp_l2_inf"),
                      .lower_bounds = row.lower_bounds,
                      .random_lower_bound = random,
                      .analytic = row.lower_bound_witness,
                      .status = row.status});
  }
  return points;
}

Table tightness_table(const std::vector<TightnessPoint>& points) {
  Table table{{"n", "upper_bound_kim2021_inf", "upper_bound_sharp_l2_inf", "sharp_l2_inf_is",
               "lower_bound", "lower_bound_2", "lower_bound_3", "lower_bound_4", "lower_bound_5",
               "lower_bound_random", "tightness_upper_bound", "status"},
              {}};
  for (const TightnessPoint& p : points) {
    std::vector<Cell> cells{count_cell(p.n), p.published, p.sharp,
                            std::string(p.n % 2 == 1 ? "exact" : "an upper bound")};
    for (std::size_t k = 0; k < shown_starts; ++k) {
      cells.push_back(start_cell(p.lower_bounds, k));
    }
    cells.emplace_back(p.random_lower_bound);
    cells.push_back(tightness_cell(p.sharp, p.best()));
    cells.emplace_back(p.status);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table odd_table(const std::vector<TightnessPoint>& points) {
  Table table{{"n", "upper_bound_sharp_l2_inf", "lower_bound_analytic", "agreement"}, {}};
  for (const TightnessPoint& p : points) {
    table.rows.push_back(
        {count_cell(p.n), p.sharp, p.analytic, shared_digits(p.analytic, p.sharp)});
  }
  return table;
}

std::string tightness_figure(const std::vector<TightnessPoint>& points) {
  PlotPoints published;
  PlotPoints sharp;
  PlotPoints best;
  PlotPoints others;
  PlotPoints random;
  std::string ticks;
  double least = inf;
  double most = 0.0;
  for (const TightnessPoint& p : points) {
    const auto n = static_cast<double>(p.n);
    published.emplace_back(n, p.published);
    sharp.emplace_back(n, p.sharp);
    random.emplace_back(n, p.random_lower_bound);
    for (std::size_t k = 0; k < p.lower_bounds.size(); ++k) {
      (k == 0 ? best : others).emplace_back(n, p.lower_bounds[k]);
    }
    least = std::min(least, p.random_lower_bound);
    for (const double lower : p.lower_bounds) {
      least = std::min(least, lower);
    }
    most = std::max(most, p.published);
    ticks += fmt::format("{}{}", ticks.empty() ? "" : ", ", p.n);
  }
  const auto line = [](std::size_t style, const char* name, const char* title) {
    return fmt::format(R"(${} using 1:2 with lines dt {} lw 2 lc rgb "{}" title "{}" noenhanced)",
                       name, plot_dashes.at(style), plot_colours.at(style), title);
  };
  constexpr int hollow_mark = 6;
  constexpr int cross_mark = 2;
  const auto marks = [](const char* name, int mark, std::size_t style, const char* title) {
    return fmt::format(R"(${} using 1:2 with points pt {} ps 1.1 lc rgb "{}" title "{}")", name,
                       mark, plot_colours.at(style), title);
  };
  return data_block("published", published) + data_block("sharp", sharp) +
         data_block("best", best) + data_block("others", others) + data_block("random", random) +
         into_svg(
             "figure-2",
             fmt::format(
                 "set logscale x\nset xrange [{:.6g}:{:.6g}]\nset yrange [{:.6g}:{:.6g}]\nset "
                 "xtics ({})\nset xlabel \"number of tokens, n\"\nset ylabel \"Lipschitz constant, "
                 "norm inf\"\nset grid ytics lt 1 lc rgb \"#dddddd\"\nset key left top Left "
                 "reverse\nplot {}, \\\n     {}, \\\n     {}, \\\n     {}, \\\n     {}\n",
                 0.93 * static_cast<double>(points.front().n),
                 1.07 * static_cast<double>(points.back().n), std::floor(least - 0.5),
                 std::ceil(most + 0.2), ticks,
                 line(1, "published", "upper bound, published (kim2021_inf)"),
                 line(0, "sharp", "upper bound, sharp (sharp_l2_inf)"),
                 marks("best", plot_marks.at(1), 2, "lower bound, best start"),
                 marks("others", hollow_mark, 2, "lower bound, starts 2 to 5"),
                 marks("random", cross_mark, 4, "lower bound, best of random starts alone")));
}

void widen(std::pair<double, double>& range, double x) {
  range = {std::min(range.first, x), std::max(range.second, x)};
}

bool same_slope(const TightnessSummary& s) {
  return std::abs(s.lower.slope / s.published.slope - 1.0) <= 0.05;
}

bool constant_offset(const TightnessSummary& s) {
  return s.offset.second <= 1.25 * s.offset.first;
}

/// A share rounded down or up, in per cent.
std::string percent(double share, double direction) {
  return rounded_text(100.0 * share, direction) + " %";
}

}  // namespace

TightnessSummary tightness_summary(const std::vector<TightnessPoint>& points) {
  TightnessSummary s;
  s.offset = s.share = s.share_random = {inf, -inf};
  s.ordered = !points.empty();
  PlotPoints published;
  PlotPoints sharp;
  PlotPoints lower;
  for (const TightnessPoint& p : points) {
    const double log_n = std::log(static_cast<double>(p.n));
    published.emplace_back(log_n, p.published);
    sharp.emplace_back(log_n, p.sharp);
    lower.emplace_back(log_n, p.best());
    widen(s.offset, p.published - p.best());
    widen(s.share, (p.published - p.sharp) / (p.published - p.best()));
    widen(s.share_random, (p.published - p.sharp) / (p.published - p.random_lower_bound));
    s.largest_ratio = std::max(s.largest_ratio, p.sharp / p.best());
    s.ordered =
        s.ordered && std::max(p.best(), p.random_lower_bound) <= p.sharp && p.sharp <= p.published;
  }
  s.published = fit_line(published);
  s.sharp = fit_line(sharp);
  s.lower = fit_line(lower);
  return s;
}

std::string figure_2_verdict(const TightnessSummary& s) {
  if (!s.ordered) {
    return "A lower bound lies above an upper bound, or the sharp one above the published "
           "one: a bound or a measurement is wrong.";
  }
  const bool most = s.share.first > 0.5;
  std::string text = fmt::format(
      "{} of the gap between the published bound and the best lower bound comes from the published "
      "bound: between {} and {} (random starts alone: between {} and {}); ",
      s.share.first >= 0.99 ? "Nearly all" : (most ? "Most" : "Not most"),
      percent(s.share.first, -1.0), percent(s.share.second, 1.0),
      percent(s.share_random.first, -1.0), percent(s.share_random.second, 1.0));
  text += fmt::format("the sharp bound lies at most {} above the best lower bound. ",
                      percent(s.largest_ratio - 1.0, 1.0));
  text += fmt::format(
      "Over log n the slopes are {:.4g} (published), {:.4g} (sharp) and {:.4g} (lower bounds): "
      "{}; the offset goes from {:.4g} to {:.4g}, {}.",
      s.published.slope, s.sharp.slope, s.lower.slope,
      same_slope(s) ? "the same within 5 %" : "not the same within 5 %", s.offset.first,
      s.offset.second, constant_offset(s) ? "roughly constant" : "not constant");
  return text;
}

std::vector<Agreement> figure_2_agreements(const std::vector<PaperFact>& facts,
                                           const std::vector<TightnessPoint>& points,
                                           Index restarts) {
  const TightnessSummary s = tightness_summary(points);
  std::vector<Agreement> agreements;
  for (const PaperFact& fact : facts) {
    Agreement agreement{.fact = fact};
    const auto same = [&](const std::string& ours) {  // what was set, no result
      agreement.ours = ours;
      agreement.agreement = ours == fact.as_printed ? "same setting" : "another setting";
    };
    if (fact.quantity == "H = D") {
      same("1");
    } else if (fact.quantity == "N" && !points.empty()) {
      same(fmt::format("{} to {}", points.front().n, points.back().n));
    } else if (fact.quantity == "random starts per N") {
      same(fmt::format("{}", restarts));
    } else if (fact.quantity == "X_ij") {
      same("uniform on (-c; c] with c uniform on (0; 10]; and two analytic starts");
    } else if (fact.quantity == "optimiser") {
      same(fmt::format("Adam with learning rate {:g}; at most {} steps", adam_rate,
                       AscentOptions{}.steps));
    } else if (fact.quantity == "starts plotted") {
      same(fmt::format("{} best per N of random and analytic starts",
                       points.empty() ? 0 : points.front().lower_bounds.size()));
    } else if (fact.quantity.starts_with("outcome")) {
      agreement.ours =
          fmt::format("slopes {:.4g} and {:.4g}; offset {:.4g} to {:.4g}", s.published.slope,
                      s.lower.slope, s.offset.first, s.offset.second);
      agreement.agreement =
          s.ordered && same_slope(s) && constant_offset(s) ? "agrees" : "does not agree";
      agreement.kind = "estimate";
    } else {
      agreement = not_tested(fact);
    }
    agreements.push_back(std::move(agreement));
  }
  return agreements;
}

ReportSection section_figure_2(const PaperTableOptions& options) {
  const Index restarts = restarts_of(options.full);
  const std::vector<TightnessPoint> points =
      ascend(tokens_of(options.full), restarts, options.seed);
  const std::vector<TightnessPoint> odd = ascend({3, 5, 11, 101, 1001}, 0, options.seed);

  ReportSection section;
  section.name = "figure-2";
  section.title = "Figure 2: tightness of the bound in the infinity norm";
  section.claim =
      "The bound of theorem 3.2 in the infinity norm is asymptotically tight: what an ascent finds "
      "grows over log n with the same slope, a roughly constant distance below.";
  section.method = fmt::format(
      "L2 attention, D = H = 1, unit weights. Lower bounds: ascent on |J|_inf by Adam, learning "
      "rate {:g}, at most {} steps, from {} random starts (tokens uniform on (-c, c], c uniform on "
      "(0, 10]) and two analytic ones, which the paper did not have; the five best, and the best "
      "of as many other random starts alone. Seed {}. sharp_l2_inf = 1 + 4 W((n-1) e^(-3/2)) is "
      "the "
      "constant itself for odd n, where the analytic tokens attain it, and an upper bound for even "
      "n.",
      adam_rate, AscentOptions{}.steps, restarts, options.seed);
  section.command = command_of(options, section.name);
  section.tables = {
      {.name = "figure-2",
       .caption = "Infinity norm of L2 attention: published bound, sharp bound, lower bounds.",
       .table = tightness_table(points)},
      {.name = "figure-2-odd",
       .caption = "Odd n: the sharp bound, and the norm at analytic tokens.",
       .table = odd_table(odd)}};
  section.figures = {{.name = "figure-2",
                      .caption = "Figure 2 with a third curve, the sharp bound.",
                      .script = tightness_figure(points)}};
  section.agreements = figure_2_agreements(facts_at(options, "Figure 2"), points, restarts);
  section.verdict = figure_2_verdict(tightness_summary(points));
  return section;
}

}  // namespace lipsa
