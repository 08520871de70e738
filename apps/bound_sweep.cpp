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
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/experiment/sweep.hpp"
#include "lipsa/experiment/sweep_journal.hpp"
#include "lipsa/experiment/sweep_plot.hpp"

namespace lipsa::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using Clock = std::chrono::steady_clock;

constexpr std::array default_presets{"kim2021-fig2", "dot-growth"};
constexpr std::array grid_options{"attention", "norm", "tokens",  "dim",  "heads",
                                  "radius",    "mask", "weights", "input"};

constexpr std::string_view examples =
    "  lipsa bound-sweep\n"
    "      the paper's figure 2 and the growth of dot-product attention, into ./bound-sweep/\n"
    "  lipsa bound-sweep --attention l2 --norm inf,2 --tokens 8:128:2x --dim 4 --heads 2 \\\n"
    "      --weights glorot --out glorot\n"
    "      bounds and lower bounds for random weights, tables and pictures in ./glorot/\n"
    "  lipsa bound-sweep --attention dot --norm 2 --weights layer.npz --input layer.npz\n"
    "      the norm of the Jacobian of a layer at the tokens in its file\n\n"
    "Lists are 8,16,32 or 8:256:2x (geometric) or 0:100:10 (arithmetic).\n";

struct Options {
  std::string attention = "l2";
  std::string norm = "inf";
  std::string tokens{};
  std::string dim = "1";
  std::string heads = "1";
  std::string radius = "inf";
  std::string mask = "none";
  std::string weights = "identity";
  std::string input{};
  std::string bounds = "all";
  Index restarts = SweepSettings{}.restarts;
  Index steps = SweepSettings{}.steps;
  double learning_rate = SweepSettings{}.learning_rate;
  std::string seed = "0";
  std::string preset{};
  Index threads = 0;
  std::string out{};
  bool resume = false;
  std::string format = "text";
  bool quiet = false;
};

po::options_description describe(Options& o) {
  const auto text = [](std::string& field) { return po::value(&field)->default_value(field); };
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("attention", text(o.attention), "list of l2 (tied), dot, l2-untied, cosine, sigmoid")
      ("norm", text(o.norm), "list of inf, 2, 1, max-token")
      ("tokens", po::value(&o.tokens), "list of numbers of tokens n")
      ("dim", text(o.dim), "list of numbers of features D")
      ("heads", text(o.heads), "list of numbers of heads H")
      ("radius", text(o.radius), "list of radii of the ball |x_i|_2 <= R that tokens keep to")
      ("mask", text(o.mask), "list of none, causal")
      ("weights", text(o.weights), "identity, glorot, gaussian:SIGMA or a file .npz with W_Q, W_K, W_V, W_O, heads")
      ("input", po::value(&o.input), "tokens, .npy or the X of a .npz: the norm there in place of the ascent")
      ("bounds", text(o.bounds), "list of names of the catalogue to set beside it, or all")
      ("restarts", po::value(&o.restarts)->default_value(o.restarts), "random starts of the ascent")
      ("steps", po::value(&o.steps)->default_value(o.steps), "ascent steps a start may take")
      ("learning-rate", po::value(&o.learning_rate)->default_value(o.learning_rate, fmt::format("{}", o.learning_rate)), "step of Adam")
      ("seed", text(o.seed), "seed of weights and starts")
      ("preset", po::value(&o.preset), fmt::format("options from a preset, what is typed wins: {}", preset_names(bound_sweep.name)).c_str())
      ("threads", po::value(&o.threads)->default_value(o.threads), "threads to use, 0 for all; results are the same")
      ("out", po::value(&o.out), "folder of the results [./bound-sweep, or in it one named by the preset]")
      ("resume", po::bool_switch(&o.resume), "continue an interrupted sweep in that folder")
      ("format", text(o.format), "of stdout: text, csv, json, markdown, latex")
      ("quiet", po::bool_switch(&o.quiet), "no notes and no progress on stderr");
  // clang-format on
  return options;
}

