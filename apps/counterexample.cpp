#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "commands.hpp"
#include "common/layer_options.hpp"
#include "lipsa/model/witness.hpp"
#include "lipsa/search/counterexample.hpp"
#include "lipsa/search/refute.hpp"

namespace lipsa::cli {
namespace {

namespace po = boost::program_options;

constexpr std::string_view examples =
    "  lipsa counterexample --attention dot --weights layer.npz --tokens 8 --norm 2 --exceed 1e6\n"
    "      two inputs by which the layer is not Lipschitz with the constant 1e6\n"
    "  lipsa counterexample --refute kim2021_2_printed\n"
    "      a small layer and tokens that violate a formula\n"
    "  lipsa counterexample --refute list\n"
    "      the claims that may be put to the test\n\n"
    "Exit codes: 1 the claim is refuted, by the witness written; 0 it is not; 4 inconclusive.\n";

struct Options {
  LayerOptions layer{};
  std::string norm = "2";
  Index tokens = 3;
  double exceed = 0.0;
  std::string refute{};
  std::int64_t trials = RefuteOptions{}.trials;
  std::string out = "witness.npz";
  Index threads = 0;
  bool quiet = false;
};

po::options_description describe(Options& o) {
  po::options_description options("Options");
  describe_layer(o.layer, options);
  // clang-format off
  options.add_options()
      ("norm", po::value(&o.norm)->default_value(o.norm), "2, inf, 1 or max-token")
      ("tokens", po::value(&o.tokens)->default_value(o.tokens), "number of tokens n")
      ("exceed", po::value(&o.exceed), "K, up to 1e100: find |F(X) - F(Y)| > K |X - Y|")
      ("refute", po::value(&o.refute), "a bound of the catalogue, or softmax_quarter; list for all")
      ("trials", po::value(&o.trials)->default_value(o.trials), "of each search of --refute")
      ("out", po::value(&o.out)->default_value(o.out), "the witness, .npz, and beside it .json")
      ("threads", po::value(&o.threads)->default_value(o.threads), "threads to use, 0 for all; results are the same")
      ("quiet", po::bool_switch(&o.quiet), "no notes on stderr");
  // clang-format on
  return options;
}

void write(const Options& o, const Witness& witness, double ratio, std::uint64_t seed,
           const std::string& found_by) {
  write_witness(o.out, witness, {.ratio_lower_bound = ratio, .seed = seed, .found_by = found_by});
  fmt::print("refuted: {}\nratio: certified lower bound {}\nwitness: {}\n", in_words(witness),
             ratio, o.out);
  note(o.quiet, fmt::format("'lipsa verify {}' proves it from the file alone.", o.out));
}

int exceed(const Options& o, const po::variables_map& values) {
  ChosenLayer chosen = read_layer(o.layer, values, 0);
  for (const std::string& text : chosen.notes) {
    note(o.quiet, text);
  }
  const Counterexample result =
      find_counterexample(chosen.layer, chosen.mask, o.tokens,
                          {.norm = parse_norm(o.norm), .exceed = o.exceed, .seed = chosen.seed});
  switch (result.outcome) {
    case Counterexample::Outcome::found:
      write(o, *result.witness, result.ratio_lower_bound, chosen.seed, "counterexample");
      return refuted;
    case Counterexample::Outcome::impossible:
      fmt::print("no such pair exists: {}\n", result.reason);
      return success;
    case Counterexample::Outcome::inconclusive:
      break;
  }
  fmt::print("inconclusive: {}\n", result.reason);
  return unsettled;
}

int refute_claim(const Options& o, const po::variables_map& values) {
  for (const char* name : {"attention", "weights", "mask", "dim", "heads", "norm", "tokens"}) {
    if (!values[name].defaulted()) {
      throw std::invalid_argument(
          fmt::format("--{} must not be given with --refute, which chooses the layer", name));
    }
  }
  if (o.refute == "list") {
    for (const std::string& name : claims()) {
      fmt::print("{}\n", name);
    }
    return success;
  }
  const std::uint64_t seed = parse_seed(o.layer.seed);
  const Refutation result = refute(o.refute, {.trials = o.trials, .seed = seed});
  if (result.witness) {
    write(o, *result.witness, result.ratio_lower_bound, seed, result.found_by);
    return refuted;
  }
  if (result.tried == 0) {
    fmt::print("inconclusive: {} gave no number to compare in {} trials\n", o.refute, 2 * o.trials);
    return unsettled;
  }
  fmt::print("not refuted: {} in {} trials, largest norm/bound {} (estimate)\n", o.refute,
             result.tried, result.worst_ratio);
  return success;
}

int run(Arguments arguments) {
  Options o;
  po::variables_map values;
  if (!parse(cli::counterexample, examples, arguments, describe(o), values)) {
    return success;
  }
  po::notify(values);
  if ((values.count("exceed") != 0) == (values.count("refute") != 0)) {
    throw std::invalid_argument("give --exceed or --refute, one of them");
  }
  if (std::filesystem::path(o.out).extension() != ".npz") {
    throw std::invalid_argument(fmt::format("--out must end in .npz, got '{}'", o.out));
  }
  if (o.trials < 0) {
    throw std::invalid_argument(fmt::format("--trials must not be negative, got {}", o.trials));
  }
  const auto limit = thread_limit(o.threads);
  return values.count("exceed") != 0 ? exceed(o, values) : refute_claim(o, values);
}

}  // namespace

const Command counterexample{"counterexample",
                             "Inputs that refute a Lipschitz constant or a published bound.", &run};

}  // namespace lipsa::cli
