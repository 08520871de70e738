#include "experiment/paper_all_bounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "experiment/paper_parts.hpp"
#include "experiment/plot_style.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/model/initial_weights.hpp"
#include "lipsa/search/measure.hpp"
#include "lipsa/search/starts.hpp"

namespace lipsa {
namespace {

constexpr std::array all_kinds{AttentionKind::l2, AttentionKind::dot, AttentionKind::l2_untied,
                               AttentionKind::cosine, AttentionKind::sigmoid};
constexpr std::array all_norms{Norm::two, Norm::inf, Norm::one, Norm::max_token};
constexpr std::array all_questions{Domain::everywhere, Domain::token_ball, Domain::point};
constexpr std::array mark_sizes{1.9, 1.1, 0.9};  // of the questions: marks in one place are seen
constexpr double most_shown = 1e9;  // one ratio of 1e20 would push all others to the left
constexpr std::uint64_t token_stream = 0x746f6b656e730000U;  // "tokens"

/// Whether a theorem of this domain can speak of the question, whatever the layer.
bool speaks(Domain theorem, Domain asked) {
  return theorem == Domain::everywhere || asked == Domain::point ||
         (theorem == Domain::token_ball && asked == Domain::token_ball);
}

/// The ascent is by closed forms for p = inf and by singular pairs for 2; the other norms take
/// minutes, and have the analytic starts as they are.
bool by_ascent(Norm norm) {
  return norm == Norm::two || norm == Norm::inf;
}

void raise(BoundAnswer& answer, double lower_bound, const std::string& source) {
  if (lower_bound > answer.lower_bound) {
    answer.lower_bound = lower_bound;
    answer.lower_bound_source = source;
  }
}

/// Whether a start is measured without an ascent. Where a norm takes seconds, those of the first
/// head stand for all.
bool measured(const NamedTokens& start, Norm norm) {
  return norm != Norm::max_token || start.name.find(':') == std::string::npos ||
         start.name.ends_with(":0");
}

/// Whether some entry speaks of the question; what none speaks of is not measured.
bool any_speaks(const std::vector<Bound>& entries, Domain asked) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Bound& bound) { return speaks(bound.domain, asked); });
}

bool finite_and_holds(const Bound& bound) {
  return bound.holds && std::isfinite(bound.value);
}

double ratio_of(const Bound& bound, double lower_bound) {
  return bound.holds ? tightness(bound.value, lower_bound)
                     : std::numeric_limits<double>::quiet_NaN();
}

const Bound* tightest(const BoundsCell& cell) {
  const Bound* best = nullptr;
  for (const Bound& bound : cell.answer.bounds) {
    if (finite_and_holds(bound) && (best == nullptr || bound.value < best->value)) {
      best = &bound;
    }
  }
  return best;
}

bool below(const Bound& bound, double lower_bound) {
  return !std::isnan(bound.value) && bound.value < lower_bound;
}

/// Those of a cell with this property, by name.
template <class F>
std::string names(const BoundsCell& cell, const F& property) {
  std::string list;
  for (const Bound& bound : cell.answer.bounds) {
    if (property(bound)) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", bound.name);
    }
  }
  return list;
}

std::string status_of(const Bound& bound) {
  return bound.holds && bound.reason.empty() ? std::string("holds") : bound.reason;
}

std::string text_of(const BoundsCell& cell) {
  return fmt::format("{} attention, p = {}, {}", to_string(cell.attention), to_string(cell.norm),
                     to_string(cell.asked));
}

}  // namespace

AllBoundsSizes all_bounds_sizes(bool full) {
  return full ? AllBoundsSizes{}
              : AllBoundsSizes{.tokens = 64, .dim = 32, .heads = 4, .restarts = 2};
}