SweepSettings settings_of(const Options& o, const po::variables_map& values) {
  const auto typed = [&](const char* name) { return !values[name].defaulted(); };
  SweepSettings s;
  s.attention = parse_list<AttentionKind>("attention", o.attention, parse_attention_kind);
  s.norms = parse_list<Norm>("norm", o.norm, parse_norm);
  s.masks = parse_list<Mask::Kind>("mask", o.mask, parse_mask);
  s.dims = parse_indices("dim", o.dim);
  s.heads = parse_indices("heads", o.heads);
  s.radii = parse_reals("radius", o.radius);
  s.weights = o.weights;
  if (o.bounds != "all") {
    s.bounds = parse_list<std::string>("bounds", o.bounds, [](std::string_view word) {
      return std::string(find_entry(word).name);
    });
  }
  s.restarts = o.restarts;
  s.steps = o.steps;
  s.learning_rate = o.learning_rate;
  s.seed = parse_seed(o.seed);
  if (!o.tokens.empty()) {
    s.tokens = parse_indices("tokens", o.tokens);
  }
  const bool file_weights = o.weights.ends_with(".npz");
  for (const char* name : {"dim", "heads"}) {
    if (file_weights && typed(name)) {
      throw std::invalid_argument(fmt::format(
          "--{} must not be given with --weights {}, which has its own", name, o.weights));
    }
  }
  if (values.count("input") != 0) {
    s.input = o.input;
    for (const char* name : {"tokens", "radius", "restarts", "steps", "learning-rate"}) {
      if (values.count(name) != 0 && typed(name)) {
        throw std::invalid_argument(fmt::format(
            "--{} must not be given with --input, at whose tokens the norm is taken", name));
      }
    }
  } else if (s.tokens.empty()) {
    throw std::invalid_argument(
        "give --tokens, or tokens in a file by --input, or a --preset; without any of these "
        "options "
        "the default presets run");
  }
  return s;
}

/// The table for people: columns that say the same in every row move into a caption.
std::string for_people(const Table& table, TableFormat format) {
  Table shown;
  std::string caption;
  shown.rows.resize(table.rows.size());
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string& column = table.columns[c];
    if (column.starts_with("lower_bound_") && std::isdigit(column.back()) != 0) {
      continue;  // starts 2 to 5: in the files
    }
    const bool constant = table.rows.size() > 1 && c < 11 &&
                          std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
                            return row[c] == table.rows.front()[c];
                          });
    if (constant) {
      const Table one{{column}, {{table.rows.front()[c]}}};
      std::string text = format_table(one, TableFormat::csv);
      text = text.substr(text.find('\n') + 1);
      text.pop_back();
      caption += fmt::format("{}{}={}", caption.empty() ? "" : " ", column, text);
      continue;
    }
    shown.columns.push_back(column);
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      shown.rows[r].push_back(table.rows[r][c]);
    }
  }
  if (!caption.empty()) {
    caption = (format == TableFormat::latex ? "% " : "") + caption + "\n" +
              (format == TableFormat::markdown ? "\n" : "");
  }
  return caption + format_table(shown, format);
}

std::string fits_text(const std::vector<GrowthFit>& fits, TableFormat format) {
  if (fits.empty()) {
    return {};
  }
  Table table{{"fit", "radius_from", "radius_to", "slope_estimate", "slope_estimate_witness"}, {}};
  for (const GrowthFit& fit : fits) {
    table.rows.push_back({fit.curve, fit.radius_from, fit.radius_to, fit.slope,
                          std::isnan(fit.slope_witness) ? Cell() : Cell(fit.slope_witness)});
  }
  return "\n" + format_table(table, format);
}

std::string render(const Sweep& sweep, const std::vector<SweepRow>& rows, TableFormat format) {
  switch (format) {
    case TableFormat::csv:
      return format_table(sweep_table(sweep, rows), format);
    case TableFormat::json:
      return sweep_json(sweep, rows);
    default:
      return for_people(sweep_table(sweep, rows), format) + fits_text(fit_growth(rows), format);
  }
}

double cost_of(const SweepRow& row) {
  const auto n = static_cast<double>(row.n);
  return n * static_cast<double>(row.D) * (row.norm == Norm::inf ? 1.0 : n);
}

