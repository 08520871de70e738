#include "lipsa/experiment/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/check.hpp"
#include "core/machine_memory.hpp"
#include "core/rounding.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/core/version.hpp"
#include "lipsa/model/initial_weights.hpp"
#include "lipsa/model/layer_file.hpp"
#include "lipsa/search/ascent.hpp"
#include "lipsa/search/measure.hpp"

namespace lipsa {
namespace {

using nlohmann::ordered_json;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr std::size_t shown_starts = 5;

/// FNV-1a, 64 bits: names random streams and tells files apart; no defence against malice.
std::uint64_t hash_of(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325U) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  }
  return hash;
}

std::uint64_t hash_of(const ConstMatrixRef& a, std::uint64_t hash = 0xcbf29ce484222325U) {
  hash = hash_of(fmt::format("{}x{};", a.rows(), a.cols()), hash);
  for (Index i = 0; i < a.rows(); ++i) {
    hash = hash_of({reinterpret_cast<const char*>(a.row(i).data()),
                    static_cast<std::size_t>(a.cols()) * sizeof(double)},
                   hash);
  }
  return hash;
}

std::uint64_t hash_of(const MultiHead& layer) {
  std::uint64_t hash = hash_of(fmt::format("{};{};{};{};{}", to_string(layer.kind), layer.heads,
                                           layer.scale, layer.epsilon, layer.score_bias));
  for (const Matrix* w : {&layer.W_Q, &layer.W_K, &layer.W_V, &layer.W_O}) {
    hash = hash_of(*w, hash);
  }
  for (const Vector* b : {&layer.b_Q, &layer.b_K, &layer.b_V, &layer.b_O}) {
    hash = hash_of(b->transpose(), hash);
  }
  return hash;
}

bool is_initialiser(const std::string& weights) {
  return weights == "identity" || weights == "glorot" || weights.starts_with("gaussian");
}

template <class T>
void require_list(const std::vector<T>& list, std::string_view name) {
  require(!list.empty(), "sweep: {} must not be empty", name);
  std::set<T> seen(list.begin(), list.end());
  require(seen.size() == list.size(), "sweep: {} must not name a value twice", name);
}

Mask mask_of(Mask::Kind kind) {
  return kind == Mask::Kind::causal ? Mask::causal() : Mask::none();
}

/// What names the random streams of a row: its configuration, without its place in the grid.
std::string name_of(const SweepRow& row) {
  return fmt::format("{};{};{};{};{};{};{}", to_string(row.attention), to_string(row.mask),
                     to_string(row.norm), row.D, row.H, row.n, row.radius);
}

void run_at_input(SweepRow& row, const MultiHead& layer, const Mask& mask, const Matrix& x) {
  const LocalNorm norm = local_norm(layer, x, mask, row.norm);
  row.local_norm = norm.estimate;
  row.residual = norm.residual;
  row.status = norm.status;
  if (std::isfinite(norm.estimate)) {
    row.lower_bounds = {norm.lower_bound};
    row.lower_bound_source = "input";
  }
}

void run_ascent(SweepRow& row, const MultiHead& layer, const Mask& mask,
                const SweepSettings& settings) {
  const Ascent ascent = maximise_local_norm(layer, mask, row.n,
                                            {.norm = row.norm,
                                             .restarts = settings.restarts,
                                             .steps = settings.steps,
                                             .learning_rate = settings.learning_rate,
                                             .radius = row.radius,
                                             .seed = settings.seed,
                                             .configuration = hash_of(name_of(row))});
  const std::size_t count = std::min(shown_starts, ascent.maxima.size());
  for (std::size_t k = 0; k < count; ++k) {
    row.lower_bounds.push_back(ascent.maxima[k].lower_bound);
  }
  row.status = "no start";
  if (!ascent.maxima.empty()) {
    row.lower_bound_source = ascent.maxima.front().source;
    row.status = to_string(ascent.maxima.front().termination);
  }
  row.lower_bound_median =
      ascent.maxima.empty() ? std::numeric_limits<double>::quiet_NaN() : ascent.median;
  if (!ascent.witness.source.empty()) {
    row.lower_bound_witness = ascent.witness.lower_bound;
    row.witness = ascent.witness.source;
  }
}

/// About how much memory a row takes, in bytes: the starts, and what a Jacobian holds a thread.
double memory_of(const SweepRow& row, Index starts, bool one_token) {
  const auto real = [](Index i) { return static_cast<double>(i); };
  const double tokens = real(row.n) * real(row.D);
  const double layer = 12.0 * real(row.D) * real(row.H) * real(row.d);
  const double attention = 4.0 * real(row.H) * real(row.n) * (one_token ? 1.0 : real(row.n));
  const double features = 12.0 * real(row.n) * real(row.H) * real(row.d);
  return 8.0 * (real(starts) * (2.0 * tokens + 40.0) + layer + attention + features);
}