AllBounds compute_all_bounds(const AllBoundsSizes& sizes, std::uint64_t seed) {
  AllBounds found{.radius = std::sqrt(static_cast<double>(sizes.dim))};
  Rng rng(seed, token_stream);
  Matrix x = normal_matrix(rng, sizes.tokens, sizes.dim);
  project_to_ball(x, found.radius);
  for (const AttentionKind kind : all_kinds) {
    const MultiHead layer =
        initial_layer({.kind = Initialiser::Kind::glorot}, kind, sizes.dim, sizes.heads, seed);
    for (const Norm norm : all_norms) {
      const BoundSetting everything{
          .layer = layer, .mask = Mask::none(), .tokens = x.rows(), .x = &x};
      if (bounds_for(everything, norm).empty()) {
        continue;
      }
      BoundQuestion question{.layer = layer,
                             .norm = norm,
                             .tokens = sizes.tokens,
                             .radius = found.radius,
                             .x = x,
                             .restarts = 0,
                             .seed = seed};
      BoundsCell at_x{
          .attention = kind, .norm = norm, .asked = Domain::point, .answer = answer(question)};
      question.x.reset();
      question.restarts = by_ascent(norm) ? sizes.restarts : 0;
      for (const Domain asked : {Domain::everywhere, Domain::token_ball}) {
        if (!any_speaks(at_x.answer.bounds, asked)) {
          continue;
        }
        question.radius =
            asked == Domain::token_ball ? found.radius : std::numeric_limits<double>::infinity();
        BoundsCell cell{
            .attention = kind, .norm = norm, .asked = asked, .answer = answer(question)};
        if (!by_ascent(norm)) {
          cell.answer.status = std::string("no ascent");
          for (const NamedTokens& start :
               analytic_starts(layer, question.mask, sizes.tokens, question.radius)) {
            if (measured(start, norm)) {
              raise(cell.answer, local_norm(layer, start.x, question.mask, norm).lower_bound,
                    start.name);
            }
          }
        }
        raise(cell.answer, at_x.answer.lower_bound, "x");
        std::erase_if(cell.answer.bounds,
                      [&](const Bound& bound) { return !speaks(bound.domain, asked); });
        cell.answer.certified.clear();
        found.cells.push_back(std::move(cell));
      }
      at_x.answer.certified.clear();
      found.cells.push_back(std::move(at_x));
    }
  }
  const MultiHead layer = initial_layer({.kind = Initialiser::Kind::glorot}, AttentionKind::dot,
                                        sizes.dim, sizes.heads, seed);
  for (const Subject subject : {Subject::softmax, Subject::normalisation}) {
    for (const Norm norm : all_norms) {
      BoundQuestion question{.layer = layer, .norm = norm, .restarts = 0, .subject = subject};
      question.x = x;
      question.normalisation = Normalisation{.width = sizes.dim};
      OtherBounds other{.subject = subject, .norm = norm};
      other.bounds = answer(question).bounds;
      if (subject == Subject::normalisation) {  // entries of RMSNorm ask for one
        question.normalisation->kind = Normalisation::Kind::rms_norm;
        for (const Bound& bound : answer(question).bounds) {
          const auto same = std::find_if(other.bounds.begin(), other.bounds.end(),
                                         [&](const Bound& b) { return b.name == bound.name; });
          if (same != other.bounds.end() && bound.holds && !same->holds) {
            *same = bound;
          }
        }
      }
      if (!other.bounds.empty()) {
        found.others.push_back(std::move(other));
      }
    }
  }
  return found;
}