/// One sweep, from settings to files; appends its text for stdout.
bool run_sweep(const Sweep& sweep, const fs::path& folder, const Options& o, Arguments arguments,
               const std::string& title, TableFormat format) {
  for (const std::string& text : sweep.notes()) {
    note(o.quiet, text);
  }
  prepare_folder(folder, {"sweep.csv", "sweep.json", "sweep.meta.json", "sweep.gp"});
  const auto start = Clock::now();
  SweepJournal journal(folder / "sweep.journal", sweep, o.resume);
  std::vector<SweepRow> rows;
  {
    double all = 0.0;
    double done = 0.0;
    for (Index k = 0; k < sweep.size(); ++k) {
      all += cost_of(sweep.configuration(k));
    }
    Progress progress(o.quiet, title);
    for (Index k = 0; k < sweep.size(); ++k) {
      progress.show(done / all);
      if (!journal.row(k)) {
        journal.append(k, sweep.run(k));
      }
      rows.push_back(*journal.row(k));
      done += cost_of(rows.back());
    }
  }
  write_file_atomically(folder / "sweep.csv",
                        format_table(sweep_table(sweep, rows), TableFormat::csv));
  write_file_atomically(folder / "sweep.json", sweep_json(sweep, rows));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  write_file_atomically(folder / "sweep.meta.json",
                        meta_json(bound_sweep.name, arguments, seconds, o.threads));
  const std::string script = sweep_gnuplot(rows);
  if (script.empty()) {
    note(o.quiet, "No picture: the configurations span no axis.");
  }
  const std::string pictures = draw(folder, "sweep", script, o.quiet);
  journal.remove();
  fmt::print("{}", render(sweep, rows, format));
  note(o.quiet,
       fmt::format("{}: sweep.csv, sweep.json, sweep.meta.json{}", folder.string(), pictures));
  return std::all_of(rows.begin(), rows.end(), [](const SweepRow& row) { return row.settled(); });
}

int run(Arguments arguments) {
  Options first;
  po::variables_map values;
  if (!parse(bound_sweep, examples, arguments, describe(first), values)) {
    return success;
  }
  po::notify(values);
  const TableFormat format = parse_table_format(first.format);
  const auto limit = thread_limit(first.threads);

  std::vector<std::string> jobs{first.preset};
  const bool chosen = values.count("preset") != 0 ||
                      std::any_of(grid_options.begin(), grid_options.end(), [&](const char* name) {
                        return values.count(name) != 0 && !values[name].defaulted();
                      });
  if (!chosen) {
    jobs.assign(default_presets.begin(), default_presets.end());
  }

  // Everything is checked before the first row is computed.
  struct Job {
    std::string title;
    fs::path folder;
    Sweep sweep;
  };
  std::vector<Job> sweeps;
  for (const std::string& preset : jobs) {
    Options o;
    const auto options = describe(o);
    po::variables_map own;
    if (!parse(bound_sweep, examples, arguments, options, own)) {
      return success;
    }
    if (!preset.empty()) {
      apply_preset(bound_sweep, preset, options, own);
    }
    po::notify(own);
    fs::path folder = own.count("out") != 0 ? fs::path(o.out) : fs::path("bound-sweep");
    if (!preset.empty() && (own.count("out") == 0 || jobs.size() > 1)) {
      folder /= preset;
    }
    sweeps.push_back({preset.empty() ? "bound-sweep" : preset, folder, Sweep(settings_of(o, own))});
  }

  bool settled = true;
  for (const Job& job : sweeps) {
    if (&job != sweeps.data()) {
      fmt::print("{}", format == TableFormat::json ? ",\n" : "\n");
    } else if (format == TableFormat::json && sweeps.size() > 1) {
      fmt::print("[\n");
    }
    if (format == TableFormat::text && sweeps.size() > 1) {
      fmt::print("{}\n", job.title);
    }
    settled = run_sweep(job.sweep, job.folder, first, arguments, job.title, format) && settled;
  }
  if (format == TableFormat::json && sweeps.size() > 1) {
    fmt::print("]\n");
  }
  return settled ? success : unsettled;
}

}  // namespace

const Command bound_sweep{"bound-sweep", "Bounds from above and below over a grid of layers.",
                          &run};

}  // namespace lipsa::cli
