#include "experiment/paper_appendix_ascent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiment/paper_parts.hpp"
#include "experiment/paper_sections.hpp"
#include "experiment/plot_style.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/bounds/lambert.hpp"
#include "lipsa/experiment/sweep.hpp"
#include "lipsa/model/initial_weights.hpp"
#include "lipsa/search/ascent.hpp"

namespace lipsa {
namespace {

constexpr std::size_t shown_starts = 5;
constexpr double falling =
    0.9;  // times the exponent before: of a power it stays, of log n it falls
constexpr Index divergence_tokens = 16;

std::vector<Index> tokens_of(bool full) {
  return full ? std::vector<Index>{2, 3, 5, 8, 12, 20, 32, 50, 80, 126, 200, 316, 500}
              : std::vector<Index>{2, 3, 5, 8, 12, 20, 32, 50, 80, 126, 200};
}

Index restarts_of(bool full) {
  return full ? 20 : 3;
}

Index divergence_restarts_of(bool full) {
  return full ? 50 : 10;
}

SweepSettings settings_of(const PaperTableOptions& options) {
  SweepSettings settings;
  settings.norms = {Norm::two};
  settings.tokens = tokens_of(options.full);
  settings.restarts = restarts_of(options.full);
  settings.seed = options.seed;
  return settings;
}

std::vector<TwoNormPoint> ascend(const PaperTableOptions& options) {
  const Sweep sweep(settings_of(options));
  std::vector<TwoNormPoint> points;
  for (Index k = 0; k < sweep.size(); ++k) {
    const SweepRow row = sweep.run(k);
    const SweepBound best = smallest_bound_of(row);
    points.push_back({.n = row.n,
                      .lower_bounds = row.lower_bounds,
                      .median = row.lower_bound_median,
                      .analytic = row.lower_bound_witness,
                      .kim = bound_of(row, "kim2021_2"),
                      .best_upper = best.value,
                      .best_name = best.name,
                      .status = row.status});
  }
  return points;
}

/// The best of the random starts of unit weights after so many steps.
LocalMaximum after(Index steps, AttentionKind kind, const PaperTableOptions& options) {
  return maximise_local_norm(initial_layer({}, kind, 1, 1, options.seed), Mask::none(),
                             divergence_tokens,
                             {.restarts = divergence_restarts_of(options.full),
                              .steps = steps,
                              .analytic = false,
                              .seed = options.seed})
      .best();
}

std::vector<DivergencePoint> diverge(const PaperTableOptions& options) {
  const MultiHead layer = initial_layer({}, AttentionKind::l2, 1, 1, options.seed);
  const Mask mask = Mask::none();
  const double upper = find_entry("sharp_l2_inf")
                           .evaluate({.layer = layer, .mask = mask, .tokens = divergence_tokens})
                           .value;
  std::vector<DivergencePoint> points;
  for (const Index steps : {10, 20, 50, 100, 200, 400, 800}) {
    const LocalMaximum dot = after(steps, AttentionKind::dot, options);
    const LocalMaximum l2 = after(steps, AttentionKind::l2, options);
    points.push_back({.steps = steps,
                      .dot = dot.lower_bound,
                      .dot_status = std::string(to_string(dot.termination)),
                      .l2 = l2.lower_bound,
                      .l2_status = std::string(to_string(l2.termination)),
                      .l2_upper = upper});
  }
  return points;
}

Table two_norm_table(const std::vector<TwoNormPoint>& points) {
  Table table{{"n", "lower_bound", "lower_bound_2", "lower_bound_3", "lower_bound_4",
               "lower_bound_5", "lower_bound_median", "lower_bound_analytic", "upper_bound",
               "bound", "upper_bound_kim2021_2", "tightness_upper_bound", "status"},
              {}};
  for (const TwoNormPoint& p : points) {
    std::vector<Cell> cells{count_cell(p.n)};
    for (std::size_t k = 0; k < shown_starts; ++k) {
      cells.push_back(start_cell(p.lower_bounds, k));
    }
    cells.insert(cells.end(), {number_cell(p.median), number_cell(p.analytic),
                               number_cell(p.best_upper), p.best_name, number_cell(p.kim),
                               tightness_cell(p.best_upper, p.best()), p.status});
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table fit_table(const TwoNormGrowth& g) {
  return {{"curve", "slope_estimate", "intercept_estimate", "exponent_estimate", "factor_estimate",
           "r_squared_estimate"},
          {{std::string("a log n + b"), number_cell(g.logarithm.slope),
            number_cell(g.logarithm.intercept), Cell(), Cell(), number_cell(g.logarithm.r_squared)},
           {std::string("a W((n-1)/e) + b"), number_cell(g.lambert.slope),
            number_cell(g.lambert.intercept), Cell(), Cell(), number_cell(g.lambert.r_squared)},
           {std::string("c n^p"), Cell(), Cell(), number_cell(g.power.exponent),
            number_cell(g.power.factor), number_cell(g.power.r_squared)},
           {std::string("c n^p, lower half of the n"), Cell(), Cell(),
            number_cell(g.power_early.exponent), number_cell(g.power_early.factor),
            number_cell(g.power_early.r_squared)},
           {std::string("c n^p, upper half of the n"), Cell(), Cell(),
            number_cell(g.power_late.exponent), number_cell(g.power_late.factor),
            number_cell(g.power_late.r_squared)}}};
}

Table divergence_table(const std::vector<DivergencePoint>& points) {
  Table table{{"attention", "n", "steps", "lower_bound", "upper_bound", "status"}, {}};
  for (const bool dot : {true, false}) {
    for (const DivergencePoint& p : points) {
      table.rows.push_back({std::string(dot ? "dot" : "l2"), count_cell(divergence_tokens),
                            count_cell(p.steps), dot ? p.dot : p.l2,
                            number_cell(dot ? std::nan("") : p.l2_upper),
                            dot ? p.dot_status : p.l2_status});
    }
  }
  return table;
}

std::string curve(const std::string& name, std::size_t style, const std::string& title) {
  return fmt::format(
      "${} using 1:2 with linespoints dt {} lw 1.8 lc rgb \"{}\" pt {} ps 0.9 title \"{}\" "
      "noenhanced",
      name, plot_dashes.at(style), plot_colours.at(style), plot_marks.at(style), title);
}

std::string two_norm_figure(const std::vector<TwoNormPoint>& points) {
  PlotPoints kim;
  PlotPoints upper;
  PlotPoints best;
  PlotPoints others;
  PlotPoints analytic;
  for (const TwoNormPoint& p : points) {
    const auto n = static_cast<double>(p.n);
    kim.emplace_back(n, p.kim);
    upper.emplace_back(n, p.best_upper);
    best.emplace_back(n, p.best());
    analytic.emplace_back(n, p.analytic);
    for (std::size_t k = 1; k < p.lower_bounds.size(); ++k) {
      others.emplace_back(n, p.lower_bounds[k]);
    }
  }
  return data_block("kim", kim) + data_block("upper", upper) + data_block("best", best) +
         data_block("analytic", analytic) + data_block("others", others) +
         into_svg(
             "appendix-two-norm",
             log_ranges({&kim, &upper, &best, &others}) +
                 "set logscale xy\nset xlabel \"number of tokens, n\"\nset ylabel \"Lipschitz "
                 "constant, norm 2\"\nset ytics (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)\n"
                 "set grid xtics ytics lt 1 lc rgb \"#dddddd\"\nset key left top Left reverse\n"
                 "plot " +
                 curve("kim", 1, "upper bound kim2021_2") + ", \\\n     " +
                 curve("upper", 2, "upper bound, smallest of the catalogue") + ", \\\n     " +
                 curve("best", 0, "lower bound, best start") +
                 fmt::format(", \\\n     $others using 1:2 with points pt 6 ps 0.9 lc rgb "
                             "\"{}\" title \"lower bound, starts 2 to 5\", \\\n     $analytic "
                             "using 1:2 with points pt 1 ps 1.6 lc rgb \"{}\" title \"lower "
                             "bound, analytic tokens as they are\"\n",
                             plot_colours.at(0), plot_colours.at(4)));
}

std::string divergence_figure(const std::vector<DivergencePoint>& points) {
  PlotPoints dot;
  PlotPoints l2;
  PlotPoints upper;
  for (const DivergencePoint& p : points) {
    const auto steps = static_cast<double>(p.steps);
    dot.emplace_back(steps, p.dot);
    l2.emplace_back(steps, p.l2);
    upper.emplace_back(steps, p.l2_upper);
  }
  return data_block("dot", dot) + data_block("l2", l2) + data_block("upper", upper) +
         into_svg("appendix-divergence",
                  log_ranges({&dot, &l2, &upper}) +
                      "set logscale xy\nset xlabel \"ascent steps\"\nset ylabel \"norm inf of the "
                      "Jacobian\"\nset xtics (10, 20, 50, 100, 200, 400, 800)\n"
                      "set grid xtics ytics lt 1 lc rgb "
                      "\"#dddddd\"\nset key left top Left reverse\nplot " +
                      curve("dot", 1, "dot-product attention, lower bound") + ", \\\n     " +
                      curve("l2", 0, "L2 attention, lower bound") +
                      fmt::format(", \\\n     $upper using 1:2 with lines dt {} lw 1.8 lc rgb "
                                  "\"{}\" title \"L2 attention, upper bound sharp_l2_inf\" "
                                  "noenhanced\n",
                                  plot_dashes.at(2), plot_colours.at(2)));
}

std::string growth_sentence(const std::vector<TwoNormPoint>& points) {
  const TwoNormGrowth g = two_norm_growth(points);
  if (std::isnan(g.power.r_squared)) {
    return "Too few points for a curve through the lower bounds of |J|_2.";
  }
  for (const TwoNormPoint& p : points) {
    if (p.best() > p.best_upper || p.best() > p.kim) {
      return fmt::format(
          "At n = {} a lower bound of |J|_2 lies above an upper bound: a bound or a measurement is "
          "wrong.",
          p.n);
    }
  }
  std::string text = fmt::format(
      "Through the best lower bounds of |J|_2 a power of n has exponent {:.3f} in the lower half "
      "of "
      "the n and {:.3f} in the upper: {}. Curves of two parameters have R^2 = {:.5f} (a log n + "
      "b), "
      "{:.5f} (a W((n-1)/e) + b) and {:.5f} (c n^p).",
      g.power_early.exponent, g.power_late.exponent,
      grows_slower_than_powers(g)
          ? "it falls, consistent with O(log n), which so few n do not prove"
          : "it does not fall as that of O(log n) would",
      g.logarithm.r_squared, g.lambert.r_squared, g.power.r_squared);
  const TwoNormPoint& last = points.back();
  return text + fmt::format(
                    " At n = {} the bound of the paper, corrected, is {:.3g} times the best lower "
                    "bound, the smallest of the catalogue {:.3g} times.",
                    last.n, last.kim / last.best(), last.best_upper / last.best());
}

std::string divergence_sentence(const std::vector<DivergencePoint>& points) {
  if (points.size() < 2) {
    return "No ascent on dot-product attention was followed.";
  }
  const DivergencePoint& before = points[points.size() - 2];
  const DivergencePoint& last = points.back();
  std::string text = fmt::format(
      "The ascent on |J|_inf of dot-product attention {}: from {} after {} steps to {} after {}, "
      "the last doubling by a factor of {:.3g}",
      diverges(points) ? "keeps growing" : "does not keep growing", lower_text(points.front().dot),
      points.front().steps, lower_text(last.dot), last.steps, last.dot / before.dot);
  const bool held = std::all_of(points.begin(), points.end(),
                                [](const DivergencePoint& p) { return p.l2 <= p.l2_upper; });
  return text + (held ? fmt::format("; the same ascent on L2 attention ends at {}, below the bound "
                                    "{}.",
                                    lower_text(last.l2), upper_text(last.l2_upper))
                      : std::string("; the same ascent on L2 attention exceeds its bound, which is "
                                    "wrong."));
}

}  // namespace

double TwoNormPoint::best() const {
  return std::fmax(lower_bounds.empty() ? 0.0 : lower_bounds.front(), analytic);
}

TwoNormGrowth two_norm_growth(const std::vector<TwoNormPoint>& points) {
  PlotPoints by_log;
  PlotPoints by_lambert;
  PlotPoints by_n;
  for (const TwoNormPoint& p : points) {
    const auto n = static_cast<double>(p.n);
    by_log.emplace_back(std::log(n), p.best());
    by_lambert.emplace_back(phi_inverse(n - 1.0), p.best());
    by_n.emplace_back(n, p.best());
  }
  const auto half = static_cast<std::ptrdiff_t>(by_n.size() / 2);
  return {.logarithm = fit_line(by_log),
          .lambert = fit_line(by_lambert),
          .power = fit_power(by_n),
          .power_early = fit_power({by_n.begin(), by_n.begin() + half}),
          .power_late = fit_power({by_n.begin() + half, by_n.end()})};
}

bool grows_slower_than_powers(const TwoNormGrowth& growth) {
  return growth.power_late.exponent <= falling * growth.power_early.exponent;
}

bool diverges(const std::vector<DivergencePoint>& points) {
  if (points.size() < 2 || points.back().dot_status == "converged") {
    return false;
  }
  for (std::size_t k = 1; k < points.size(); ++k) {
    if (!(points[k].dot > points[k - 1].dot)) {
      return false;
    }
  }
  return points.back().dot >= 1.5 * points[points.size() - 2].dot;
}

std::string appendix_ascent_verdict(const std::vector<TwoNormPoint>& two_norm,
                                    const std::vector<DivergencePoint>& divergence) {
  return growth_sentence(two_norm) + " " + divergence_sentence(divergence);
}

std::vector<Agreement> appendix_ascent_agreements(const std::vector<PaperFact>& facts,
                                                  const std::vector<TwoNormPoint>& two_norm,
                                                  const std::vector<DivergencePoint>& divergence) {
  std::vector<Agreement> agreements;
  for (const PaperFact& fact : facts) {
    Agreement agreement{.fact = fact};
    const auto set = [&](const std::string& ours, bool agrees) {
      agreement.ours = ours;
      agreement.agreement = agrees ? "agrees" : "does not agree";
    };
    if (fact.quantity.find("dot-product") != std::string::npos && !divergence.empty()) {
      set(fmt::format("{} after {} steps", lower_text(divergence.back().dot),
                      divergence.back().steps),
          diverges(divergence));
      agreement.kind = "lower bound";
    } else if (fact.quantity.find("Lip_2") != std::string::npos) {
      const TwoNormGrowth g = two_norm_growth(two_norm);
      if (std::isnan(g.power.r_squared)) {
        continue;
      }
      agreement.ours = fmt::format("exponent of a power of n: {:.3f}, then {:.3f}",
                                   g.power_early.exponent, g.power_late.exponent);
      agreement.agreement = grows_slower_than_powers(g) ? "consistent" : "does not agree";
      agreement.kind = "estimate";
    } else {
      agreement = not_tested(fact);
    }
    agreements.push_back(std::move(agreement));
  }
  return agreements;
}

ReportSection section_appendix_ascent(const PaperTableOptions& options) {
  const std::vector<TwoNormPoint> two_norm = ascend(options);
  const std::vector<DivergencePoint> divergence = diverge(options);
  const SweepSettings settings = settings_of(options);
  std::string tokens;
  for (const Index n : settings.tokens) {
    tokens += fmt::format("{}{}", tokens.empty() ? "" : ",", n);
  }

  ReportSection section;
  section.name = "appendix-ascent";
  section.title = "Appendix: ascent in the 2-norm, and on dot-product attention";
  section.claim =
      "An ascent on |J|_2 of L2 attention is harder than in the infinity norm, and what it finds "
      "looks like O(log n); an ascent on |J|_inf of dot-product attention diverges.";
  section.method = fmt::format(
      "D = H = 1, unit weights, seed {}. L2 attention: ascent on |J|_2 from two analytic sets of "
      "tokens and {} random starts, {} steps; beside it the corrected bound of the paper and the "
      "smallest bound of the catalogue, which grows like n^(1/4) log n. Curves by least squares in "
      "|J|_2. W((n-1)/e) is log n up to log log n; at the analytic tokens |J|_2 is at least 2 c + "
      "1/(1 + c), c = W((n-1)/e), for odd n. Growth counts as consistent with O(log n) when the "
      "exponent of the power falls by a tenth or more from the lower to the upper half of the n. "
      "Divergence: n = {}, {} random starts without analytic ones, tokens free to go "
      "anywhere, each number of steps an ascent of its own from the same starts.",
      options.seed, settings.restarts, settings.steps, divergence_tokens,
      divergence_restarts_of(options.full));
  section.command = command_of(options, section.name);
  section.tables = {
      {.name = "appendix-two-norm",
       .caption = "2-norm of L2 attention: lower bounds of the ascent and upper bounds.",
       .table = two_norm_table(two_norm)},
      {.name = "appendix-growth",
       .caption = "Curves through the best lower bounds over n.",
       .table = fit_table(two_norm_growth(two_norm))},
      {.name = "appendix-divergence",
       .caption = "The best lower bound of |J|_inf after so many steps.",
       .table = divergence_table(divergence)}};
  section.figures = {{.name = "appendix-two-norm",
                      .caption = "Ascent on |J|_2 of L2 attention between its bounds.",
                      .script = two_norm_figure(two_norm)},
                     {.name = "appendix-divergence",
                      .caption = "Ascent on |J|_inf of dot-product and of L2 attention, by steps.",
                      .script = divergence_figure(divergence)}};
  section.agreements =
      appendix_ascent_agreements(facts_at(options, "Appendix"), two_norm, divergence);
  section.verdict = appendix_ascent_verdict(two_norm, divergence);
  return section;
}

}  // namespace lipsa