Table all_bounds_table(const std::vector<BoundsCell>& cells, AttentionKind attention, Norm norm) {
  Table table{
      {"asked", "bound", "domain", "kind", "upper_bound", "upper_bound_log10", "lower_bound",
       "tightness_upper_bound", "refuted_value", "proof", "source", "status"},
      {}};
  for (const BoundsCell& cell : cells) {
    if (cell.attention != attention || cell.norm != norm) {
      continue;
    }
    for (const Bound& bound : cell.answer.bounds) {
      table.rows.push_back(
          {std::string(to_string(cell.asked)), bound.name, std::string(to_string(bound.domain)),
           std::string(to_string(bound.kind)), bound.holds ? number_cell(bound.value) : Cell(),
           bound.holds ? number_cell(bound.log10_value) : Cell(), cell.answer.lower_bound,
           number_cell(ratio_of(bound, cell.answer.lower_bound)),
           bound.refuted ? number_cell(bound.value) : Cell(), bound.proof, bound.source,
           status_of(bound)});
    }
  }
  return table;
}

Table all_bounds_summary(const std::vector<BoundsCell>& cells) {
  Table table{
      {"attention", "norm", "asked", "entries", "holding", "lower_bound", "lower_bound_source",
       "tightest", "upper_bound", "tightness_upper_bound", "exceeded_formulas", "status"},
      {}};
  for (const BoundsCell& cell : cells) {
    const auto& bounds = cell.answer.bounds;
    const Bound* best = tightest(cell);
    const double lower = cell.answer.lower_bound;
    const auto holding =
        std::count_if(bounds.begin(), bounds.end(), [](const Bound& b) { return b.holds; });
    table.rows.push_back(
        {std::string(to_string(cell.attention)), std::string(to_string(cell.norm)),
         std::string(to_string(cell.asked)), static_cast<std::int64_t>(bounds.size()),
         std::int64_t{holding}, lower, cell.answer.lower_bound_source,
         best != nullptr ? Cell(best->name)
                         : Cell(std::string(holding == 0 ? "no entry" : "none is finite")),
         best != nullptr ? Cell(best->value) : Cell(),
         best != nullptr ? number_cell(ratio_of(*best, lower)) : Cell(),
         names(cell, [&](const Bound& b) { return b.refuted && below(b, lower); }),
         cell.answer.status});
  }
  return table;
}

Table other_bounds_table(const std::vector<OtherBounds>& others) {
  Table table{{"subject", "norm", "bound", "domain", "kind", "upper_bound", "refuted_value",
               "proof", "source", "status"},
              {}};
  for (const OtherBounds& other : others) {
    for (const Bound& bound : other.bounds) {
      table.rows.push_back(
          {std::string(to_string(other.subject)), std::string(to_string(other.norm)), bound.name,
           std::string(to_string(bound.domain)), std::string(to_string(bound.kind)),
           bound.holds ? number_cell(bound.value) : Cell(),
           bound.refuted ? number_cell(bound.value) : Cell(), bound.proof, bound.source,
           status_of(bound)});
    }
  }
  return table;
}

