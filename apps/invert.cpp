#include "lipsa/invert/inverse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include "commands.hpp"
#include "common/layer_options.hpp"
#include "common/list.hpp"
#include "common/output.hpp"
#include "common/presets.hpp"
#include "common/text_options.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/core/npy.hpp"
#include "lipsa/experiment/inversion.hpp"
#include "lipsa/experiment/inversion_plot.hpp"
#include "lipsa/model/layer_file.hpp"

namespace lipsa::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using Clock = std::chrono::steady_clock;

constexpr std::string_view default_preset = "kim2021-fig3";
constexpr std::array grid_options{"attention", "contraction", "range",     "divide",
                                  "weights",   "mask",        "tokens",    "dim",
                                  "heads",     "batch",       "iterations"};
const Index iterations_at = InverseOptions{}.max_iterations;

constexpr std::string_view examples =
    "  lipsa invert\n"
    "      the paper's figure 3, into ./invert/kim2021-fig3/\n"
    "  lipsa invert --attention l2 --divide sharp --contraction 0.9 --tokens 32 --dim 16 --heads "
    "4\n"
    "      contractive attention, with a proved bound of the error\n"
    "  lipsa invert --at Y.npy --weights layer.npz --attention l2 --divide kim2021 \\\n"
    "      --contraction 0.9 --log-det --out X.npy\n"
    "      the X with X + c F(X)/L = Y\n\n"
    "Exit code 4: some map is not contractive, or did not converge; the status says which.\n";

struct Options {
  std::string attention = "l2,dot";
  std::string contraction = "0.5,0.7,0.9";
  std::string range = "1";
  std::string divide = InversionSettings{}.divisor;
  std::string weights = InversionSettings{}.weights;
  std::string mask = "none";
  Index tokens = InversionSettings{}.tokens;
  Index dim = InversionSettings{}.dim;
  Index heads = InversionSettings{}.heads;
  Index batch = InversionSettings{}.batch;
  Index iterations = InversionSettings{}.iterations;
  double tolerance = InversionSettings{}.tolerance;
  Index anderson = 0;
  bool log_det = false;
  std::string at{};
  std::string seed = "0";
  std::string preset{};
  Index threads = 0;
  std::string out{};
  std::string format = "text";
  bool quiet = false;
};

po::options_description describe(Options& o) {
  const auto text = [](std::string& field) { return po::value(&field)->default_value(field); };
  const auto count = [](Index& field) { return po::value(&field)->default_value(field); };
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("attention", text(o.attention), "list of l2 (tied), dot, l2-untied, cosine, sigmoid; with --at one, l2 unless given")
      ("contraction", text(o.contraction), "list of c of X + c F(X)/L, between 0 and 1; with --at one")
      ("divide", text(o.divide), "L: none, for 1, or kim2021, sharp (infinity norm), two (best 2-norm bound), or a bound of the catalogue on all X")
      ("range", text(o.range), "list of r: inputs are uniform on [-r, r], the first token 0")
      ("weights", text(o.weights), "identity, glorot, gaussian:SIGMA or a file .npz with W_Q, W_K, W_V, W_O, heads")
      ("mask", text(o.mask), "none, causal")
      ("tokens", count(o.tokens), "number of tokens n")
      ("dim", count(o.dim), "number of features D")
      ("heads", count(o.heads), "number of heads H")
      ("batch", count(o.batch), "number of inputs")
      ("iterations", count(o.iterations), fmt::format("fixed-point steps of each input; with --at at most so many, {} unless given", iterations_at).c_str())
      ("tolerance", po::value(&o.tolerance)->default_value(o.tolerance, fmt::format("{}", o.tolerance)), "on a/(1-a) |x_k - x_(k-1)|, a the contraction, proved or observed")
      ("anderson", count(o.anderson), "steps that Anderson acceleration combines, 0 for none")
      ("log-det", po::bool_switch(&o.log_det), "also log|det| of the map at the first input; with --at of its inverse at Y")
      ("at", po::value(&o.at), "tokens Y, .npy or the X of a .npz: solve X + c F(X)/L = Y")
      ("seed", text(o.seed), "seed of weights, inputs and probes")
      ("preset", po::value(&o.preset), fmt::format("options from a preset, what is typed wins: {}", preset_names(cli::invert.name)).c_str())
      ("threads", count(o.threads), "threads to use, 0 for all; results are the same")
      ("out", po::value(&o.out), "folder of the results [./invert, or in it one named by the preset]; with --at the file of X [X.npy]")
      ("format", text(o.format), "of stdout: text, csv, json, markdown, latex")
      ("quiet", po::bool_switch(&o.quiet), "no notes and no progress on stderr");
  // clang-format on
  return options;
}

void refuse_typed(const po::variables_map& values, std::initializer_list<const char*> names,
                  std::string_view why) {
  for (const char* name : names) {
    if (values.count(name) != 0 && !values[name].defaulted()) {
      throw std::invalid_argument(fmt::format("--{} must not be given with {}", name, why));
    }
  }
}

