#include <fmt/format.h>

#include <cmath>

#include "commands.hpp"
#include "common/layer_options.hpp"
#include "common/text_options.hpp"
#include "lipsa/experiment/table.hpp"
#include "lipsa/train/language_model_training.hpp"

namespace lipsa::cli {
namespace {

namespace po = boost::program_options;

constexpr std::string_view eval_examples =
    "  lipsa lm eval --checkpoint lm.safetensors --text book.txt\n"
    "      the loss on the text's last twentieth, which training has not seen\n"
    "  lipsa lm eval --checkpoint lm.safetensors --text other.txt --part train\n"
    "      on the beginning of another one\n\n"
    "The loss is in nats a character, the mean of -log p over the characters predicted.\n";

struct EvalOptions {
  TextOptions text{};
  std::string checkpoint = default_checkpoint;
  std::string part = "test";
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

int run(Arguments arguments) {
  EvalOptions o;
  po::options_description options("Options");
  describe_text(o.text, options);
  // clang-format off
  options.add_options()
      ("checkpoint", po::value(&o.checkpoint)->default_value(o.checkpoint), "the model, as lm train writes it")
      ("part", po::value(&o.part)->default_value(o.part), "of the text: train, valid, test");
  // clang-format on
  describe_output(o.threads, o.format, o.quiet, options);
  po::variables_map values;
  if (!parse(lm_eval, eval_examples, arguments, options, values)) {
    return success;
  }
  po::notify(values);
  const TableFormat format = parse_table_format(o.format);
  const auto limit = thread_limit(o.threads);
  const Corpus corpus = read_corpus(o.text, values);
  const LanguageModelFile file = read_language_model(o.checkpoint);
  const auto ids = part_of(corpus, o.part, file.vocabulary, o.text);
  if (o.part != "train" && text_hash(corpus.train) != file.text_hash) {
    note(o.quiet, fmt::format("{} is not the text, or not so divided, that {} was trained on: the "
                              "part '{}' may hold what training has seen",
                              name_of(o.text), o.checkpoint, o.part));
  }
  const TextLoss loss = evaluate(file.model, ids, examples_of(ids, file.vocabulary, file.options),
                                 file.options.batch);
  Table table{{"part", "step", "characters", "loss", "bits", "status"}, {}};
  table.rows.push_back({o.part, std::int64_t{file.step}, std::int64_t{loss.predicted}, loss.nats,
                        loss.bits(),
                        std::string(std::isfinite(loss.nats) ? "done" : "non-finite loss")});
  fmt::print("{}", format_table(table, format));
  return std::isfinite(loss.nats) ? success : unsettled;
}

}  // namespace

const Command lm_eval{"lm eval", "The loss of a trained model on a text.", &run};

}  // namespace lipsa::cli
