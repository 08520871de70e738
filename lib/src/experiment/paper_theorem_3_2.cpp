#include "experiment/paper_theorem_3_2.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiment/paper_parts.hpp"
#include "experiment/paper_sections.hpp"
#include "experiment/plot_style.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/bounds/lambert.hpp"
#include "lipsa/experiment/sweep.hpp"
#include "lipsa/search/refute.hpp"

namespace lipsa {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Part of the grid: all combinations.
struct Grid {
  std::string weights;
  std::vector<Index> tokens;
  std::vector<Index> dims;
  std::vector<Index> heads;
};

std::vector<Grid> grids_of(bool full) {
  if (full) {
    const std::vector<Index> tokens{2, 4, 8, 16, 32, 64, 128};
    return {{"identity", tokens, {1}, {1}},
            {"identity", tokens, {4}, {1, 2}},
            {"glorot", tokens, {4, 8, 16, 32}, {1, 2, 4}}};
  }
  const std::vector<Index> tokens{2, 4, 8, 16, 32};
  return {{"identity", tokens, {1}, {1}},
          {"identity", tokens, {4}, {2}},
          {"glorot", tokens, {4, 8}, {1, 2}}};
}

Index restarts_of(bool full) {
  return full ? 20 : 3;
}

std::vector<L2Bounds> measure(const PaperTableOptions& options) {
  std::vector<L2Bounds> rows;
  for (const Norm norm : {Norm::inf, Norm::two}) {
    for (const Grid& grid : grids_of(options.full)) {
      SweepSettings settings;
      settings.norms = {norm};
      settings.tokens = grid.tokens;
      settings.dims = grid.dims;
      settings.heads = grid.heads;
      settings.weights = grid.weights;
      settings.restarts = restarts_of(options.full);
      settings.seed = options.seed;
      const Sweep sweep(settings);
      for (Index k = 0; k < sweep.size(); ++k) {
        const SweepRow row = sweep.run(k);
        const SweepBound best = smallest_bound_of(row);
        rows.push_back({.weights = grid.weights,
                        .norm = norm,
                        .n = row.n,
                        .D = row.D,
                        .H = row.H,
                        .lower_bound = lower_bound_of(row),
                        .published = bound_of(row, norm == Norm::inf ? "kim2021_inf" : "kim2021_2"),
                        .printed = bound_of(row, "kim2021_2_printed"),
                        .sharp = bound_of(row, "sharp_l2_inf"),
                        .best = best.value,
                        .best_name = best.name,
                        .status = row.status});
      }
    }
  }
  return rows;
}

L2Violation examine(const std::string& found_by, const Witness& witness) {
  const BoundSetting setting{
      .layer = witness.layer, .mask = witness.mask, .tokens = witness.x.rows()};
  return {.found_by = found_by,
          .n = witness.x.rows(),
          .D = witness.x.cols(),
          .H = witness.layer.heads,
          .printed = find_entry("kim2021_2_printed").evaluate(setting).value,
          .corrected = find_entry("kim2021_2").evaluate(setting).value,
          .verdict = verify(witness)};
}

/// n = 2, D = 1, W_Q = 5: equal tokens, at which |J|_2 = 25.
Witness two_equal_tokens() {
  Witness witness;
  witness.form = WitnessForm::direction;
  witness.layer.kind = AttentionKind::l2;
  witness.layer.W_Q = Matrix::Constant(1, 1, 5.0);
  witness.layer.W_V = Matrix::Ones(1, 1);
  witness.layer.W_O = Matrix::Ones(1, 1);
  witness.norm = Norm::two;
  witness.bound = "kim2021_2_printed";
  witness.x = Matrix::Zero(2, 1);
  witness.y = Matrix::Ones(2, 1);
  const Mask mask = Mask::none();
  witness.exceeds =
      find_entry(witness.bound).evaluate({.layer = witness.layer, .mask = mask, .tokens = 2}).value;
  return witness;
}

std::vector<L2Violation> violate(const PaperTableOptions& options) {
  std::vector<L2Violation> violations;
  const Refutation refutation = refute("kim2021_2_printed", {.seed = options.seed});
  if (refutation.witness) {
    violations.push_back(examine("search: " + refutation.found_by, *refutation.witness));
  }
  violations.push_back(examine("two equal tokens, W_Q = 5", two_equal_tokens()));
  return violations;
}

Table bounds_table(const std::vector<L2Bounds>& rows, Norm norm) {
  Table table{{"weights", "n", "D", "H", "lower_bound",
               "upper_bound_" + std::string(norm == Norm::inf ? "kim2021_inf" : "kim2021_2")},
              {}};
  table.columns.emplace_back(norm == Norm::inf ? "upper_bound_sharp_l2_inf"
                                               : "refuted_kim2021_2_printed");
  table.columns.insert(table.columns.end(),
                       {"upper_bound", "bound", "tightness_upper_bound", "status"});
  for (const L2Bounds& row : rows) {
    if (row.norm != norm) {
      continue;
    }
    std::vector<Cell> cells{row.weights,       count_cell(row.n), count_cell(row.D),
                            count_cell(row.H), row.lower_bound,   number_cell(row.published)};
    cells.push_back(number_cell(norm == Norm::inf ? row.sharp : row.printed));
    cells.push_back(number_cell(row.best));
    cells.emplace_back(row.best_name);
    cells.push_back(tightness_cell(row.best, row.lower_bound));
    cells.emplace_back(row.status);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table violation_table(const std::vector<L2Violation>& violations) {
  Table table{{"found_by", "n", "D", "H", "refuted_kim2021_2_printed", "certified_lower_bound",
               "certified_upper_bound", "upper_bound_kim2021_2", "bits", "status"},
              {}};
  for (const L2Violation& v : violations) {
    table.rows.push_back({v.found_by, count_cell(v.n), count_cell(v.D), count_cell(v.H),
                          number_cell(v.printed), v.verdict.ratio_lower_bound,
                          v.verdict.ratio_upper_bound, number_cell(v.corrected),
                          count_cell(v.verdict.bits), std::string(to_string(v.verdict.outcome))});
  }
  return table;
}

/// One layer of the grid over n: a panel a norm.
std::string bounds_figure(const std::vector<L2Bounds>& rows, const std::string& weights, Index D,
                          Index H) {
  std::string data;
  std::string plots = "set multiplot layout 1,2\n";
  plots +=
      "set logscale xy\nset xlabel \"number of tokens, n\"\n"
      "set grid xtics ytics lt 1 lc rgb \"#dddddd\"\nset bmargin 8\nset key at graph 0.45, screen "
      "0.01 center bottom vertical maxrows 4 Left reverse\n";
  for (const Norm norm : {Norm::inf, Norm::two}) {
    const bool two = norm == Norm::two;
    PlotPoints published;
    PlotPoints printed;
    PlotPoints sharp;
    PlotPoints best;
    PlotPoints lower;
    std::string ticks;
    for (const L2Bounds& row : rows) {
      if (row.norm == norm && row.weights == weights && row.D == D && row.H == H) {
        const auto n = static_cast<double>(row.n);
        published.emplace_back(n, row.published);
        printed.emplace_back(n, row.printed);
        sharp.emplace_back(n, row.sharp);
        best.emplace_back(n, row.best);
        lower.emplace_back(n, row.lower_bound);
        ticks += fmt::format("{}{}", ticks.empty() ? "" : ", ", row.n);
      }
    }
    const std::string p = two ? "two" : "inf";
    const auto curve = [&](const std::string& name, const PlotPoints& points, std::size_t style,
                           const std::string& title) {
      data += data_block(p + name, points);
      return fmt::format(
          "${}{} using 1:2 with linespoints dt {} lw 1.8 lc rgb \"{}\" pt {} ps 0.9 title \"{}\" "
          "noenhanced",
          p, name, plot_dashes.at(style), plot_colours.at(style), plot_marks.at(style), title);
    };
    plots += fmt::format(
        "set title \"norm {}\"\nset xtics ({})\nset ylabel \"Lipschitz constant\"\n{}plot ",
        to_string(norm), ticks, log_ranges({&published, &printed, &sharp, &best, &lower}));
    plots +=
        curve("published", published, 1, two ? "upper bound kim2021_2" : "upper bound kim2021_inf");
    plots += ", \\\n     " + curve("best", best, 2, "upper bound, smallest of the catalogue");
    plots += ", \\\n     " + curve("lower", lower, 0, "lower bound, ascent");
    plots += ", \\\n     " + (two ? curve("printed", printed, 3, "refuted kim2021_2_printed")
                                  : curve("sharp", sharp, 3, "upper bound sharp_l2_inf"));
    plots += "\n";
  }
  return data + into_svg("theorem-3-2", plots + "unset multiplot\n");
}

/// What the rows of one norm say.
struct Summary {
  std::size_t rows = 0;
  std::size_t crossed = 0;  ///< the lower bound lies above the published formula
  std::size_t crossed_best = 0;
  double least_ratio = inf;  ///< published/lower
  double most_ratio = 0.0;
  double least_ratio_best = inf;
  double most_ratio_best = 0.0;
};

Summary summarise(const std::vector<L2Bounds>& rows, Norm norm) {
  Summary s;
  for (const L2Bounds& row : rows) {
    if (row.norm != norm || !(row.lower_bound > 0.0)) {
      continue;
    }
    ++s.rows;
    s.crossed += row.lower_bound <= row.published ? 0U : 1U;  // NaN is no bound
    s.crossed_best += row.lower_bound <= row.best ? 0U : 1U;
    s.least_ratio = std::min(s.least_ratio, row.published / row.lower_bound);
    s.most_ratio = std::max(s.most_ratio, row.published / row.lower_bound);
    s.least_ratio_best = std::min(s.least_ratio_best, row.best / row.lower_bound);
    s.most_ratio_best = std::max(s.most_ratio_best, row.best / row.lower_bound);
  }
  return s;
}

std::string norm_sentence(const Summary& s, std::string_view norm, std::string_view published,
                          std::string_view best) {
  if (s.rows == 0) {
    return fmt::format("Nothing was measured in the {}.", norm);
  }
  if (s.crossed + s.crossed_best > 0) {
    return fmt::format(
        "In the {} a lower bound lies above {} in {} and above {} in {} of {} configurations: a "
        "bound or a measurement is wrong.",
        norm, published, s.crossed, best, s.crossed_best, s.rows);
  }
  return fmt::format(
      "In the {} every lower bound lies below {}, which is {:.3g} to {:.3g} times as large, and "
      "below {}, {:.3g} to {:.3g} times as large, in {} configurations.",
      norm, published, s.least_ratio, s.most_ratio, best, s.least_ratio_best, s.most_ratio_best,
      s.rows);
}

const L2Violation* strongest(const std::vector<L2Violation>& violations) {
  const L2Violation* found = nullptr;
  for (const L2Violation& v : violations) {
    if (is_violated(v) &&
        (found == nullptr || v.verdict.ratio_lower_bound / v.printed >
                                 found->verdict.ratio_lower_bound / found->printed)) {
      found = &v;
    }
  }
  return found;
}

bool all_corrected(const std::vector<L2Violation>& violations) {
  return std::all_of(violations.begin(), violations.end(), &correction_holds);
}

}  // namespace

bool is_violated(const L2Violation& violation) {
  return violation.verdict.outcome == Outcome::proved &&
         violation.verdict.ratio_lower_bound > violation.printed;
}

bool correction_holds(const L2Violation& violation) {
  return violation.verdict.outcome != Outcome::proved ||
         violation.verdict.ratio_upper_bound <= violation.corrected;
}

std::string theorem_3_2_verdict(const std::vector<L2Bounds>& rows,
                                const std::vector<L2Violation>& violations) {
  std::string text = norm_sentence(summarise(rows, Norm::inf), "infinity norm",
                                   "the published bound", "the smallest of the catalogue") +
                     " " +
                     norm_sentence(summarise(rows, Norm::two), "2-norm", "the corrected bound",
                                   "the smallest of the catalogue");
  const L2Violation* violation = strongest(violations);
  if (violation == nullptr) {
    return text + " No violation of the 2-norm formula as we recall it printed was proved.";
  }
  text += fmt::format(
      " The 2-norm formula as we recall it printed is false: a layer with n = {}, D = {} has |J|_2 "
      "of at least {}, "
      "proved, where it gives {}",
      violation->n, violation->D, lower_text(violation->verdict.ratio_lower_bound),
      upper_text(violation->printed));
  return text + (all_corrected(violations)
                     ? fmt::format("; the corrected one gives {} and holds there.",
                                   upper_text(violation->corrected))
                     : std::string("; the corrected one is not above every certified ratio "
                                   "either."));
}

std::vector<Agreement> theorem_3_2_agreements(const std::vector<PaperFact>& facts,
                                              const std::vector<L2Bounds>& rows,
                                              const std::vector<L2Violation>& violations,
                                              std::pair<double, double> shift) {
  std::vector<Agreement> agreements;
  for (const PaperFact& fact : facts) {
    Agreement agreement{.fact = fact};
    if (fact.quantity.starts_with("Lip_inf")) {
      const Summary s = summarise(rows, Norm::inf);
      agreement.ours = fmt::format("above every lower bound in {} of {} configurations",
                                   s.rows - s.crossed, s.rows);
      agreement.agreement = s.rows > 0 && s.crossed == 0 ? "agrees" : "does not agree";
    } else if (fact.quantity.starts_with("Lip_2")) {
      const L2Violation* violation = strongest(violations);
      if (violation == nullptr) {
        agreement.ours = std::string("no violation proved");
        agreement.agreement = "not refuted";
      } else {
        agreement.ours = fmt::format("|J|_2 at least {} where it gives {}",
                                     lower_text(violation->verdict.ratio_lower_bound),
                                     upper_text(violation->printed));
        agreement.kind = "certified";
        agreement.agreement = "does not agree";
      }
    } else if (fact.quantity.starts_with("phi^-1")) {
      agreement.ours = fmt::format("W(N/e) is larger than W((N-1)/e) by {:.3g} to {:.3g}",
                                   shift.first, shift.second);
      agreement.kind = "estimate";
      agreement.agreement = shift.first > 0.0     ? "does not agree: larger and hence safe"
                            : shift.second == 0.0 ? "agrees"
                                                  : "does not agree";
    } else {
      agreement = not_tested(fact);
    }
    agreements.push_back(std::move(agreement));
  }
  return agreements;
}

ReportSection section_theorem_3_2(const PaperTableOptions& options) {
  const std::vector<L2Bounds> rows = measure(options);
  const std::vector<L2Violation> violations = violate(options);
  std::pair<double, double> shift{inf, -inf};
  std::string tokens;
  const Grid last = grids_of(options.full).back();
  for (const Index n : last.tokens) {
    const double by =
        lambert_w(static_cast<double>(n) / std::exp(1.0)) - phi_inverse(static_cast<double>(n - 1));
    shift = {std::min(shift.first, by), std::max(shift.second, by)};
    tokens += fmt::format("{}{}", tokens.empty() ? "" : ",", n);
  }

  ReportSection section;
  section.name = "theorem-3.2";
  section.title = "Theorem 3.2: bounds of L2 attention";
  section.claim =
      "L2 multi-head self-attention with tied queries and keys is Lipschitz, with a bound that "
      "grows like log n in the infinity norm and like sqrt(n) log n in the 2-norm.";
  section.method = fmt::format(
      "Bounds of the catalogue beside lower bounds of |J| by ascent from analytic tokens and {} "
      "random starts, {} steps, for identity and Glorot weights over a grid of n, D, H, seed {}. "
      "The printed formula of the 2-norm is of degree 1 in W_Q, the map of degree 2: it is put to "
      "the test by a search over layers and at two equal tokens with W_Q = 5; what violates it is "
      "proved in ball arithmetic.",
      restarts_of(options.full), SweepSettings{}.steps, options.seed);
  section.command = command_of(options, section.name);
  section.tables = {
      {.name = "theorem-3-2-inf",
       .caption = "Infinity norm: the published bound, the sharp one, the smallest of the "
                  "catalogue, and the best lower bound.",
       .table = bounds_table(rows, Norm::inf)},
      {.name = "theorem-3-2-two",
       .caption = "2-norm: the corrected bound, the printed formula, the smallest bound of the "
                  "catalogue, and the best lower bound.",
       .table = bounds_table(rows, Norm::two)},
      {.name = "theorem-3-2-violations",
       .caption =
           "Layers that violate the printed formula of the 2-norm: |J V|_2/|V|_2, certified.",
       .table = violation_table(violations)}};
  section.figures = {{.name = "theorem-3-2",
                      .caption = "Glorot weights, D = 8, H = 2: bounds from above and from below.",
                      .script = bounds_figure(rows, "glorot", 8, 2)}};
  section.agreements =
      theorem_3_2_agreements(facts_at(options, "Theorem 3.2"), rows, violations, shift);
  section.verdict = theorem_3_2_verdict(rows, violations);
  return section;
}

}  // namespace lipsa
