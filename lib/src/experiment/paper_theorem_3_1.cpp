#include "experiment/paper_theorem_3_1.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "experiment/paper_parts.hpp"
#include "experiment/paper_sections.hpp"
#include "experiment/plot_style.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/experiment/sweep.hpp"
#include "lipsa/model/initial_weights.hpp"
#include "lipsa/model/layer_file.hpp"
#include "lipsa/search/counterexample.hpp"

namespace lipsa {
namespace {

const std::vector<Norm> norms{Norm::one, Norm::two, Norm::inf};
const std::vector<double> radii{1.0, 3.2, 10.0, 32.0, 100.0, 316.0, 1000.0};
constexpr double to_exceed = 1e6;
constexpr Index widest_climbed = 128;  // beyond, an ascent takes minutes: pairs alone

/// A layer to look at, and how hard.
struct Subject31 {
  std::string name;     ///< as the tables have it
  std::string weights;  ///< as SweepSettings
  Index D;              ///< of weights made up
  Index H;
  Index n;
  Index restarts;
  Index steps;
};

Index steps_from_file(bool full) {
  return full ? 100 : 5;
}

std::vector<Subject31> subjects_of(const PaperTableOptions& options) {
  const Index restarts = options.full ? 20 : 3;
  std::vector<Subject31> subjects{{"identity", "identity", 1, 1, 3, restarts, 400},
                                  {"glorot", "glorot", 16, 2, 8, restarts, 400}};
  for (const std::filesystem::path& path : options.weights) {
    // Trained layers are wide: from their analytic tokens, a short way up.
    subjects.push_back({path.filename().string(), path.string(), 0, 0, 8, options.full ? 3 : 0,
                        steps_from_file(options.full)});
  }
  return subjects;
}

SweepSettings settings_of(const Subject31& subject, std::uint64_t seed) {
  SweepSettings settings;
  settings.attention = {AttentionKind::dot};
  settings.norms = norms;
  settings.tokens = {subject.n};
  settings.radii = radii;
  settings.weights = subject.weights;
  settings.restarts = subject.restarts;
  settings.steps = subject.steps;
  settings.seed = seed;
  if (subject.D > 0) {
    settings.dims = {subject.D};
    settings.heads = {subject.H};
  }
  return settings;
}

MultiHead layer_of(const Subject31& subject, std::uint64_t seed) {
  return subject.D > 0 ? initial_layer(parse_initialiser(subject.weights), AttentionKind::dot,
                                       subject.D, subject.H, seed)
                       : read_layer_file(subject.weights, AttentionKind::dot).layer;
}

/// What was found of one layer.
struct Found31 {
  std::string name;
  std::vector<SweepRow> rows;
  std::vector<DotGrowth> growth;
  std::vector<DotPair> pairs;
};

DotGrowth growth_of(const std::string& name, const std::vector<SweepRow>& curve) {
  const SweepRow& any = curve.front();
  DotGrowth growth{.weights = name, .norm = any.norm, .n = any.n, .D = any.D, .H = any.H};
  for (const GrowthFit& fit : fit_growth(curve)) {
    growth.radius_from = fit.radius_from;
    growth.radius_to = fit.radius_to;
    growth.slope = fit.slope;
    growth.slope_witness = fit.slope_witness;
  }
  return growth;
}

DotPair pair_of(const std::string& name, const MultiHead& layer, Index n, Norm norm,
                std::uint64_t seed) {
  DotPair pair{.weights = name,
               .norm = norm,
               .n = n,
               .D = layer.width(),
               .H = layer.heads,
               .exceeds = to_exceed};
  const Mask mask = Mask::none();
  for (const Bound& bound : bounds_for({.layer = layer, .mask = mask, .tokens = n}, norm)) {
    if (bound.holds && std::isinf(bound.value)) {
      pair.theorem = bound.name;
    }
  }
  const Counterexample found =
      find_counterexample(layer, mask, n, {.norm = norm, .exceed = to_exceed, .seed = seed});
  pair.found = found.witness.has_value();
  if (pair.found) {
    pair.verdict = verify(*found.witness);
  }
  return pair;
}

Found31 look_at(const Subject31& subject, std::uint64_t seed) {
  Found31 found{.name = subject.name, .rows = {}, .growth = {}, .pairs = {}};
  const MultiHead layer = layer_of(subject, seed);
  if (layer.width() <= widest_climbed) {
    const Sweep sweep(settings_of(subject, seed));
    const auto a_curve = static_cast<Index>(radii.size());
    for (Index k = 0; k < sweep.size(); ++k) {
      found.rows.push_back(sweep.run(k));
      if ((k + 1) % a_curve == 0) {
        found.growth.push_back(
            growth_of(subject.name, {found.rows.end() - a_curve, found.rows.end()}));
      }
    }
  }
  for (const Norm norm : norms) {
    found.pairs.push_back(pair_of(subject.name, layer, subject.n, norm, seed));
  }
  return found;
}

std::string name_of(Norm norm) {
  return std::string(to_string(norm));
}

Table growth_table(const std::vector<Found31>& all) {
  Table table{{"weights", "n", "D", "H", "norm", "radius", "lower_bound", "lower_bound_source",
               "lower_bound_witness", "witness", "upper_bound", "bound", "status"},
              {}};
  for (const Found31& found : all) {
    for (const SweepRow& row : found.rows) {
      const SweepBound bound = smallest_bound_of(row);
      const bool finite = std::isfinite(bound.value);
      table.rows.push_back({found.name, count_cell(row.n), count_cell(row.D), count_cell(row.H),
                            name_of(row.norm), row.radius, lower_bound_of(row),
                            row.lower_bound_source, number_cell(row.lower_bound_witness),
                            row.witness, finite ? Cell(bound.value) : Cell(),
                            finite ? Cell(bound.name) : Cell(), row.status});
    }
  }
  return table;
}

Table slope_table(const std::vector<DotGrowth>& growth) {
  Table table{{"weights", "n", "D", "H", "norm", "radius_from", "radius_to", "slope_estimate",
               "slope_witness_estimate"},
              {}};
  for (const DotGrowth& g : growth) {
    table.rows.push_back({g.weights, count_cell(g.n), count_cell(g.D), count_cell(g.H),
                          name_of(g.norm), g.radius_from, g.radius_to, number_cell(g.slope),
                          number_cell(g.slope_witness)});
  }
  return table;
}

Table pair_table(const std::vector<DotPair>& pairs) {
  Table table{{"weights", "n", "D", "H", "norm", "exceeds", "certified_lower_bound",
               "certified_upper_bound", "bits", "theorem", "status"},
              {}};
  for (const DotPair& p : pairs) {
    const bool number = p.found && std::isfinite(p.verdict.ratio_upper_bound);
    table.rows.push_back({p.weights, count_cell(p.n), count_cell(p.D), count_cell(p.H),
                          name_of(p.norm), p.exceeds,
                          number ? Cell(p.verdict.ratio_lower_bound) : Cell(),
                          number ? Cell(p.verdict.ratio_upper_bound) : Cell(),
                          p.found ? count_cell(p.verdict.bits) : Cell(), p.theorem,
                          std::string(p.found ? to_string(p.verdict.outcome) : "not found")});
  }
  return table;
}

std::string growth_figure(const std::vector<Found31>& all) {
  std::string data;
  std::string plot =
      R"(plot x**2 with lines dt (2,6) lw 1.5 lc rgb "#555555" title "R^2, for comparison")";
  int curve = 0;
  for (std::size_t w = 0; w < all.size(); ++w) {
    if (all[w].rows.empty()) {
      continue;
    }
    for (std::size_t p = 0; p < norms.size(); ++p) {
      PlotPoints points;
      for (const SweepRow& row : all[w].rows) {
        if (row.norm == norms[p]) {
          points.emplace_back(row.radius, lower_bound_of(row));
        }
      }
      const std::string name = fmt::format("curve{}", curve++);
      data += data_block(name, points);
      plot += fmt::format(
          ", \\\n     ${} using 1:2 with linespoints dt {} lw 1.8 lc rgb \"{}\" pt {} ps 0.9 title "
          "\"{}, norm {}\" noenhanced",
          name, plot_dashes.at(p), plot_colours.at(w % plot_colours.size()),
          plot_marks.at(w % plot_marks.size()), all[w].name, to_string(norms[p]));
    }
  }
  return data + into_svg("theorem-3-1",
                         "set logscale xy\nset xlabel \"radius of the ball of tokens, R\"\n"
                         "set ylabel \"norm of the Jacobian, lower bound\"\nset xrange [0.8:1250]\n"
                         "set format y \"10^{%L}\"\nset grid xtics ytics lt 1 lc rgb \"#dddddd\"\n"
                         "set key outside right top Left reverse\n" +
                             plot + "\n");
}

std::vector<Norm> proved_norms(const std::vector<DotPair>& pairs) {
  std::vector<Norm> proved;
  for (const Norm norm : norms) {
    bool all = false;
    for (const DotPair& pair : pairs) {
      if (pair.norm == norm) {
        all = is_proved(pair);
        if (!all) {
          break;
        }
      }
    }
    if (all) {
      proved.push_back(norm);
    }
  }
  return proved;
}

std::string list_of(const std::vector<Norm>& some) {
  std::string text;
  for (const Norm norm : some) {
    text += (text.empty() ? "" : ", ") + name_of(norm);
  }
  return text;
}

double least_ratio(const std::vector<DotPair>& pairs) {
  double least = std::numeric_limits<double>::infinity();
  for (const DotPair& pair : pairs) {
    if (is_proved(pair)) {
      least = std::min(least, pair.verdict.ratio_lower_bound);
    }
  }
  return least;
}

std::string slope_sentence(const std::vector<DotGrowth>& growth) {
  std::string others;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  double least_ascent = least;
  double most_ascent = most;
  for (const DotGrowth& g : growth) {
    if (!grows_quadratically(g)) {
      others +=
          fmt::format("{}{} in norm {}", others.empty() ? "" : ", ", g.weights, to_string(g.norm)) +
          (std::isnan(g.slope_witness) ? std::string(" (no slope)")
                                       : fmt::format(" ({:.3f})", g.slope_witness));
    }
    if (!std::isnan(g.slope_witness)) {
      least = std::min(least, g.slope_witness);
      most = std::max(most, g.slope_witness);
    }
    if (!std::isnan(g.slope)) {
      least_ascent = std::min(least_ascent, g.slope);
      most_ascent = std::max(most_ascent, g.slope);
    }
  }
  if (growth.empty()) {
    return "No growth was measured.";
  }
  const auto quadratic = std::count_if(growth.begin(), growth.end(), &grows_quadratically);
  std::string text =
      others.empty()
          ? fmt::format(
                "At analytic tokens |J| grows like R^{:.3f} to R^{:.3f} in all {} curves, within "
                "[1.9, 2.1]: quadratically",
                least, most, growth.size())
          : fmt::format(
                "At analytic tokens |J| grows quadratically (slope within [1.9, 2.1]) in {} of {} "
                "curves; not at the radii looked at in {}",
                quadratic, growth.size(), others);
  if (std::isfinite(least_ascent)) {
    text += fmt::format("; the best lower bounds of the ascent have slopes from {:.3f} to {:.3f}",
                        least_ascent, most_ascent);
  }
  return text + ".";
}

}  // namespace

bool grows_quadratically(const DotGrowth& growth) {
  return growth.slope_witness >= 1.9 && growth.slope_witness <= 2.1;
}

bool is_proved(const DotPair& pair) {
  return pair.found && pair.verdict.outcome == Outcome::proved &&
         pair.verdict.ratio_lower_bound >= pair.exceeds;
}

std::string theorem_3_1_verdict(const std::vector<DotGrowth>& growth,
                                const std::vector<DotPair>& pairs) {
  const auto proved = std::count_if(pairs.begin(), pairs.end(), &is_proved);
  const std::string growth_text = slope_sentence(growth);
  if (pairs.empty() || proved == 0) {
    return growth_text + " No counterexample was proved.";
  }
  if (proved == static_cast<std::ptrdiff_t>(pairs.size())) {
    return growth_text +
           fmt::format(
               " For every layer and norm a pair of inputs refutes the constant K = {:g}, proved "
               "in ball arithmetic: the smallest ratio is at least {}.",
               pairs.front().exceeds, lower_text(least_ratio(pairs)));
  }
  std::string missing;
  for (const DotPair& pair : pairs) {
    if (!is_proved(pair)) {
      missing += fmt::format("{}{} in norm {}", missing.empty() ? "" : ", ", pair.weights,
                             to_string(pair.norm));
    }
  }
  return growth_text +
         fmt::format(
             " A pair of inputs refutes the constant K = {:g}, proved, in {} of {} cases; "
             "not for {}.",
             pairs.front().exceeds, proved, pairs.size(), missing);
}

std::vector<Agreement> theorem_3_1_agreements(const std::vector<PaperFact>& facts,
                                              const std::vector<DotPair>& pairs) {
  std::vector<Agreement> agreements;
  const std::vector<Norm> proved = proved_norms(pairs);
  for (const PaperFact& fact : facts) {
    Agreement agreement{.fact = fact};
    if (proved.empty()) {
      agreement.ours = std::string("no counterexample proved");
      agreement.agreement = "not shown";
    } else {
      agreement.ours =
          fmt::format("K = {:g} refuted for p = {}, ratio at least {}", pairs.front().exceeds,
                      list_of(proved), lower_text(least_ratio(pairs)));
      agreement.kind = "certified";
      agreement.agreement = "agrees for p = " + list_of(proved);
    }
    agreements.push_back(std::move(agreement));
  }
  return agreements;
}

ReportSection section_theorem_3_1(const PaperTableOptions& options) {
  std::vector<Found31> all;
  std::vector<DotGrowth> growth;
  std::vector<DotPair> pairs;
  std::string left_out;
  const std::vector<Subject31> subjects = subjects_of(options);
  const Subject31& first = subjects.front();
  for (const Subject31& subject : subjects) {
    all.push_back(look_at(subject, options.seed));
    if (all.back().growth.empty()) {
      left_out +=
          fmt::format(" {} has more than {} features: pairs alone.", subject.name, widest_climbed);
    }
    growth.insert(growth.end(), all.back().growth.begin(), all.back().growth.end());
    pairs.insert(pairs.end(), all.back().pairs.begin(), all.back().pairs.end());
  }

  ReportSection section;
  section.name = "theorem-3.1";
  section.title = "Theorem 3.1: dot-product attention is not Lipschitz";
  section.claim =
      "Dot-product multi-head self-attention is not Lipschitz in any p-norm, p in [1, inf]: its "
      "Jacobian grows without end with the tokens.";
  section.method =
      fmt::format(
          "Lower bounds of |J| for p = 1, 2, inf with all tokens in a ball of radius R, by ascent "
          "from analytic tokens and {} random starts, {} steps, seed {}{}. Slopes of log(lower "
          "bound) over log R by least "
          "squares over the upper half of the radii. Pairs X, Y with |F(X) - F(Y)| > K |X - Y|, K "
          "= {:g}, are constructed at a token that weighs two others alike and proved in ball "
          "arithmetic; "
          "'theorem' names the entry of the catalogue by which no constant exists.",
          first.restarts, first.steps, options.seed,
          options.weights.empty()
              ? std::string()
              : fmt::format("; in layers read from files from analytic tokens{}, {} steps",
                            options.full ? " and 3 random starts" : " alone",
                            steps_from_file(options.full)),
          to_exceed) +
      left_out;
  section.command = command_of(options, section.name);
  section.tables = {
      {.name = "theorem-3-1-growth",
       .caption = "Norms of the Jacobian of dot-product attention on balls of tokens, from below, "
                  "and the smallest bound of the catalogue.",
       .table = growth_table(all),
       .shown = {"weights", "n", "D", "H", "norm", "radius", "lower_bound", "lower_bound_witness",
                 "upper_bound", "bound", "status"}},
      {.name = "theorem-3-1-slopes",
       .caption = "Growth of the lower bounds with the radius: exponents.",
       .table = slope_table(growth)},
      {.name = "theorem-3-1-pairs",
       .caption = "Pairs of inputs that refute the constant K: |F(X) - F(Y)|/|X - Y|, certified.",
       .table = pair_table(pairs)}};
  section.figures = {{.name = "theorem-3-1",
                      .caption = "Lower bounds of |J| against the radius of the ball of tokens.",
                      .script = growth_figure(all)}};
  section.agreements = theorem_3_1_agreements(facts_at(options, "Theorem 3.1"), pairs);
  section.verdict = theorem_3_1_verdict(growth, pairs);
  return section;
}

}  // namespace lipsa