void refuse_size_of_file(const Options& o, const po::variables_map& values) {
  if (o.weights.ends_with(".npz")) {
    refuse_typed(values, {"dim", "heads"},
                 fmt::format("--weights {}, which has its own", o.weights));
  }
}

/// The columns of a table that are the same in every row, in front of the others.
std::string caption(const InversionSettings& s, TableFormat format) {
  const std::string text = fmt::format(
      "weights={} mask={} n={} D={} H={} divisor={} batch={} anderson={} seed={}\n", s.weights,
      to_string(s.mask), s.tokens, s.dim, s.heads, s.divisor, s.batch, s.anderson, s.seed);
  return (format == TableFormat::latex ? "% " : "") + text +
         (format == TableFormat::markdown ? "\n" : "");
}

std::string render(const Inversion& inversion, const std::vector<InversionRow>& rows,
                   TableFormat format) {
  switch (format) {
    case TableFormat::csv:
      return format_table(inversion_table(inversion, rows), format);
    case TableFormat::json:
      return inversion_json(inversion, rows);
    default:
      return caption(inversion.settings(), format) +
             format_table(inversion_summary(inversion, rows), format);
  }
}

int run_grid(const Options& o, const po::variables_map& values, Arguments arguments,
             const std::string& preset, TableFormat format) {
  refuse_size_of_file(o, values);
  const Inversion inversion(
      {.attention = parse_list<AttentionKind>("attention", o.attention, parse_attention_kind),
       .contractions = parse_reals("contraction", o.contraction),
       .ranges = parse_reals("range", o.range),
       .divisor = o.divide,
       .weights = o.weights,
       .mask = parse_mask(o.mask),
       .tokens = o.tokens,
       .dim = o.dim,
       .heads = o.heads,
       .batch = o.batch,
       .iterations = o.iterations,
       .tolerance = o.tolerance,
       .anderson = o.anderson,
       .log_det = o.log_det,
       .seed = parse_seed(o.seed)});
  for (const std::string& text : inversion.notes()) {
    note(o.quiet, text);
  }
  fs::path folder = o.out.empty() ? fs::path("invert") : fs::path(o.out);
  if (!preset.empty() && o.out.empty()) {
    folder /= preset;
  }
  prepare_folder(folder,
                 {"inversion.csv", "inversion.json", "inversion.meta.json", "inversion.gp"});
  const auto start = Clock::now();
  std::vector<InversionRow> rows;
  {
    Progress progress(o.quiet, preset.empty() ? "invert" : preset);
    for (Index k = 0; k < inversion.size(); ++k) {
      progress.show(static_cast<double>(k) / static_cast<double>(inversion.size()));
      rows.push_back(inversion.run(k));
    }
  }
  write_file_atomically(folder / "inversion.csv",
                        format_table(inversion_table(inversion, rows), TableFormat::csv));
  write_file_atomically(folder / "inversion.json", inversion_json(inversion, rows));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  write_file_atomically(folder / "inversion.meta.json",
                        meta_json(cli::invert.name, arguments, seconds, o.threads));
  const std::string pictures =
      draw(folder, "inversion", inversion_gnuplot(inversion, rows), o.quiet);
  fmt::print("{}", render(inversion, rows, format));
  note(o.quiet, fmt::format("{}: inversion.csv, inversion.json, inversion.meta.json{}",
                            folder.string(), pictures));
  const bool settled = std::all_of(
      rows.begin(), rows.end(), [](const InversionRow& row) { return row.status == "converged"; });
  return settled ? success : unsettled;
}

double only_contraction(const Options& o, const po::variables_map& values) {
  if (values["contraction"].defaulted()) {
    throw std::invalid_argument("give --contraction, one number, with --at");
  }
  const std::vector<double> list = parse_reals("contraction", o.contraction);
  if (list.size() != 1 || !(list.front() > 0.0 && list.front() < 1.0)) {
    throw std::invalid_argument(fmt::format(
        "--contraction must be one number between 0 and 1 with --at, got '{}'", o.contraction));
  }
  return list.front();
}