double highest_lower_bound(const SweepRow& row) {
  const double found = row.lower_bounds.empty() ? 0.0 : row.lower_bounds.front();
  return std::fmax(found, row.lower_bound_witness);
}

Cell number(double x) {
  return std::isnan(x) ? Cell() : Cell(x);
}

std::string column_of(const SweepBound& bound) {
  return (bound.refuted ? "refuted_" : "upper_bound_") + bound.name;
}

/// The columns of the bounds that occur, in the order of the catalogue.
std::vector<std::string> bound_columns(const std::vector<SweepRow>& rows) {
  std::map<std::string, std::string> by_name;
  for (const SweepRow& row : rows) {
    for (const SweepBound& bound : row.bounds) {
      by_name.emplace(bound.name, column_of(bound));
    }
  }
  std::vector<std::string> columns;
  for (const CatalogEntry& entry : catalog()) {
    const auto found = by_name.find(std::string(entry.name));
    if (found != by_name.end()) {
      columns.push_back(found->second);
    }
  }
  return columns;
}

double slope_of(const std::vector<std::pair<double, double>>& points) {
  const auto count = static_cast<double>(points.size());
  double x_mean = 0.0;
  double y_mean = 0.0;
  for (const auto& [x, y] : points) {
    x_mean += x / count;
    y_mean += y / count;
  }
  double xy = 0.0;
  double xx = 0.0;
  for (const auto& [x, y] : points) {
    xy += (x - x_mean) * (y - y_mean);
    xx += (x - x_mean) * (x - x_mean);
  }
  return xy / xx;
}

template <class T, class F>
ordered_json json_list(const std::vector<T>& list, const F& text) {
  auto array = ordered_json::array();
  for (const T& item : list) {
    array.push_back(text(item));
  }
  return array;
}

ordered_json json_number(double x) {
  return std::isfinite(x) ? ordered_json(x) : ordered_json(fmt::format("{}", x));
}

ordered_json settings_json(const SweepSettings& s) {
  const auto name = [](auto kind) { return std::string(to_string(kind)); };
  const auto same = [](Index i) { return i; };
  ordered_json json{
      {"attention", json_list(s.attention, name)}, {"mask", json_list(s.masks, name)},
      {"norm", json_list(s.norms, name)},          {"dim", json_list(s.dims, same)},
      {"heads", json_list(s.heads, same)},         {"tokens", json_list(s.tokens, same)},
      {"radius", json_list(s.radii, json_number)}, {"weights", s.weights}};
  if (s.input) {
    json["input"] = s.input->string();
  } else {
    json["restarts"] = s.restarts;
    json["steps"] = s.steps;
    json["learning_rate"] = s.learning_rate;
  }
  json["seed"] = s.seed;
  json["bounds"] = s.bounds;
  return json;
}

}  // namespace

double SweepRow::tightness() const {
  double upper = std::numeric_limits<double>::quiet_NaN();
  for (const SweepBound& bound : bounds) {
    if (!bound.refuted) {
      upper = std::fmin(upper, bound.value);
    }
  }
  const double lower = highest_lower_bound(*this);
  return lower > 0.0 ? div_up(upper, lower) : std::numeric_limits<double>::quiet_NaN();
}

