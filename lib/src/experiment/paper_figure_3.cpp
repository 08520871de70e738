#include "experiment/paper_figure_3.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiment/inversion_curves.hpp"
#include "experiment/paper_parts.hpp"

namespace lipsa {
namespace {

constexpr double grid_contraction = 0.9;

template <class T>
std::string joined(const std::vector<T>& list, const std::string& separator) {
  std::string text;
  for (const T& item : list) {
    text += fmt::format("{}{}", text.empty() ? std::string() : separator, item);
  }
  return text;
}

void run_into(std::vector<Figure3Row>& rows, const InversionSettings& settings) {
  const Inversion inversion(settings);
  for (Index k = 0; k < inversion.size(); ++k) {
    rows.push_back({.n = settings.tokens,
                    .batch = settings.batch,
                    .divisor = settings.divisor,
                    .weights = std::filesystem::path(settings.weights).filename().string(),
                    .seed = settings.seed,
                    .found = inversion.run(k)});
  }
}

std::string where(const InversionRow& row) {
  return fmt::format("c = {:g}, r = {:g}", row.contraction, row.range);
}

/// Those of one kind of attention: how many, how many come back, and which do and do not.
struct Tally {
  std::size_t all = 0;
  std::size_t back = 0;
  std::string come_back{};
  std::string lost{};
  double largest_error = 0.0;  ///< at the end, of those that come back
};

Tally tally_of(const std::vector<Figure3Row>& rows, AttentionKind kind) {
  Tally tally;
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;  // come back, of so many draws
  std::vector<std::string> order;
  for (const Figure3Row& row : rows) {
    if (row.found.attention != kind) {
      continue;
    }
    ++tally.all;
    const std::string place = where(row.found);
    if (!counts.contains(place)) {
      order.push_back(place);
    }
    ++counts[place].second;
    if (inverts(row)) {
      ++counts[place].first;
      ++tally.back;
      tally.largest_error = std::max(tally.largest_error, row.found.errors.back());
    }
  }
  const auto add = [](std::string& list, const std::string& place, std::size_t count,
                      std::size_t all) {
    if (count > 0) {
      list += fmt::format("{}{}", list.empty() ? "" : "; ", place);
      if (all > 1) {
        list += fmt::format(" ({} of {})", count, all);
      }
    }
  };
  for (const std::string& place : order) {
    const auto [back, all] = counts[place];
    add(tally.come_back, place, back, all);
    add(tally.lost, place, all - back, all);
  }
  return tally;
}

std::string same_or_not(const std::string& ours, const PaperFact& fact) {
  return ours == fact.as_printed ? "same setting" : "another setting";
}

Agreement outcome(const PaperFact& fact, const Tally& tally, bool should_invert) {
  const std::size_t agreeing = should_invert ? tally.back : tally.all - tally.back;
  Agreement row{.fact = fact, .kind = "estimate"};
  row.ours = fmt::format("{} in {} of {} cases", should_invert ? "inverts" : "does not invert",
                         agreeing, tally.all);
  row.agreement = agreeing == tally.all && tally.all > 0 ? std::string("agrees")
                  : agreeing == 0                        ? std::string("does not agree")
                                                         : fmt::format("agrees but for {}",
                                                should_invert ? tally.lost : tally.come_back);
  return row;
}

}  // namespace

Figure3Sizes figure_3_sizes(bool full) {
  Figure3Sizes sizes;
  if (!full) {
    sizes.batch = 8;
    sizes.grid_batch = 2;
    sizes.draws = 3;
  }
  return sizes;
}

Figure3Result compute_figure_3(const Figure3Sizes& sizes, std::uint64_t seed,
                               const std::vector<std::filesystem::path>& weights) {
  Figure3Result result;
  InversionSettings settings{.contractions = sizes.contractions,
                             .ranges = sizes.ranges,
                             .tokens = sizes.tokens,
                             .dim = sizes.dim,
                             .heads = sizes.heads,
                             .batch = sizes.batch,
                             .iterations = sizes.iterations,
                             .seed = seed};
  for (Index draw = 0; draw < sizes.draws; ++draw) {
    settings.seed = seed + static_cast<std::uint64_t>(draw);
    run_into(result.undivided, settings);
  }
  settings.seed = seed;

  InversionSettings divided = settings;
  divided.attention = {AttentionKind::l2};
  divided.ranges = {sizes.ranges.back()};
  divided.batch = sizes.grid_batch;
  for (const char* divisor : {"kim2021", "sharp"}) {
    divided.divisor = divisor;
    run_into(result.divided, divided);
  }

  settings.contractions = {grid_contraction};
  settings.ranges = {sizes.ranges.front(), sizes.ranges.back()};
  settings.batch = sizes.grid_batch;
  InversionSettings trained = settings;
  trained.attention = {AttentionKind::dot};
  for (const std::filesystem::path& path : weights) {
    trained.weights = path.string();
    run_into(result.trained, trained);
  }
  for (const Index n : sizes.grid) {
    for (const Index D : sizes.grid) {
      settings.tokens = n;
      settings.dim = D;
      run_into(result.grid, settings);
    }
  }
  return result;
}

bool inverts(const Figure3Row& row) {
  return row.found.status == "converged" || row.found.status == "converging";
}

Table figure_3_table(const std::vector<Figure3Row>& rows) {
  const std::size_t last = rows.empty() ? 0 : rows.front().found.errors.size() - 1;
  const std::size_t early = std::min<std::size_t>(5, last);
  Table table{{"attention", "weights", "divisor", "n", "D", "H", "contraction", "range", "batch",
               "seed", fmt::format("error_estimate_{}", early)},
              {}};
  if (early < last) {
    table.columns.push_back(fmt::format("error_estimate_{}", last));
  }
  table.columns.insert(table.columns.end(),
                       {"rate_estimate", "certified_upper_bound_error", "status"});
  for (const Figure3Row& row : rows) {
    const InversionRow& found = row.found;
    std::vector<Cell> cells{std::string(to_string(found.attention)),
                            row.weights,
                            row.divisor,
                            std::int64_t{row.n},
                            std::int64_t{found.D},
                            std::int64_t{found.H},
                            found.contraction,
                            found.range,
                            std::int64_t{row.batch},
                            static_cast<std::int64_t>(row.seed),
                            found.errors.at(early)};
    if (early < last) {
      cells.emplace_back(found.errors.at(last));
    }
    cells.push_back(number_cell(found.rate));
    cells.push_back(number_cell(found.error_upper_bound));
    cells.emplace_back(found.status);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string figure_3_gnuplot(const std::vector<Figure3Row>& draws) {
  std::vector<InversionRow> rows;
  InversionPanels panels;
  Index batch = 0;
  const auto add = [](auto& list, const auto& item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) {
      list.push_back(item);
    }
  };
  for (const Figure3Row& draw : draws) {
    if (draw.seed != draws.front().seed) {
      continue;
    }
    const InversionRow& row = rows.emplace_back(draw.found);
    add(panels.attention, row.attention);
    add(panels.contractions, row.contraction);
    add(panels.ranges, row.range);
    panels.iterations = std::max(panels.iterations, static_cast<Index>(row.errors.size()) - 1);
    batch = std::max(batch, draw.batch);
  }
  panels.error = fmt::format("largest |x_k - x| of {} inputs, estimate", batch);
  const InversionCurves curves = inversion_curves(panels, rows);
  if (curves.data.empty()) {
    return {};
  }
  return "# Draws figure-3.svg\nset encoding utf8\n" + curves.data +
         "set terminal svg size 900,520 dynamic name \"figure_3\" font \"sans-serif,14\" "
         "background rgb \"white\"\nset output \"figure-3.svg\"\n" +
         curves.plots + "set output\n";
}

std::vector<Agreement> figure_3_agreements(const std::vector<PaperFact>& facts,
                                           const Figure3Sizes& sizes, const Figure3Result& result) {
  std::vector<Agreement> agreements;
  for (const PaperFact& fact : facts) {
    if (fact.quantity == "N and D and H and batch") {
      const std::string ours =
          fmt::format("{} and {} and {} and {}", sizes.tokens, sizes.dim, sizes.heads, sizes.batch);
      agreements.push_back({.fact = fact, .ours = ours, .agreement = same_or_not(ours, fact)});
    } else if (fact.quantity == "map" || fact.quantity == "curve") {
      agreements.push_back({.fact = fact,
                            .ours = std::string("the same"),
                            .agreement = std::string("same setting")});
    } else if (fact.quantity == "c") {
      const std::string ours = joined(sizes.contractions, "; ");
      agreements.push_back({.fact = fact, .ours = ours, .agreement = same_or_not(ours, fact)});
    } else if (fact.quantity == "inputs") {
      agreements.push_back({.fact = fact,
                            .ours = fmt::format("the first token 0; the others uniform up to {}",
                                                joined(sizes.ranges, "; ")),
                            .agreement = std::string("the range is not known")});
    } else if (fact.quantity == "outcome for L2 attention") {
      agreements.push_back(outcome(fact, tally_of(result.undivided, AttentionKind::l2), true));
    } else if (fact.quantity == "outcome for dot-product attention") {
      agreements.push_back(outcome(fact, tally_of(result.undivided, AttentionKind::dot), false));
    } else {
      agreements.push_back(not_tested(fact));
    }
  }
  return agreements;
}

std::string figure_3_verdict(const Figure3Result& result) {
  const Tally l2 = tally_of(result.undivided, AttentionKind::l2);
  const Tally dot = tally_of(result.undivided, AttentionKind::dot);
  std::string text;
  if (l2.back < l2.all) {
    text = fmt::format("Against the paper, L2 attention does not invert at {} ({} of {} do).",
                       l2.lost, l2.back, l2.all);
  } else {
    text = fmt::format(
        "As in the paper, L2 attention inverts, in all {} cases, with errors of {} at most at "
        "the end (estimate).",
        l2.all, upper_text(l2.largest_error));
  }
  if (dot.back == dot.all) {
    text +=
        fmt::format(" Against the paper, dot-product attention inverts too, in all {}.", dot.all);
  } else if (dot.back > 0) {
    text += fmt::format(
        " Dot-product attention does not in {} of {}; against the plain wording of the paper, "
        "whose range and weights we do not know, it does at {}, with errors of {} at most at "
        "the end.",
        dot.all - dot.back, dot.all, dot.come_back, upper_text(dot.largest_error));
  } else {
    text += fmt::format(" As in the paper, dot-product attention does not, in any of {}.", dot.all);
  }
  if (!result.grid.empty()) {
    const Tally grid_l2 = tally_of(result.grid, AttentionKind::l2);
    const Tally grid_dot = tally_of(result.grid, AttentionKind::dot);
    text += fmt::format(" With other n and D: L2 inverts in {} of {}, dot-product in {} of {}.",
                        grid_l2.back, grid_l2.all, grid_dot.back, grid_dot.all);
  }
  if (!result.trained.empty()) {
    const Tally trained = tally_of(result.trained, AttentionKind::dot);
    text += fmt::format(" With weights of files dot-product attention inverts in {} of {}.",
                        trained.back, trained.all);
  }
  if (!result.divided.empty()) {
    const Tally divided = tally_of(result.divided, AttentionKind::l2);
    double proved = 0.0;
    for (const Figure3Row& row : result.divided) {
      proved = std::isfinite(row.found.error_upper_bound)
                   ? std::max(proved, row.found.error_upper_bound)
                   : std::numeric_limits<double>::infinity();
    }
    text += divided.back == divided.all && std::isfinite(proved)
                ? fmt::format(
                      " Divided by a bound, as the contractive map is, all {} come back, within "
                      "{} of the solution, proved.",
                      divided.all, upper_text(proved))
                : fmt::format(" Divided by a bound, {} of {} come back, not all of them proved.",
                              divided.back, divided.all);
  }
  return text;
}

ReportSection figure_3_section(const PaperTableOptions& options, const Figure3Sizes& sizes) {
  const Figure3Result result = compute_figure_3(sizes, options.seed, options.weights);
  const InversionSettings defaults;
  const Figure3Sizes full = figure_3_sizes(true);
  const std::string inputs =
      sizes.batch == full.batch
          ? fmt::format("{} inputs", sizes.batch)
          : fmt::format("{} inputs, where the paper takes {}", sizes.batch, full.batch);
  ReportSection section{.name = "figure-3",
                        .title = "Figure 3: is X + c F(X) invertible by iteration?"};
  section.claim =
      "Fixed-point iteration recovers X from Y = X + c F(X) when F is L2 attention, and does not "
      "when F is dot-product attention; F is not divided by a bound, c < 1.";
  section.method = fmt::format(
      "x_(k+1) = y - c F(x_k) from x_0 = y for {} iterations; n = {}, D = {}, H = {}, no mask; {} "
      "draws of Glorot weights and of {}, the first token 0, the others uniform on [-r, r], r = "
      "{}; seeds {} to {}. The error is the largest of all entries of all inputs. Status: "
      "converged, when the steps shrank to rounding or to {:g} and every iterate is near its "
      "input, within 1e-6 r + 1e-7; converging, when the second half of the iterations halved the "
      "error. Both count as inverting; "
      "not converging: it did not; not contractive: the steps of some input no longer shrink. The "
      "rate is the mean by which the last steps shrank, for the input where it is largest: above 1 "
      "they grew. The appendix varies n and D with c = {:g} and {} inputs, "
      "and takes weights of files where they are given. The contractive map is X + c F(X)/L, L an "
      "upper bound of Lip_inf(F), with {} inputs; the distance of its result to the solution of "
      "the equation with the rounded y is proved in ball arithmetic.",
      sizes.iterations, sizes.tokens, sizes.dim, sizes.heads, sizes.draws, inputs,
      joined(sizes.ranges, ", "), options.seed,
      options.seed + static_cast<std::uint64_t>(sizes.draws - 1), defaults.tolerance,
      grid_contraction, sizes.grid_batch, sizes.grid_batch);
  section.command = command_of(options, section.name);
  section.tables.push_back(
      {.name = "figure-3",
       .caption = fmt::format("Largest error of {}, and the rate at the end.", inputs),
       .table = figure_3_table(result.undivided),
       .shown = {}});
  section.tables.push_back(
      {.name = "figure-3-appendix",
       .caption = fmt::format("Other n and D: largest error of {} inputs.", sizes.grid_batch),
       .table = figure_3_table(result.grid),
       .shown = {}});
  if (!result.trained.empty()) {
    section.tables.push_back(
        {.name = "figure-3-weights",
         .caption = fmt::format("Weights of files: largest error of {} inputs.", sizes.grid_batch),
         .table = figure_3_table(result.trained),
         .shown = {}});
  }
  section.tables.push_back(
      {.name = "figure-3-contractive",
       .caption = fmt::format(
           "Divided by the bound of the paper and by the sharp one: largest error of {} inputs as "
           "measured, and the proved distance to the solution.",
           sizes.grid_batch),
       .table = figure_3_table(result.divided),
       .shown = {}});
  section.figures.push_back(
      {.name = "figure-3",
       .caption = fmt::format("Largest reconstruction error of {} inputs against the iteration, of "
                              "the first draw.",
                              sizes.batch),
       .script = figure_3_gnuplot(result.undivided)});
  section.agreements = figure_3_agreements(facts_at(options, "Figure 3"), sizes, result);
  section.verdict = figure_3_verdict(result);
  return section;
}

ReportSection section_figure_3(const PaperTableOptions& options) {
  return figure_3_section(options, figure_3_sizes(options.full));
}

}  // namespace lipsa
