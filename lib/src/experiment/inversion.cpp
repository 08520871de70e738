#include "lipsa/experiment/inversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.hpp"
#include "core/machine_memory.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/core/version.hpp"
#include "lipsa/model/initial_weights.hpp"
#include "lipsa/model/layer_file.hpp"

namespace lipsa {
namespace {

using nlohmann::ordered_json;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr std::uint64_t input_stream = 0x696e707574730000U;  // "inputs"
constexpr double most_numbers = 1e8;                         // of errors kept

// An iteration that came to rest did so at the input when it is nearer than this times the range,
// and this many tolerances: those hold for estimates.
constexpr double another_solution = 1e-6;
constexpr double most_error = 1e3;

template <class T>
void require_list(const std::vector<T>& list, std::string_view name) {
  require(!list.empty(), "inversion: {} must not be empty", name);
  require(std::set<T>(list.begin(), list.end()).size() == list.size(),
          "inversion: {} must not name a value twice", name);
}

Mask mask_of(Mask::Kind kind) {
  return kind == Mask::Kind::causal ? Mask::causal() : Mask::none();
}

Cell number(double x) {
  return std::isnan(x) ? Cell() : Cell(x);
}

/// The larger; NaN counts for nothing.
void raise(double& largest, double x) {
  largest = std::isnan(largest) || x > largest ? x : largest;
}

/// About how much memory the inputs under way take, in bytes.
double memory_of(const InversionSettings& s, const MultiHead& layer) {
  const auto real = [](Index i) { return static_cast<double>(i); };
  const double n = real(s.tokens);
  const double attention = 2.0 * real(layer.heads) * n * n;
  const double features = 12.0 * n * real(layer.width() + layer.W_Q.cols() + layer.W_V.cols());
  const double history = 2.0 * real(s.anderson) * n * real(layer.width());
  return 8.0 * (attention + features + history);
}

std::string status_of(const std::vector<InverseTermination>& ends,
                      const std::vector<double>& errors, double least_error) {
  const auto any = [&](InverseTermination end) {
    return std::find(ends.begin(), ends.end(), end) != ends.end();
  };
  if (any(InverseTermination::non_finite)) {
    return "non-finite";
  }
  if (any(InverseTermination::not_contractive)) {
    return "not contractive";
  }
  if (!any(InverseTermination::step_limit)) {
    return errors.back() <= least_error ? "converged" : "another solution";
  }
  return errors.back() <= 0.5 * errors[errors.size() / 2] ? "converging" : "not converging";
}

/// The iterations a summary shows.
std::vector<Index> shown_iterations(Index last) {
  std::vector<Index> shown;
  for (const Index k : {Index{0}, Index{1}, Index{5}, Index{10}, last}) {
    if (k <= last && (shown.empty() || k > shown.back())) {
      shown.push_back(k);
    }
  }
  return shown;
}

/// The columns of log|det|, where it was asked for. What the series omits is bounded by the
/// contraction, proved or estimated.
std::vector<std::string> log_det_columns(const InversionSettings& s) {
  if (!s.log_det) {
    return {};
  }
  return {"log_det_estimate", "log_det_standard_error_estimate",
          s.divisor == "none" ? "log_det_truncation_estimate" : "upper_bound_log_det_truncation",
          "log_det_method", "log_det_status"};
}

void append_log_det(std::vector<Cell>& cells, const LogDet& found) {
  cells.push_back(number(found.value));
  cells.push_back(number(found.standard_error));
  cells.push_back(number(found.truncation_bound));
  cells.emplace_back(std::string(to_string(found.method)));
  cells.emplace_back(std::string(to_string(found.status)));
}

}  // namespace

Inversion::Inversion(InversionSettings settings) : settings_(std::move(settings)) {
  InversionSettings& s = settings_;
  require_list(s.attention, "attention");
  require_list(s.contractions, "contraction");
  require_list(s.ranges, "range");
  for (const double c : s.contractions) {
    require(c > 0.0 && c < 1.0, "inversion: contraction must be between 0 and 1, got {}", c);
  }
  for (const double r : s.ranges) {
    require(r > 0.0 && std::isfinite(r), "inversion: range must be positive and finite, got {}", r);
  }
  require(s.tokens >= 1, "inversion: tokens must be at least 1, got {}", s.tokens);
  require(s.batch >= 1, "inversion: batch must be at least 1, got {}", s.batch);
  require(s.iterations >= 1, "inversion: iterations must be at least 1, got {}", s.iterations);
  require(static_cast<double>(s.batch) * static_cast<double>(s.iterations) <= most_numbers,
          "inversion: batch times iterations must be at most {:g}, got {} and {}", most_numbers,
          s.batch, s.iterations);
  require(std::isfinite(s.tolerance) && s.tolerance >= 0.0,
          "inversion: tolerance must be finite and at least 0, got {}", s.tolerance);
  require(s.anderson >= 0 && s.anderson <= 50, "inversion: anderson must be from 0 to 50, got {}",
          s.anderson);
  if (s.weights.ends_with(".npz")) {
    for (const AttentionKind kind : s.attention) {
      LayerFile file = read_layer_file(s.weights, kind);
      notes_.insert(notes_.end(), file.notes.begin(), file.notes.end());
      layers_.push_back(std::move(file.layer));
    }
  } else {
    const Initialiser initialiser = parse_initialiser(s.weights);
    s.weights = to_string(initialiser);
    require(s.dim >= 1, "inversion: dim must be at least 1, got {}", s.dim);
    require(s.heads >= 1 && s.dim % s.heads == 0, "inversion: heads must divide dim = {}, got {}",
            s.dim, s.heads);
    for (const AttentionKind kind : s.attention) {
      layers_.push_back(initial_layer(initialiser, kind, s.dim, s.heads, s.seed));
    }
  }
  s.dim = layers_.front().width();
  s.heads = layers_.front().heads;
  const double needed = memory_of(s, layers_.front());
  require(needed <= memory_of_machine(),
          "inversion: tokens = {}, dim = {}, heads = {} would take about {:.3g} GB of memory, this "
          "machine has {:.3g}",
          s.tokens, s.dim, s.heads, needed / 1e9, memory_of_machine() / 1e9);
  for (const AttentionKind kind : s.attention) {
    for (const double c : s.contractions) {
      for (const double r : s.ranges) {
        InversionRow row{.attention = kind, .contraction = c, .range = r, .D = s.dim, .H = s.heads};
        const ResidualAttention g = map_of(row);
        row.gain = g.gain();
        row.contraction_upper_bound = g.contraction();
        row.norm = g.norm();
        grid_.push_back(std::move(row));
      }
    }
  }
}

ResidualAttention Inversion::map_of(const InversionRow& row) const {
  const auto layer = std::find_if(layers_.begin(), layers_.end(), [&](const MultiHead& known) {
    return known.kind == row.attention;
  });
  const Mask mask = mask_of(settings_.mask);
  return settings_.divisor == "none"
             ? ResidualAttention::undivided(*layer, row.contraction, mask)
             : ResidualAttention::contractive(
                   *layer, settings_.tokens,
                   {.factor = row.contraction, .divisor = settings_.divisor}, mask);
}

InversionRow Inversion::run(Index k) const {
  InversionRow row = configuration(k);
  const InversionSettings& s = settings_;
  const ResidualAttention g = map_of(row);
  const auto input = [&](Index b) {
    Rng rng(s.seed, input_stream, static_cast<std::uint64_t>(b));
    Matrix x = row.range * uniform_matrix(rng, s.tokens, row.D, -1.0, 1.0);
    x.row(0).setZero();
    return x;
  };
  const auto batch = static_cast<std::size_t>(s.batch);
  const auto length = static_cast<std::size_t>(s.iterations) + 1;
  std::vector<std::vector<double>> errors(batch, std::vector<double>(length, inf));
  std::vector<Inverse> found(batch);
  parallel_for(s.batch, [&](Index b) {
    const auto at = static_cast<std::size_t>(b);
    const Matrix x = input(b);
    Matrix y;
    try {
      y = g.forward(x);
    } catch (const OverflowError&) {
      return;  // as a default Inverse says: non-finite
    }
    if (!y.allFinite()) {
      return;
    }
    found[at] = invert(g, y,
                       {.max_iterations = s.iterations,
                        .tolerance = s.tolerance,
                        .anderson = s.anderson,
                        .run_on = true,
                        .observer = [&](Index iteration, const ConstMatrixRef& x_k) {
                          errors[at][static_cast<std::size_t>(iteration)] =
                              (x_k - x).cwiseAbs().maxCoeff();
                        }});
    found[at].x.resize(0, 0);
  });
  row.errors.assign(length, 0.0);
  std::vector<InverseTermination> ends;
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t i = 0; i < length; ++i) {
      row.errors[i] = std::fmax(row.errors[i], errors[b][i]);
    }
    raise(row.rate, found[b].rate_estimate);
    raise(row.error_upper_bound, found[b].error_upper_bound);
    ends.push_back(found[b].termination);
  }
  row.status = status_of(ends, row.errors, another_solution * row.range + most_error * s.tolerance);
  if (s.log_det && ends.front() != InverseTermination::non_finite) {
    row.log_det = log_det(g, input(0), {.seed = s.seed});
  }
  return row;
}