Sweep::Sweep(SweepSettings settings) : settings_(std::move(settings)) {
  SweepSettings& s = settings_;
  require_list(s.attention, "attention");
  require_list(s.masks, "mask");
  require_list(s.norms, "norm");
  require_list(s.radii, "radius");
  for (const double radius : s.radii) {
    require(radius > 0.0, "sweep: radius must be positive, got {}", radius);
  }
  for (const std::string& name : s.bounds) {
    static_cast<void>(find_entry(name));
  }
  require(s.restarts >= 0, "sweep: restarts must not be negative, got {}", s.restarts);
  require(s.steps >= 1, "sweep: steps must be at least 1, got {}", s.steps);
  require(std::isfinite(s.learning_rate) && s.learning_rate > 0.0,
          "sweep: learning-rate must be positive, got {}", s.learning_rate);

  if (is_initialiser(s.weights)) {
    s.weights = to_string(parse_initialiser(s.weights));
  } else {
    s.dims.clear();
    s.heads.clear();
    for (const AttentionKind kind : s.attention) {
      LayerFile file = read_layer_file(s.weights, kind);
      notes_.insert(notes_.end(), file.notes.begin(), file.notes.end());
      s.dims = {file.layer.width()};
      s.heads = {file.layer.heads};
      file_layers_.push_back(std::move(file.layer));
    }
  }
  if (s.input) {
    require(s.tokens.empty(), "sweep: tokens must not be given with input, which has its own");
    require(s.radii == std::vector{inf}, "sweep: radius must not be given with input");
    input_ = read_tokens(*s.input);
    s.tokens = {input_->rows()};
    if (is_initialiser(s.weights) && s.dims == SweepSettings{}.dims) {
      s.dims = {input_->cols()};
    }
  }
  require_list(s.dims, "dim");
  require_list(s.heads, "heads");
  require_list(s.tokens, "tokens");
  for (const Index D : s.dims) {
    require(D >= 1, "sweep: dim must be at least 1, got {}", D);
    if (input_ && input_->cols() != D) {
      throw std::runtime_error(
          fmt::format("{}: expected tokens of {} features as the layer has, found {}",
                      s.input->string(), D, input_->cols()));
    }
    for (const Index H : s.heads) {
      require(H >= 1, "sweep: heads must be at least 1, got {}", H);
      require(!file_layers_.empty() || D % H == 0, "sweep: heads must divide dim = {}, got {}", D,
              H);
    }
  }
  for (const Index n : s.tokens) {
    require(n >= 1, "sweep: tokens must be at least 1, got {}", n);
  }

  for (const AttentionKind kind : s.attention) {
    for (const Mask::Kind mask : s.masks) {
      for (const Norm norm : s.norms) {
        for (const Index D : s.dims) {
          for (const Index H : s.heads) {
            for (const Index n : s.tokens) {
              for (const double radius : s.radii) {
                const Index d = file_layers_.empty() ? D / H : file_layers_.front().head_width();
                grid_.push_back({.attention = kind,
                                 .mask = mask,
                                 .norm = norm,
                                 .n = n,
                                 .D = D,
                                 .H = H,
                                 .d = d,
                                 .radius = radius});
              }
            }
          }
        }
      }
    }
  }
  for (const SweepRow& row : grid_) {
    const bool one_token = (row.norm == Norm::inf || row.norm == Norm::max_token) &&
                           row.mask == Mask::Kind::none && !input_;
    const double needed = memory_of(row, input_ ? 1 : s.restarts, one_token);
    require(needed <= memory_of_machine(),
            "sweep: tokens = {}, dim = {}, heads = {}, restarts = {} would take about {:.3g} GB of "
            "memory, this machine has {:.3g}",
            row.n, row.D, row.H, s.restarts, needed / 1e9, memory_of_machine() / 1e9);
  }
}

MultiHead Sweep::layer_of(const SweepRow& row) const {
  for (const MultiHead& layer : file_layers_) {
    if (layer.kind == row.attention) {
      return layer;
    }
  }
  return initial_layer(parse_initialiser(settings_.weights), row.attention, row.D, row.H,
                       settings_.seed);
}

std::string Sweep::identity() const {
  ordered_json json{{"lipsa", std::string(version())}, {"settings", settings_json(settings_)}};
  for (const MultiHead& layer : file_layers_) {
    json["weights_hash"].push_back(hash_of(layer));
  }
  if (input_) {
    json["input_hash"] = hash_of(*input_);
  }
  return json.dump();
}

SweepRow Sweep::run(Index k) const {
  require(k >= 0 && k < size(), "Sweep: configuration must be in [0, {}), got {}", size(), k);
  SweepRow row = grid_[static_cast<std::size_t>(k)];
  const MultiHead layer = layer_of(row);
  const Mask mask = mask_of(row.mask);
  const BoundSetting setting{.layer = layer,
                             .mask = mask,
                             .tokens = row.n,
                             .radius = row.radius,
                             .x = input_ ? &*input_ : nullptr};
  for (const Bound& bound : bounds_for(setting, row.norm)) {
    const bool shown = settings_.bounds.empty() ||
                       std::find(settings_.bounds.begin(), settings_.bounds.end(), bound.name) !=
                           settings_.bounds.end();
    if (!shown) {
      continue;
    }
    row.bounds.push_back({.name = bound.name, .refuted = bound.refuted, .value = bound.value});
  }
  if (input_) {
    run_at_input(row, layer, mask, *input_);
  } else {
    run_ascent(row, layer, mask, settings_);
  }
  return row;
}