/// What --at found, in one row.
Table table_of(const ResidualAttention& g, const Options& o, Index tokens, double contraction,
               const Inverse& back, const std::optional<LogDet>& log_det) {
  const auto number = [](double x) { return std::isnan(x) ? Cell() : Cell(x); };
  Table table{
      {"attention", "weights", "mask", "n", "D", "H", "contraction", "divisor", "gain", "norm",
       "iterations", "a_posteriori_error_estimate", "upper_bound_error", "rate_estimate"},
      {}};
  std::vector<Cell> cells{std::string(to_string(g.layer().kind)),
                          o.weights,
                          std::string(to_string(g.mask().kind())),
                          std::int64_t{tokens},
                          std::int64_t{g.layer().width()},
                          std::int64_t{g.layer().heads},
                          contraction,
                          o.divide,
                          g.gain(),
                          std::string(to_string(g.norm())),
                          std::int64_t{back.iterations},
                          number(back.error_estimate),
                          number(back.error_upper_bound),
                          number(back.rate_estimate)};
  if (o.log_det) {
    table.columns.insert(table.columns.end(),
                         {"inverse_log_det_estimate", "log_det_standard_error_estimate",
                          std::isnan(g.contraction()) ? "log_det_truncation_estimate"
                                                      : "upper_bound_log_det_truncation",
                          "log_det_method", "log_det_status"});
    if (log_det) {
      cells.insert(cells.end(),
                   {number(-log_det->value), number(log_det->standard_error),
                    number(log_det->truncation_bound), std::string(to_string(log_det->method)),
                    std::string(to_string(log_det->status))});
    } else {
      cells.resize(table.columns.size());
    }
  }
  table.columns.emplace_back("status");
  cells.emplace_back(std::string(to_string(back.termination)));
  table.rows.push_back(std::move(cells));
  return table;
}

int run_at(const Options& o, const po::variables_map& values, TableFormat format) {
  refuse_typed(values, {"tokens", "batch", "range", "preset"},
               "--at, whose tokens are the one input");
  refuse_size_of_file(o, values);
  const double contraction = only_contraction(o, values);
  const fs::path out = o.out.empty() ? fs::path("X.npy") : fs::path(o.out);
  if (out.extension() != ".npy") {
    throw std::invalid_argument(fmt::format("--out must end in .npy with --at, got '{}'", o.out));
  }
  LayerOptions layer{.attention = values["attention"].defaulted() ? "l2" : o.attention,
                     .weights = o.weights,
                     .mask = o.mask,
                     .dim = o.dim,
                     .heads = o.heads,
                     .seed = o.seed};
  require_apart("--out", out, {{"--at", o.at}, {"--weights", o.weights}});
  const Matrix y = read_tokens(o.at);
  ChosenLayer chosen = read_layer(layer, values, y.cols());
  for (const std::string& text : chosen.notes) {
    note(o.quiet, text);
  }
  if (y.cols() != chosen.layer.width()) {
    throw std::runtime_error(
        fmt::format("{}: expected tokens of {} features as the layer has, found {}", o.at,
                    chosen.layer.width(), y.cols()));
  }
  const ResidualAttention g =
      o.divide == "none"
          ? ResidualAttention::undivided(std::move(chosen.layer), contraction, chosen.mask)
          : ResidualAttention::contractive(std::move(chosen.layer), y.rows(),
                                           {.factor = contraction, .divisor = o.divide},
                                           chosen.mask);
  const Inverse back = lipsa::invert(
      g, y,
      {.max_iterations = values["iterations"].defaulted() ? iterations_at : o.iterations,
       .tolerance = o.tolerance,
       .anderson = o.anderson});
  const bool known = std::isfinite(back.error_estimate) || std::isfinite(back.error_upper_bound);
  std::optional<LogDet> log_det;
  if (o.log_det && known) {
    log_det = lipsa::log_det(g, back.x, {.seed = chosen.seed});
  }
  if (known) {
    write_npy(out, to_array(back.x));
  }
  fmt::print("{}", format_table(table_of(g, o, y.rows(), contraction, back, log_det), format));
  note(o.quiet, known ? fmt::format("X: {}", out.string())
                      : "No X is written: nothing is known of its error.");
  const bool determined = !o.log_det || (log_det && (log_det->status == LogDetStatus::converged ||
                                                     log_det->status == LogDetStatus::singular));
  const bool settled =
      determined &&
      (back.converged() || (back.termination == InverseTermination::stalled && o.tolerance == 0.0));
  return settled ? success : unsettled;
}

int run(Arguments arguments) {
  Options o;
  const po::options_description options = describe(o);
  po::variables_map values;
  if (!parse(cli::invert, examples, arguments, options, values)) {
    return success;
  }
  const bool chosen = values.count("preset") != 0 || values.count("at") != 0 ||
                      std::any_of(grid_options.begin(), grid_options.end(), [&](const char* name) {
                        return values.count(name) != 0 && !values[name].defaulted();
                      });
  const std::string preset = values.count("preset") != 0 ? values["preset"].as<std::string>()
                             : chosen                    ? std::string()
                                                         : std::string(default_preset);
  if (!preset.empty() && values.count("at") == 0) {
    apply_preset(cli::invert, preset, options, values);
  }
  po::notify(values);
  const TableFormat format = parse_table_format(o.format);
  const auto limit = thread_limit(o.threads);
  return values.count("at") != 0 ? run_at(o, values, format)
                                 : run_grid(o, values, arguments, preset, format);
}

}  // namespace

const Command invert{"invert", "Inverts X + c F(X), contractive attention among them.", &run};

}  // namespace lipsa::cli