std::string all_bounds_gnuplot(const std::vector<BoundsCell>& cells, AttentionKind attention,
                               const std::string& name) {
  std::vector<std::string> labels;  // from the top
  std::map<Domain, std::string> points;
  for (const BoundsCell& cell : cells) {
    if (cell.attention != attention) {
      continue;
    }
    for (const Bound& bound : cell.answer.bounds) {
      const double ratio = ratio_of(bound, cell.answer.lower_bound);
      if (!finite_and_holds(bound) || !(ratio <= most_shown)) {
        continue;
      }
      const std::string label = fmt::format("{}, p = {}", bound.name, to_string(cell.norm));
      auto at = std::find(labels.begin(), labels.end(), label);
      if (at == labels.end()) {
        at = labels.insert(labels.end(), label);
      }
      points[cell.asked] += fmt::format("{:.17g} {}\n", ratio, -(at - labels.begin()));
    }
  }
  if (labels.empty()) {
    return {};
  }
  std::string id = name;  // of the terminal: letters, digits and _ alone
  std::replace(id.begin(), id.end(), '-', '_');
  std::string out = fmt::format("# Draws {}.svg\nset encoding utf8\n", name);
  std::string plot;
  for (std::size_t q = 0; q < all_questions.size(); ++q) {
    const auto data = points.find(all_questions.at(q));
    if (data == points.end()) {
      continue;
    }
    out += fmt::format("$asked{} << EOD\n{}EOD\n", q, data->second);
    plot += fmt::format(
        R"({}$asked{} using 1:2 with points pt {} ps {} lc rgb "{}" title "{}" noenhanced)",
        plot.empty() ? "plot " : ", \\\n     ", q, plot_marks.at(q), mark_sizes.at(q),
        plot_colours.at(q), to_string(all_questions.at(q)));
  }
  out += fmt::format(
      "set terminal svg size 900,520 dynamic name \"{4}\" font \"sans-serif,14\" background rgb "
      "\"white\"\nset output \"{0}.svg\"\nset title \"{1} attention\" noenhanced\nset logscale x\n"
      "set format x \"10^{{%T}}\"\nset xlabel \"upper bound / lower bound\"\nset xrange [0.8:*]\n"
      "set yrange [{2}:0.7]\nset lmargin at screen 0.4\nset label \"bound, norm p\" at screen "
      "0.02, screen 0.5 center rotate by 90\nset grid xtics ytics lt 1 lc rgb \"#dddddd\"\nunset "
      "mxtics\nset key above "
      "horizontal\nset ytics font \"sans-serif,{3}\" (",
      name, to_string(attention), -static_cast<double>(labels.size()) + 0.3,
      labels.size() > 14 ? 10 : 12, id);
  for (std::size_t k = 0; k < labels.size(); ++k) {
    out += fmt::format("{}\"{}\" {}", k == 0 ? "" : ", ", labels[k], -static_cast<int>(k));
  }
  return out + ") noenhanced\n" + plot + "\nset output\n";
}

std::string all_bounds_verdict(const std::vector<BoundsCell>& cells) {
  std::set<std::string> known;
  std::set<std::string> holding;
  std::set<std::string> infinite;
  std::set<std::string> refuted;
  std::size_t compared = 0;
  std::string violations;
  std::string refuted_below;
  std::string tightest_l2;
  for (const BoundsCell& cell : cells) {
    const double lower = cell.answer.lower_bound;
    for (const Bound& bound : cell.answer.bounds) {
      known.insert(bound.name);
      if (bound.refuted) {
        // An entry whose hypotheses are not met says that, whether it is refuted or not.
        if (!holding.contains(bound.name) && bound.reason.starts_with("refuted")) {
          refuted.insert(bound.name);
        }
        if (below(bound, lower)) {
          refuted_below += fmt::format("{}{} ({})", refuted_below.empty() ? "" : ", ", bound.name,
                                       to_string(cell.asked));
        }
      }
      if (bound.holds) {
        refuted.erase(bound.name);
        holding.insert(bound.name);
        compared += lower > 0.0 && std::isfinite(bound.value) ? 1U : 0U;
        if (!std::isfinite(bound.log10_value)) {
          infinite.insert(bound.name);
        }
        if (below(bound, lower)) {
          violations +=
              fmt::format("{}{} ({})", violations.empty() ? "" : "; ", bound.name, text_of(cell));
        }
      }
    }
    // The paper's attention, on the widest domain.
    const Bound* best = tightest(cell);
    if (best != nullptr && cell.attention == AttentionKind::l2 &&
        cell.asked == Domain::everywhere) {
      tightest_l2 += fmt::format("{}{} for p = {} (at most {} times the constant)",
                                 tightest_l2.empty() ? "" : ", ", best->name, to_string(cell.norm),
                                 upper_text(ratio_of(*best, lower)));
    }
  }
  std::string text = fmt::format(
      "Of {} entries about attention {} hold here, {} of them saying that there is no constant; {} "
      "are refuted, and the hypotheses of {} are not met.",
      known.size(), holding.size(), infinite.size(), refuted.size(),
      known.size() - holding.size() - refuted.size());
  text += violations.empty()
              ? fmt::format(
                    " None of those that hold is below the norm measured, in {} comparisons of "
                    "finite ones.",
                    compared)
              : fmt::format(" Below the norm measured, though said to hold: {}.", violations);
  if (!refuted_below.empty()) {
    text += fmt::format(" Of the refuted, these are below it here: {}.", refuted_below);
  } else if (!refuted.empty()) {
    text += " None of the refuted is below it here, which is no proof of them.";
  }
  if (!tightest_l2.empty()) {
    text += fmt::format(" The tightest of L2 attention for all X: {}.", tightest_l2);
  }
  return text;
}

