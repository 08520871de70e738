#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "commands.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/experiment/table.hpp"
#include "lipsa/model/witness.hpp"
#include "lipsa/search/certificate.hpp"

namespace lipsa::cli {
namespace {

namespace po = boost::program_options;

constexpr std::string_view examples =
    "  lipsa verify witness.npz\n"
    "      prove or refute what the file claims, in ball arithmetic\n"
    "  lipsa verify witness.npz --bits-max 16384 --format json\n"
    "      try harder, and print an object for programs\n\n"
    "Exit codes: 0 proved, 1 refuted, 4 undecided, 3 bad file.\n";

struct Options {
  std::string witness{};
  Index bits_max = VerifyOptions{}.max_bits;
  std::string format = "text";
};

po::options_description describe(Options& o) {
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("witness", po::value(&o.witness), "the file, .npz; the name of the option may be left out")
      ("bits-max", po::value(&o.bits_max)->default_value(o.bits_max), "highest precision to try")
      ("format", po::value(&o.format)->default_value(o.format), "of stdout: text, json");
  // clang-format on
  return options;
}

std::string upper_case(std::string_view word) {
  std::string text(word);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// The file, with the bound that it names known to the catalogue.
Witness read_known(const std::filesystem::path& path) {
  Witness witness = read_witness(path);
  if (!witness.bound.empty()) {
    try {
      static_cast<void>(find_entry(witness.bound));
    } catch (const std::invalid_argument& e) {  // here the file is at fault, not the caller
      throw std::runtime_error(
          fmt::format("{}: member \"claim\": bound: {}", path.string(), e.what()));
    }
  }
  return witness;
}

void print_text(const Witness& witness, const Verdict& verdict) {
  fmt::print("{}: {}\n", upper_case(to_string(verdict.outcome)), in_words(witness));
  if (!verdict.reason.empty()) {
    fmt::print("reason: {}\n", verdict.reason);
  }
  if (verdict.bits > 0) {
    fmt::print("ratio: certified lower bound {}, certified upper bound {}\nprecision: {} bits\n",
               verdict.ratio_lower_text, verdict.ratio_upper_text, verdict.bits);
  }
}

void print_json(const Witness& witness, const Verdict& verdict) {
  const Table table{{"outcome", "claim", "exceeds", "bound", "reason",
                     "ratio_certified_lower_bound", "ratio_certified_upper_bound", "bits"},
                    {{std::string(to_string(verdict.outcome)), in_words(witness), witness.exceeds,
                      witness.bound, verdict.reason, verdict.ratio_lower_text,
                      verdict.ratio_upper_text, std::int64_t{verdict.bits}}}};
  fmt::print("{}", format_table(table, TableFormat::json));
}

int run(Arguments arguments) {
  Options o;
  const po::options_description options = describe(o);
  po::positional_options_description positional;
  positional.add("witness", 1);
  po::variables_map values;
  if (!parse(cli::verify, examples, arguments, options, values, positional)) {
    return success;
  }
  po::notify(values);
  if (o.witness.empty()) {
    throw std::invalid_argument("give the file of a witness");
  }
  if (o.format != "text" && o.format != "json") {
    throw std::invalid_argument(fmt::format("--format must be text or json, got '{}'", o.format));
  }
  VerifyOptions settings{.max_bits = o.bits_max};
  if (o.bits_max < settings.min_bits || o.bits_max > 1000000) {
    throw std::invalid_argument(fmt::format("--bits-max must be from {} to 1000000, got {}",
                                            settings.min_bits, o.bits_max));
  }
  const Witness witness = read_known(o.witness);
  const Verdict verdict = lipsa::verify(witness, settings);
  (o.format == "json" ? print_json : print_text)(witness, verdict);
  switch (verdict.outcome) {
    case Outcome::proved:
      return success;
    case Outcome::refuted:
      return refuted;
    case Outcome::undecided:
      break;
  }
  return unsettled;
}

}  // namespace

const Command verify{"verify", "Proves or refutes the claim of a witness file.", &run};

}  // namespace lipsa::cli