Table inversion_table(const Inversion& inversion, const std::vector<InversionRow>& rows) {
  const InversionSettings& s = inversion.settings();
  Table table{
      {"attention", "weights", "mask", "n", "D", "H", "contraction", "divisor", "gain", "range",
       "seed", "batch", "anderson", "norm", "iteration", "reconstruction_error_estimate",
       "rate_estimate", "upper_bound_contraction", "upper_bound_error"},
      {}};
  const std::vector<std::string> log_det = log_det_columns(s);
  table.columns.insert(table.columns.end(), log_det.begin(), log_det.end());
  table.columns.emplace_back("status");
  for (const InversionRow& row : rows) {
    for (std::size_t k = 0; k < row.errors.size(); ++k) {
      std::vector<Cell> cells{std::string(to_string(row.attention)),
                              s.weights,
                              std::string(to_string(s.mask)),
                              std::int64_t{s.tokens},
                              std::int64_t{row.D},
                              std::int64_t{row.H},
                              row.contraction,
                              s.divisor,
                              row.gain,
                              row.range,
                              static_cast<std::int64_t>(s.seed),
                              std::int64_t{s.batch},
                              std::int64_t{s.anderson},
                              std::string(to_string(row.norm)),
                              static_cast<std::int64_t>(k),
                              row.errors[k],
                              number(row.rate),
                              number(row.contraction_upper_bound),
                              k + 1 == row.errors.size() ? number(row.error_upper_bound) : Cell()};
      if (s.log_det) {
        append_log_det(cells, row.log_det);
      }
      cells.emplace_back(row.status);
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

Table inversion_summary(const Inversion& inversion, const std::vector<InversionRow>& rows) {
  const InversionSettings& s = inversion.settings();
  const std::vector<Index> shown = shown_iterations(s.iterations);
  Table table{{"attention", "contraction", "range"}, {}};
  for (const Index k : shown) {
    table.columns.push_back(fmt::format("reconstruction_error_estimate_{}", k));
  }
  table.columns.insert(table.columns.end(), {"rate_estimate", "upper_bound_error"});
  const std::vector<std::string> log_det = log_det_columns(s);
  table.columns.insert(table.columns.end(), log_det.begin(), log_det.end());
  table.columns.emplace_back("status");
  for (const InversionRow& row : rows) {
    std::vector<Cell> cells{std::string(to_string(row.attention)), row.contraction, row.range};
    for (const Index k : shown) {
      cells.emplace_back(row.errors.at(static_cast<std::size_t>(k)));
    }
    cells.push_back(number(row.rate));
    cells.push_back(number(row.error_upper_bound));
    if (s.log_det) {
      append_log_det(cells, row.log_det);
    }
    cells.emplace_back(row.status);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string inversion_json(const Inversion& inversion, const std::vector<InversionRow>& rows) {
  const InversionSettings& s = inversion.settings();
  auto kinds = ordered_json::array();
  for (const AttentionKind kind : s.attention) {
    kinds.push_back(std::string(to_string(kind)));
  }
  const ordered_json json{{"lipsa", std::string(version())},
                          {"settings",
                           {{"attention", kinds},
                            {"contraction", s.contractions},
                            {"range", s.ranges},
                            {"divisor", s.divisor},
                            {"weights", s.weights},
                            {"mask", std::string(to_string(s.mask))},
                            {"tokens", s.tokens},
                            {"dim", s.dim},
                            {"heads", s.heads},
                            {"batch", s.batch},
                            {"iterations", s.iterations},
                            {"tolerance", s.tolerance},
                            {"anderson", s.anderson},
                            {"log_det", s.log_det},
                            {"seed", s.seed}}},
                          {"rows", ordered_json::parse(format_table(
                                       inversion_table(inversion, rows), TableFormat::json))}};
  return json.dump(1) + "\n";
}

}  // namespace lipsa
