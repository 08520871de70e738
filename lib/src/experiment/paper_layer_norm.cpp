#include "experiment/paper_layer_norm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/rounding.hpp"
#include "experiment/paper_parts.hpp"
#include "experiment/plot_style.hpp"
#include "lipsa/bounds/normalisation.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/linalg/norms.hpp"
#include "lipsa/linalg/spectral_norm.hpp"

namespace lipsa {
namespace {

constexpr double measured_rounding = 1.0 + 1e-10;  // of what is measured, before it refutes
constexpr Index random_rows = 8;
constexpr double pi = 3.141592653589793;

struct NamedRow {
  std::string name{};
  Matrix x{};
};

/// x with mean 0 and variance `variance`.
Matrix scaled(Matrix x, double variance) {
  x.array() -= x.mean();
  const double now = x.squaredNorm() / static_cast<double>(x.cols());
  return now > 0.0 ? Matrix(x * std::sqrt(variance / now)) : x;
}

/// One feature of share cos t, the others ± in turn of share sin t: x̂_a |x̂|_1 is largest between.
Matrix spike(Index D, Index at, double t) {
  Matrix x(1, D);
  double sign = 1.0;
  for (Index a = 0; a < D; ++a) {
    x(0, a) = a == at ? std::cos(t) : sign * std::sin(t) / std::sqrt(static_cast<double>(D - 1));
    sign = a == at ? sign : -sign;
  }
  return x;
}

/// Rows that shrink to constant ones, one-hot rows and spikes among signs with variances around ε,
/// and random ones of many sizes.
std::vector<NamedRow> rows_to_try(Index D, double epsilon, Index steepest, std::uint64_t seed) {
  std::vector<NamedRow> rows;
  rows.push_back({"constant", Matrix::Constant(1, D, 1.0)});
  const Matrix one_hot = Matrix::Identity(D, D).row(steepest);
  Rng rng(seed, static_cast<std::uint64_t>(D));
  const Matrix direction = normal_matrix(rng, 1, D);
  for (const double size : {1e-6, 1e-3, 0.03, 0.3}) {
    rows.push_back({fmt::format("shrinking to constant, variance {:g} eps", size),
                    scaled(direction, size * epsilon)});
  }
  for (const double size : {0.1, 0.5, 1.0, 2.0, 4.0}) {
    rows.push_back(
        {fmt::format("one-hot, variance {:g} eps", size), scaled(one_hot, size * epsilon)});
    for (Index k = 1; k < 8; ++k) {
      const double t = 0.5 * pi * static_cast<double>(k) / 8.0;
      rows.push_back({fmt::format("spike among signs, variance {:g} eps", size),
                      scaled(spike(D, steepest, t), size * epsilon)});
    }
  }
  for (Index k = 0; k < random_rows; ++k) {
    const double size = std::pow(10.0, rng.uniform(-2.0, 3.0));
    const Matrix x = normal_matrix(rng, 1, D);
    rows.push_back({fmt::format("random, variance {:.2g} eps", size), scaled(x, size * epsilon)});
  }
  return rows;
}

/// The factors by which the recalled bound is above ours, and the D where it is below.
struct Comparison {
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  std::map<Index, double> larger{};  ///< D where ours is the larger one: ours/recalled
  std::size_t smaller = 0;
};

Comparison compare(const std::vector<LayerNormRow>& rows) {
  Comparison c;
  for (const LayerNormRow& row : rows) {
    const double factor = row.upper_bound_inf_paper / row.upper_bound_inf;
    if (factor > 1.0) {
      c.least = std::min(c.least, factor);
      c.most = std::max(c.most, factor);
      ++c.smaller;
    } else {
      c.larger[row.D] = 1.0 / factor;
    }
  }
  return c;
}

/// The cases in which what is measured is above the bound.
std::string violations(const std::vector<LayerNormRow>& rows, double LayerNormRow::*measured,
                       double LayerNormRow::*bound) {
  std::string list;
  for (const LayerNormRow& row : rows) {
    if (!(row.*measured <= row.*bound * measured_rounding)) {
      list += fmt::format("{}D = {}, eps = {:g}, gamma {}", list.empty() ? "" : "; ", row.D,
                          row.epsilon, row.gamma);
    }
  }
  return list;
}

std::pair<double, double> range_of_ratios(const std::vector<LayerNormRow>& rows,
                                          double LayerNormRow::*measured,
                                          double LayerNormRow::*bound) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0.0;
  for (const LayerNormRow& row : rows) {
    const double ratio = row.*bound / row.*measured;
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
  return {least, most};
}

std::string sizes_of(const Comparison& c) {
  std::string text;
  if (c.smaller > 0) {
    text = fmt::format("ours is {:.3g} to {:.3g} times smaller", c.least, c.most);
  }
  if (!c.larger.empty()) {
    std::string dims;
    double most = 0.0;
    for (const auto& [D, factor] : c.larger) {
      dims += fmt::format("{}{}", dims.empty() ? "" : ", ", D);
      most = std::max(most, factor);
    }
    text += fmt::format("{}ours is up to {:.3g} times larger at D = {}", text.empty() ? "" : "; ",
                        most, dims);
  }
  return text;
}

}  // namespace

double layer_norm_paper_inf(Index D, double epsilon, double gamma_max) {
  const auto d = static_cast<double>(D);
  const Normalisation of{.width = D, .epsilon = epsilon, .gamma_max = gamma_max};
  return (normalisation_lipschitz(of, Norm::two) * div_up(d * d - 2.0, d)).value();
}

Matrix layer_norm_jacobian(const LayerNorm& norm, const ConstMatrixRef& x) {
  const Index D = x.cols();
  const LayerNormAt at(norm, x.replicate(D, 1));  // a row for each column of J
  return at.apply(Matrix::Identity(D, D)).transpose();
}

LayerNormRow measure_layer_norm(Index D, double epsilon, bool random_gamma, std::uint64_t seed) {
  LayerNorm norm{.epsilon = epsilon};
  LayerNormRow row{.D = D, .epsilon = epsilon, .gamma = random_gamma ? "random" : "ones"};
  Index steepest = 0;
  if (random_gamma) {
    Rng rng(seed, static_cast<std::uint64_t>(D), 1);
    norm.gamma = normal_matrix(rng, D, 1);
    row.gamma_max = norm.gamma.cwiseAbs().maxCoeff(&steepest);
  }
  row.status = std::string("converged");
  for (const NamedRow& tried : rows_to_try(D, epsilon, steepest, seed)) {
    const LayerNormAt at(norm, tried.x);
    const SpectralNorm two = spectral_norm(JacobianOperator(at));
    if (!two.converged()) {
      row.status = std::string(to_string(two.termination));
    }
    if (two.value > row.norm_2) {
      row.norm_2 = two.value;
      row.row_2 = tried.name;
    }
    const double inf = norm_inf(layer_norm_jacobian(norm, tried.x));
    if (inf > row.norm_inf) {
      row.norm_inf = inf;
      row.row_inf = tried.name;
    }
  }
  const Normalisation of{.width = D, .epsilon = epsilon, .gamma_max = row.gamma_max};
  row.upper_bound_2 = normalisation_lipschitz(of, Norm::two).value();
  row.upper_bound_inf = normalisation_lipschitz(of, Norm::inf).value();
  row.upper_bound_inf_paper = layer_norm_paper_inf(D, epsilon, row.gamma_max);
  return row;
}

Table layer_norm_table(const std::vector<LayerNormRow>& rows) {
  Table table{{"D", "epsilon", "gamma", "gamma_max", "norm_2_estimate", "upper_bound_2",
               "norm_inf_estimate", "steepest_row", "upper_bound_inf", "recalled_inf", "status"},
              {}};
  for (const LayerNormRow& row : rows) {
    table.rows.push_back({std::int64_t{row.D}, row.epsilon, row.gamma, row.gamma_max, row.norm_2,
                          row.upper_bound_2, row.norm_inf, row.row_inf, row.upper_bound_inf,
                          row.upper_bound_inf_paper, row.status});
  }
  return table;
}

std::string layer_norm_gnuplot(const std::vector<LayerNormRow>& rows) {
  std::string data;
  for (const LayerNormRow& row : rows) {
    if (row.gamma != "ones" || row.epsilon != rows.front().epsilon) {
      continue;
    }
    const double unit = std::sqrt(row.epsilon) / row.gamma_max;
    data += fmt::format("{} {:.17g} {:.17g} {:.17g} {:.17g}\n", row.D, unit * row.norm_inf,
                        unit * row.upper_bound_inf, unit * row.upper_bound_inf_paper,
                        unit * row.norm_2);
  }
  if (data.empty()) {
    return {};
  }
  std::string out =
      fmt::format("# Draws layer-norm.svg\nset encoding utf8\n$rows << EOD\n{}EOD\n", data);
  out +=
      "set terminal svg size 900,520 dynamic name \"layer_norm\" font \"sans-serif,14\" background "
      "rgb \"white\"\nset output \"layer-norm.svg\"\nset logscale xy\nset xlabel \"features D\"\n"
      "set ylabel \"norm times sqrt(eps)/max|gamma|\" noenhanced\nset grid xtics ytics lt 1 lc rgb "
      "\"#dddddd\"\nunset mxtics\nunset mytics\nset xtics (";
  std::string tics;
  for (const LayerNormRow& row : rows) {
    const std::string tic = fmt::format("{}", row.D);
    if (row.gamma == "ones" && row.epsilon == rows.front().epsilon) {
      tics += fmt::format("{}{}", tics.empty() ? "" : ", ", tic);
    }
  }
  out += tics + ")\nset xrange [*<1.5:*]\nset yrange [0.5:*]\nset key left top Left reverse\n";
  const auto curve = [](std::size_t k, int column, const char* title) {
    return fmt::format(
        "$rows using 1:{} with linespoints dt {} lw 2 lc rgb \"{}\" pt {} ps 1 title \"{}\" "
        "noenhanced",
        column, plot_dashes.at(k), plot_colours.at(k), plot_marks.at(k), title);
  };
  out += "plot " + curve(1, 4, "norm inf, formula recalled of the paper") + ", \\\n     " +
         curve(0, 3, "norm inf, upper bound, ours") + ", \\\n     " +
         curve(2, 2, "norm inf, measured, estimate") + ", \\\n     " +
         curve(3, 5, "norm 2, measured, estimate (upper bound 1)") + "\nset output\n";
  return out;
}

std::vector<Agreement> layer_norm_agreements(const std::vector<PaperFact>& facts,
                                             const std::vector<LayerNormRow>& rows) {
  std::vector<Agreement> agreements;
  for (const PaperFact& fact : facts) {
    if (fact.quantity.find("Lip_inf") == std::string::npos) {
      agreements.push_back(not_tested(fact));
      continue;
    }
    const std::string wrong =
        violations(rows, &LayerNormRow::norm_inf, &LayerNormRow::upper_bound_inf_paper);
    agreements.push_back(
        {.fact = fact,
         .ours = std::string(
             "eps^-1/2 max|gamma| (2 (D-1)/D + 2/(3 sqrt(3)) sqrt(D-1)), for every eps and D"),
         .kind = "upper bound",
         .agreement = wrong.empty()
                          ? fmt::format("not violated here; {}", sizes_of(compare(rows)))
                          : fmt::format("does not hold: measured above it at {}", wrong)});
  }
  return agreements;
}

std::string layer_norm_verdict(const std::vector<LayerNormRow>& rows) {
  if (rows.empty()) {
    return "Nothing was measured.";
  }
  const std::string wrong_2 = violations(rows, &LayerNormRow::norm_2, &LayerNormRow::upper_bound_2);
  const std::string wrong_inf =
      violations(rows, &LayerNormRow::norm_inf, &LayerNormRow::upper_bound_inf);
  const std::string wrong_paper =
      violations(rows, &LayerNormRow::norm_inf, &LayerNormRow::upper_bound_inf_paper);
  std::string text;
  if (wrong_2.empty() && wrong_inf.empty()) {
    const auto [least_2, most_2] =
        range_of_ratios(rows, &LayerNormRow::norm_2, &LayerNormRow::upper_bound_2);
    const auto [least, most] =
        range_of_ratios(rows, &LayerNormRow::norm_inf, &LayerNormRow::upper_bound_inf);
    text = fmt::format(
        "LayerNorm is Lipschitz: our bounds are not violated in any of {} cases, {:.3g} to {:.3g} "
        "times the "
        "norm measured for p = 2 and {:.3g} to {:.3g} times for p = inf.",
        rows.size(), least_2, most_2, least, most);
  } else {
    text = fmt::format("Our bounds do not hold: measured above that of p = 2 at {}, of inf at {}.",
                       wrong_2.empty() ? "none" : wrong_2, wrong_inf.empty() ? "none" : wrong_inf);
  }
  text += wrong_paper.empty()
              ? fmt::format(" The formula recalled of the paper is not violated here; {}.",
                            sizes_of(compare(rows)))
              : fmt::format(
                    " The formula recalled of the paper does not hold: measured above it at {}.",
                    wrong_paper);
  return text;
}

ReportSection layer_norm_section(const PaperTableOptions& options, const std::vector<Index>& dims) {
  std::vector<LayerNormRow> rows;
  for (const double epsilon : {1e-5, 1e-2}) {
    for (const bool random_gamma : {false, true}) {
      for (const Index D : dims) {
        rows.push_back(measure_layer_norm(D, epsilon, random_gamma, options.seed));
      }
    }
  }
  ReportSection section{.name = "layer-norm", .title = "Appendix: LayerNorm is Lipschitz"};
  section.claim =
      "LayerNorm has a Lipschitz constant, and in the infinity norm it is at most eps^-1/2 "
      "max|gamma| (D^2-2)/D; the formula is recalled and uncertain.";
  section.method = fmt::format(
      "J of one row of D features in double: |J|_2 by Lanczos to 1e-10, |J|_inf of the dense "
      "matrix. Rows tried: a constant one, rows that shrink to it, one-hot rows and spikes among "
      "signs with variances around eps, {} random ones; the steepest is shown. gamma = ones, or "
      "independent standard normal; seed {}.",
      random_rows, options.seed);
  section.command = command_of(options, section.name);
  section.tables.push_back(
      {.name = "layer-norm",
       .caption =
           "LayerNorm: the largest norms measured, our bounds, and the formula recalled of the "
           "paper, of which no proof is known to us.",
       .table = layer_norm_table(rows),
       .shown = {}});
  section.figures.push_back(
      {.name = "layer-norm",
       .caption = "Norms of the Jacobian of LayerNorm and their bounds by width, gamma = ones.",
       .script = layer_norm_gnuplot(rows)});
  section.agreements = layer_norm_agreements(facts_at(options, "LayerNorm appendix"), rows);
  section.verdict = layer_norm_verdict(rows);
  return section;
}

ReportSection section_layer_norm(const PaperTableOptions& options) {
  return layer_norm_section(options, {2, 4, 16, 64, 256});
}

}  // namespace lipsa
