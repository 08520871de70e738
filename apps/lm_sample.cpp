#include <fmt/format.h>

#include "commands.hpp"
#include "common/layer_options.hpp"
#include "common/text_options.hpp"
#include "lipsa/train/language_model_training.hpp"
#include "lipsa/train/sampling.hpp"

namespace lipsa::cli {
namespace {

namespace po = boost::program_options;

constexpr std::string_view sample_examples =
    "  lipsa lm sample --prompt 'The king ' --length 500 --temperature 0.8\n"
    "      goes on with the prompt\n"
    "  lipsa lm sample --seed 2\n"
    "      begins a line\n";

struct Options {
  std::string checkpoint = default_checkpoint;
  std::string prompt = "\n";
  std::string seed = "0";
  SampleOptions sample{};
  Index threads = 0;
};

int run(Arguments arguments) {
  Options o;
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("checkpoint", po::value(&o.checkpoint)->default_value(o.checkpoint), "the model, as lm train writes it")
      ("prompt", po::value(&o.prompt), "characters to go on with [a line end]")
      ("length", po::value(&o.sample.length)->default_value(o.sample.length), "characters to write")
      ("temperature", real(o.sample.temperature), "T: probabilities are to the power 1/T; 0: the most probable character")
      ("seed", po::value(&o.seed)->default_value(o.seed), "seed of the choices")
      ("threads", po::value(&o.threads)->default_value(o.threads), "threads to use, 0 for all; results are the same");
  // clang-format on
  po::variables_map values;
  if (!parse(lm_sample, sample_examples, arguments, options, values)) {
    return success;
  }
  po::notify(values);
  o.sample.seed = parse_seed(o.seed);
  if (o.prompt.empty()) {
    throw std::invalid_argument("--prompt must not be empty");
  }
  const auto limit = thread_limit(o.threads);
  const LanguageModelFile file = read_language_model(o.checkpoint);
  std::vector<CharacterId> prompt;
  try {
    prompt = file.vocabulary.encode(o.prompt);
  } catch (const std::invalid_argument& e) {
    if (values.count("prompt") == 0) {
      throw std::invalid_argument(
          fmt::format("give --prompt: {} knows no line end to begin with", o.checkpoint));
    }
    throw std::invalid_argument(fmt::format("--prompt: {}", e.what()));
  }
  o.sample.context = file.options.context;
  std::vector<CharacterId> written;
  try {
    written = lipsa::sample(file.model, prompt, o.sample);
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(fmt::format("{}: {}", o.checkpoint, e.what()));
  }
  fmt::print("{}{}\n", values.count("prompt") == 0 ? "" : o.prompt,
             file.vocabulary.decode(written));
  return success;
}

}  // namespace

const Command lm_sample{"lm sample", "Text that a trained model writes.", &run};

}  // namespace lipsa::cli
