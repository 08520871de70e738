#include <fmt/format.h>

#include <filesystem>

#include "commands.hpp"
#include "common/layer_options.hpp"
#include "common/list.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/experiment/falsify_journal.hpp"
#include "lipsa/model/witness.hpp"
#include "lipsa/search/falsify.hpp"

namespace lipsa::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr std::int64_t block = 4096;  // trials between two states on disk

constexpr std::string_view examples =
    "  lipsa falsify --trials 100000\n"
    "      every bound that is believed, at random and adversarial layers and tokens\n"
    "  lipsa falsify --bounds kim2021_2_printed --trials 1000 --out printed\n"
    "      a formula known to be false: stops with a witness, exit code 1\n\n"
    "Exit codes: 0 no bound was violated, 1 one was, by the witness written.\n";

struct Options {
  std::string bounds = "all";
  std::int64_t trials = 100000;
  std::string seed = "0";
  std::string out = "falsify";
  bool resume = false;
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

po::options_description describe(Options& o) {
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("bounds", po::value(&o.bounds)->default_value(o.bounds), "list of names of the catalogue, or all that are not known to be false")
      ("trials", po::value(&o.trials)->default_value(o.trials), "layers and tokens to try")
      ("seed", po::value(&o.seed)->default_value(o.seed), "seed of the trials")
      ("out", po::value(&o.out)->default_value(o.out), "folder of the table, the state and a witness")
      ("resume", po::bool_switch(&o.resume), "go on from the state in that folder, perhaps with more trials")
      ("threads", po::value(&o.threads)->default_value(o.threads), "threads to use, 0 for all; results are the same")
      ("format", po::value(&o.format)->default_value(o.format), "of stdout: text, csv, json, markdown, latex")
      ("quiet", po::bool_switch(&o.quiet), "no notes and no progress on stderr");
  // clang-format on
  return options;
}

/// Writes the witness of the first violated entry; false when there is none.
bool report_violation(const Options& o, const FalsifyOptions& options,
                      const std::vector<FalsifyTally>& tallies) {
  // NOLINTNEXTLINE(readability-use-anyofallof): it writes what it finds
  for (const FalsifyTally& tally : tallies) {
    if (!(tally.worst() > 1.0 + measurement_error)) {
      continue;
    }
    const CatalogEntry& entry = find_entry(tally.name);
    const std::int64_t trial = tally.worst_ratio >= tally.worst_ratio_one_token
                                   ? tally.worst_trial
                                   : tally.worst_trial_one_token;
    const auto witness = violation(entry, falsify_trial(entry.attention, options.seed, trial));
    if (!witness) {
      fmt::print("{}: norm/bound {} (estimate) in trial {}, not proved\n", tally.name,
                 tally.worst(), trial);
      continue;
    }
    const fs::path path = fs::path(o.out) / fmt::format("{}.npz", tally.name);
    write_witness(path, *witness,
                  {.ratio_lower_bound = witness->exceeds,
                   .seed = options.seed,
                   .found_by = fmt::format("falsify, trial {}", trial)});
    fmt::print("violated: {}, norm/bound {} (estimate) in trial {}\nwitness: {}\n", tally.name,
               tally.worst(), trial, path.string());
    return true;
  }
  return false;
}

int run(Arguments arguments) {
  Options o;
  po::variables_map values;
  if (!parse(cli::falsify, examples, arguments, describe(o), values)) {
    return success;
  }
  po::notify(values);
  const TableFormat format = parse_table_format(o.format);
  if (o.trials < 0) {
    throw std::invalid_argument(fmt::format("--trials must not be negative, got {}", o.trials));
  }
  FalsifyOptions options{.seed = parse_seed(o.seed)};
  if (o.bounds != "all") {
    for (const std::string_view word : parse_words("bounds", o.bounds)) {
      options.bounds.emplace_back(find_entry(word).name);
    }
  }
  const auto limit = thread_limit(o.threads);
  std::error_code error;
  fs::create_directories(o.out, error);
  if (error) {
    throw WriteError(fmt::format("{}: {}", o.out, error.message()));
  }
  const fs::path state = fs::path(o.out) / "falsify.state.json";
  FalsifyProgress progress{.tallies = lipsa::falsify(options, 0, 0)};
  if (o.resume && fs::exists(state)) {
    progress = read_progress(state, options);
  }
  const auto any_violated = [&] {
    return std::any_of(progress.tallies.begin(), progress.tallies.end(),
                       [](const FalsifyTally& t) { return t.worst() > 1.0 + measurement_error; });
  };
  bool violated = any_violated();
  {
    Progress bar(o.quiet, "falsify");
    while (progress.next < o.trials && !violated) {
      bar.show(static_cast<double>(progress.next) / static_cast<double>(o.trials));
      const std::int64_t count = std::min(block, o.trials - progress.next);
      merge(progress.tallies, lipsa::falsify(options, progress.next, count));
      progress.next += count;
      write_progress(state, options, progress);
      violated = any_violated();
    }
  }
  const Table table = falsify_table(progress.tallies);
  write_file_atomically(fs::path(o.out) / "falsify.csv", format_table(table, TableFormat::csv));
  fmt::print("{}", format_table(table, format));
  note(o.quiet, fmt::format("{} trials of seed {}; {}: falsify.csv, falsify.state.json",
                            progress.next, options.seed, o.out));
  return violated && report_violation(o, options, progress.tallies) ? refuted
         : violated                                                 ? unsettled
                                                                    : success;
}

}  // namespace

const Command falsify{"falsify", "Tries to violate the bounds of the catalogue.", &run};

}  // namespace lipsa::cli