Table sweep_table(const Sweep& sweep, const std::vector<SweepRow>& rows) {
  const SweepSettings& s = sweep.settings();
  const std::vector<std::string> bounds = bound_columns(rows);
  Table table;
  table.columns = {"attention", "weights", "mask", "n", "D", "H", "d", "radius", "norm", "seed"};
  if (s.input) {
    table.columns.insert(table.columns.end(),
                         {"local_norm", "local_norm_kind", "residual", "lower_bound"});
  } else {
    table.columns.insert(table.columns.end(),
                         {"restarts", "lower_bound", "lower_bound_2", "lower_bound_3",
                          "lower_bound_4", "lower_bound_5", "lower_bound_median",
                          "lower_bound_source", "lower_bound_witness", "witness"});
  }
  table.columns.insert(table.columns.end(), bounds.begin(), bounds.end());
  table.columns.insert(table.columns.end(), {"tightness_upper_bound", "status"});

  for (const SweepRow& row : rows) {
    std::vector<Cell> cells{std::string(to_string(row.attention)),
                            s.weights,
                            std::string(to_string(row.mask)),
                            std::int64_t{row.n},
                            std::int64_t{row.D},
                            std::int64_t{row.H},
                            std::int64_t{row.d},
                            row.radius,
                            std::string(to_string(row.norm)),
                            static_cast<std::int64_t>(s.seed)};
    if (s.input) {
      cells.insert(cells.end(), {row.local_norm, std::string("estimate"), row.residual});
    } else {
      cells.emplace_back(std::int64_t{s.restarts});
    }
    const std::size_t shown = s.input ? 1 : shown_starts;
    for (std::size_t k = 0; k < shown; ++k) {
      cells.push_back(k < row.lower_bounds.size() ? Cell(row.lower_bounds[k]) : Cell());
    }
    if (!s.input) {
      cells.insert(cells.end(), {number(row.lower_bound_median), row.lower_bound_source,
                                 number(row.lower_bound_witness), row.witness});
    }
    for (const std::string& column : bounds) {
      const auto found = std::find_if(row.bounds.begin(), row.bounds.end(),
                                      [&](const SweepBound& b) { return column_of(b) == column; });
      cells.push_back(found == row.bounds.end() ? Cell() : number(found->value));
    }
    cells.push_back(number(row.tightness()));
    cells.emplace_back(row.status);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<GrowthFit> fit_growth(const std::vector<SweepRow>& rows) {
  std::vector<std::pair<std::string, std::vector<const SweepRow*>>> curves;
  for (const SweepRow& row : rows) {
    const std::string curve =
        fmt::format("{}, {} mask, norm {}, n={}, D={}, H={}", to_string(row.attention),
                    to_string(row.mask), to_string(row.norm), row.n, row.D, row.H);
    auto found = std::find_if(curves.begin(), curves.end(),
                              [&](const auto& known) { return known.first == curve; });
    if (found == curves.end()) {
      found = curves.insert(curves.end(), {curve, {}});
    }
    if (std::isfinite(row.radius)) {
      found->second.push_back(&row);
    }
  }
  std::vector<GrowthFit> fits;
  for (const auto& [curve, points] : curves) {
    if (points.empty()) {
      continue;
    }
    const auto by_radius = [](const SweepRow* a, const SweepRow* b) {
      return a->radius < b->radius;
    };
    const auto [least, most] = std::minmax_element(points.begin(), points.end(), by_radius);
    const double middle = std::sqrt((*least)->radius) * std::sqrt((*most)->radius) * (1.0 - 1e-9);
    GrowthFit fit{.curve = curve, .radius_from = (*most)->radius, .radius_to = (*most)->radius};
    std::vector<std::pair<double, double>> found;
    std::vector<std::pair<double, double>> by_witness;
    for (const SweepRow* row : points) {
      if (row->radius < middle) {
        continue;
      }
      fit.radius_from = std::min(fit.radius_from, row->radius);
      if (highest_lower_bound(*row) > 0.0) {
        found.emplace_back(std::log(row->radius), std::log(highest_lower_bound(*row)));
      }
      if (row->lower_bound_witness > 0.0) {
        by_witness.emplace_back(std::log(row->radius), std::log(row->lower_bound_witness));
      }
    }
    if (found.size() >= 3) {
      fit.slope = slope_of(found);
      fit.slope_witness =
          by_witness.size() >= 3 ? slope_of(by_witness) : std::numeric_limits<double>::quiet_NaN();
      fits.push_back(std::move(fit));
    }
  }
  return fits;
}

std::string sweep_json(const Sweep& sweep, const std::vector<SweepRow>& rows) {
  ordered_json json{
      {"lipsa", std::string(version())},
      {"settings", settings_json(sweep.settings())},
      {"rows", ordered_json::parse(format_table(sweep_table(sweep, rows), TableFormat::json))}};
  for (const GrowthFit& fit : fit_growth(rows)) {
    json["fits"].push_back({{"curve", fit.curve},
                            {"kind", "estimate"},
                            {"radius_from", fit.radius_from},
                            {"radius_to", fit.radius_to},
                            {"slope_lower_bound", fit.slope},
                            {"slope_lower_bound_witness", json_number(fit.slope_witness)}});
  }
  return json.dump(1) + "\n";
}

}  // namespace lipsa