ReportSection all_bounds_section(const PaperTableOptions& options, const AllBoundsSizes& sizes) {
  const AllBounds found = compute_all_bounds(sizes, options.seed);
  ReportSection section{.name = "all-bounds",
                        .title = "Beyond the paper: every bound on the same layers"};
  section.claim =
      "The paper bounds L2 attention and shows that dot-product attention has no bound; others "
      "have bounded dot-product attention on balls and at points, and changed attention so that it "
      "has a constant. Here all of them stand side by side.";
  section.method = fmt::format(
      "Glorot weights, n = {}, D = {}, H = {}, no mask, seed {}; asked for all X, for the ball "
      "|x_i|_2 <= R = sqrt(D) that LayerNorm leaves tokens in, and at one X, standard normal and "
      "projected to that ball. The lower bound is proved: |J| at X, or the highest found in the "
      "domain, by an ascent of {} random and the analytic starts for p = 2 and inf, at X and the "
      "analytic starts (of the first head for max-token) without an ascent for p = 1 and "
      "max-token. Entries whose domain is wider "
      "answer too; where a norm is missing for an attention, the catalogue has no entry.",
      sizes.tokens, sizes.dim, sizes.heads, options.seed, sizes.restarts);
  section.command = command_of(options, section.name);
  section.tables.push_back(
      {.name = "all-bounds",
       .caption = "The tightest bound that holds for each question, and the refuted "
                  "formulas that the lower bound exceeds.",
       .table = all_bounds_summary(found.cells),
       .shown = {"attention", "norm", "asked", "holding", "lower_bound", "tightest", "upper_bound",
                 "tightness_upper_bound", "exceeded_formulas"}});
  for (const AttentionKind kind : all_kinds) {
    for (const Norm norm : all_norms) {
      Table table = all_bounds_table(found.cells, kind, norm);
      if (!table.rows.empty()) {
        section.tables.push_back(
            {.name = fmt::format("all-bounds-{}-{}", to_string(kind), to_string(norm)),
             .caption =
                 fmt::format("Bounds of {} attention, p = {}.", to_string(kind), to_string(norm)),
             .table = std::move(table),
             .shown = {"asked", "bound", "domain", "kind", "upper_bound", "lower_bound",
                       "tightness_upper_bound", "refuted_value", "status"}});
      }
    }
    const std::string name = fmt::format("all-bounds-{}", to_string(kind));
    std::string script = all_bounds_gnuplot(found.cells, kind, name);
    if (!script.empty()) {
      section.figures.push_back(
          {.name = name,
           .caption = fmt::format(
               "Bounds of {} attention that hold, divided by the lower bound; ratios above "
               "1e9 are in the table alone.",
               to_string(kind)),
           .script = std::move(script)});
    }
  }
  section.tables.push_back(
      {.name = "all-bounds-other",
       .caption = "Bounds of the softmax at X and of normalisations; section layer-norm measures "
                  "LayerNorm.",
       .table = other_bounds_table(found.others),
       .shown = {"subject", "norm", "bound", "domain", "kind", "upper_bound", "refuted_value",
                 "status"}});
  section.verdict = all_bounds_verdict(found.cells);
  return section;
}

ReportSection section_all_bounds(const PaperTableOptions& options) {
  return all_bounds_section(options, all_bounds_sizes(options.full));
}

}  // namespace lipsa
