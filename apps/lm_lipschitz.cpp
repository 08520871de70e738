#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "commands.hpp"
#include "common/layer_options.hpp"
#include "common/text_options.hpp"
#include "lipsa/experiment/table.hpp"
#include "lipsa/train/language_model_norms.hpp"
#include "lipsa/train/language_model_training.hpp"

namespace lipsa::cli {
namespace {

namespace po = boost::program_options;

constexpr std::string_view lipschitz_examples =
    "  lipsa lm lipschitz --text book.txt --inputs 4\n"
    "      |J|_2 of each attention layer and of the network at four windows of the validation "
    "text\n\n"
    "An attention layer is taken with its gain and without what the block adds; its bound is the\n"
    "smallest that holds at that input or on all X, as the column domain says. The network is the\n"
    "map from the embedded tokens to the logits.\n";

struct LipschitzOptions {
  TextOptions text{};
  std::string checkpoint = default_checkpoint;
  std::string part = "valid";
  Index inputs = 4;
  double tolerance = 1e-6;
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

int run(Arguments arguments) {
  LipschitzOptions o;
  po::options_description options("Options");
  describe_text(o.text, options);
  // clang-format off
  options.add_options()
      ("checkpoint", po::value(&o.checkpoint)->default_value(o.checkpoint), "the model, as lm train writes it")
      ("part", po::value(&o.part)->default_value(o.part), "of the text: train, valid, test")
      ("inputs", po::value(&o.inputs)->default_value(o.inputs), "windows of the text, evenly apart")
      ("tolerance", real(o.tolerance), "of the estimates: |J^T J v - s^2 v|_2 <= tolerance s^2");
  // clang-format on
  describe_output(o.threads, o.format, o.quiet, options);
  po::variables_map values;
  if (!parse(lm_lipschitz, lipschitz_examples, arguments, options, values)) {
    return success;
  }
  po::notify(values);
  const TableFormat format = parse_table_format(o.format);
  if (o.inputs < 1) {
    throw std::invalid_argument(fmt::format("--inputs must be at least 1, got {}", o.inputs));
  }
  if (!(o.tolerance > 0.0 && o.tolerance < 1.0)) {
    throw std::invalid_argument(
        fmt::format("--tolerance must be above 0 and below 1, got {}", o.tolerance));
  }
  const auto limit = thread_limit(o.threads);
  const Corpus corpus = read_corpus(o.text, values);
  const LanguageModelFile file = read_language_model(o.checkpoint);
  const auto ids = part_of(corpus, o.part, file.vocabulary, o.text);
  std::vector<Example> examples = examples_of(ids, file.vocabulary, file.options);
  std::erase_if(examples, [&](const Example& e) {  // shorter ones say less
    return e.length < std::min(file.options.context, static_cast<Index>(ids.size()) - 1) &&
           file.options.examples == ExampleKind::windows;
  });
  const auto inputs = std::min(static_cast<std::size_t>(o.inputs), examples.size());

  Table table{{"input", "n", "part", "local_norm_estimate", "residual", "upper_bound", "bound",
               "domain", "status"},
              {}};
  bool settled = true;
  std::optional<Progress> bar(std::in_place, o.quiet, "lm lipschitz");
  for (std::size_t k = 0; k < inputs; ++k) {
    bar->show(static_cast<double>(k) / static_cast<double>(inputs));
    const Example& example = examples[k * examples.size() / inputs];
    const std::vector<Index> window(ids.begin() + example.first,
                                    ids.begin() + example.first + example.length);
    for (const LanguageModelNorm& norm :
         language_model_norms(file.model, window, {.relative_tolerance = o.tolerance})) {
      settled = settled && norm.estimate.converged();
      table.rows.push_back({static_cast<std::int64_t>(k), std::int64_t{example.length}, norm.part,
                            norm.estimate.value, norm.estimate.residual,
                            norm.bound.empty() ? Cell() : Cell(norm.upper_bound), norm.bound,
                            norm.bound.empty() ? Cell() : Cell(std::string(to_string(norm.domain))),
                            std::string(to_string(norm.estimate.termination))});
    }
  }
  bar.reset();
  fmt::print("{}", format_table(table, format));
  return settled ? success : unsettled;
}

}  // namespace

const Command lm_lipschitz{
    "lm lipschitz", "|J|_2 of a trained model's layers at a text, beside their bounds.", &run};

}  // namespace lipsa::cli
