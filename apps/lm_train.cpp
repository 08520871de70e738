#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "commands.hpp"
#include "common/layer_options.hpp"
#include "common/text_options.hpp"
#include "lipsa/experiment/language_model_run.hpp"
#include "lipsa/experiment/table.hpp"
#include "lipsa/train/ngram.hpp"

namespace lipsa::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr std::string_view train_examples =
    "  lipsa lm train --text book.txt --model l2 --depth 2 --steps 2000\n"
    "      writes lm.safetensors and the log lm.csv\n"
    "  lipsa lm train --text book.txt --steps 4000 --resume\n"
    "      goes on from there, to the bytes of a training that never stopped\n\n"
    "Losses are in nats a character. Exit codes: 3 also for an empty text, 2 for one that is "
    "shorter\n"
    "than a batch, 4 when a loss, gradient or weight is not finite; then the last checkpoint "
    "stays.\n";

struct TrainOptions {
  TextOptions text{};
  std::string checkpoint = default_checkpoint;
  std::string out{};
  Index log_every = LanguageModelRun{}.log_every;
  Index evaluate_every = LanguageModelRun{}.evaluate_every;
  Index checkpoint_every = LanguageModelRun{}.checkpoint_every;
  bool resume = false;
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

po::options_description describe(TrainOptions& o) {
  po::options_description options("Options");
  describe_text(o.text, options);
  for (const Setting& setting : settings({})) {
    options.add_options()(setting.name.c_str(),
                          po::value<std::string>()->default_value(setting.value),
                          std::string(setting.meaning).c_str());
  }
  // clang-format off
  options.add_options()
      ("checkpoint", po::value(&o.checkpoint)->default_value(o.checkpoint), "the model and all that training on needs")
      ("out", po::value(&o.out), "log, CSV [the checkpoint's name with .csv]")
      ("log-every", po::value(&o.log_every)->default_value(o.log_every), "steps between two rows of the log")
      ("evaluate-every", po::value(&o.evaluate_every)->default_value(o.evaluate_every), "steps between two losses of the validation text")
      ("checkpoint-every", po::value(&o.checkpoint_every)->default_value(o.checkpoint_every), "steps between two checkpoints")
      ("resume", po::bool_switch(&o.resume), "go on from the checkpoint, if it is there, with its options and perhaps more --steps");
  // clang-format on
  describe_output(o.threads, o.format, o.quiet, options);
  return options;
}

TrainingOptions options_of(const po::variables_map& values) {
  TrainingOptions options;
  for_option([&] {
    for (const Setting& setting : settings({})) {
      set(options, setting.name, values[setting.name].as<std::string>());
    }
    require_valid(options);
  });
  return options;
}

/// Refuses options that were typed and are not those of the checkpoint, except for its steps.
void require_same(const TrainingOptions& typed, const TrainingOptions& own,
                  const po::variables_map& values, const std::string& checkpoint) {
  const std::vector<Setting> ours = settings(typed);
  const std::vector<Setting> theirs = settings(own);
  for (std::size_t k = 0; k < ours.size(); ++k) {
    if (ours[k].name != "steps" && !values[ours[k].name].defaulted() &&
        ours[k].value != theirs[k].value) {
      throw std::invalid_argument(
          fmt::format("--{} {} must be as in --resume from {}, which has {}", ours[k].name,
                      ours[k].value, checkpoint, theirs[k].value));
    }
  }
}

Trainer make_trainer(const TrainOptions& o, const po::variables_map& values, const Corpus& corpus) {
  TrainingOptions options = options_of(values);
  std::error_code error;
  if (fs::exists(o.checkpoint, error)) {
    if (!o.resume) {
      throw std::invalid_argument(fmt::format(
          "--checkpoint {} is there already: continue it with --resume, or name another",
          o.checkpoint));
    }
    const LanguageModelFile file = read_language_model(o.checkpoint);
    require_same(options, file.options, values, o.checkpoint);
    if (!(file.vocabulary == corpus.vocabulary)) {
      throw std::runtime_error(
          fmt::format("{}: it was written in training on another text than {}: characters differ",
                      o.checkpoint, name_of(o.text)));
    }
    Trainer trainer(o.checkpoint, corpus.train);
    if (!values["steps"].defaulted()) {
      if (options.steps < trainer.steps()) {
        throw std::invalid_argument(fmt::format("--steps {} must be at least the {} that {} has",
                                                options.steps, trainer.steps(), o.checkpoint));
      }
      trainer.set_steps(options.steps);
    }
    return trainer;
  }
  if (!o.text.corpus.empty() && values["examples"].defaulted()) {
    options.examples = ExampleKind::sentences;
  }
  try {
    return {options, corpus.vocabulary, corpus.train};
  } catch (const std::invalid_argument& e) {  // options are valid: the text is too short
    throw std::invalid_argument(fmt::format("{}: {}", name_of(o.text), e.what()));
  }
}

int run(Arguments arguments) {
  TrainOptions o;
  po::variables_map values;
  if (!parse(lm_train, train_examples, arguments, describe(o), values)) {
    return success;
  }
  po::notify(values);
  const TableFormat format = parse_table_format(o.format);
  static_cast<void>(options_of(values));  // before the text is read
  const LanguageModelRun run{
      .checkpoint = o.checkpoint,
      .log = o.out.empty() ? fs::path(o.checkpoint).replace_extension(".csv") : fs::path(o.out),
      .log_every = o.log_every,
      .evaluate_every = o.evaluate_every,
      .checkpoint_every = o.checkpoint_every};
  require_at_least_1({{"log-every", o.log_every},
                      {"evaluate-every", o.evaluate_every},
                      {"checkpoint-every", o.checkpoint_every}});
  require_apart("--out", run.log, {{"--checkpoint", run.checkpoint}, {"--text", o.text.text}});
  require_apart("--checkpoint", run.checkpoint, {{"--text", o.text.text}});
  if (o.checkpoint.empty()) {
    throw std::invalid_argument("--checkpoint must not be empty");
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(o.text.corpus, error)) {
    if (entry.path().extension() == ".txt") {
      require_apart("--out", run.log, {{"a text of --corpus", entry.path()}});
      require_apart("--checkpoint", run.checkpoint, {{"a text of --corpus", entry.path()}});
    }
  }
  if (fs::exists(run.log, error) && !fs::exists(run.checkpoint, error)) {
    throw std::invalid_argument(fmt::format(
        "--out {} is there already, and is not the log of a training to --resume: name another",
        run.log.string()));
  }
  const auto limit = thread_limit(o.threads);
  const Corpus corpus = read_corpus(o.text, values);
  Trainer trainer = make_trainer(o, values, corpus);
  note(o.quiet, fmt::format("{} characters for training, {} for validation, {} for test; {}",
                            corpus.train.size(), corpus.valid.size(), corpus.test.size(),
                            in_words(corpus.vocabulary)));
  if (trainer.steps() > 0) {
    note(o.quiet, fmt::format("{}: goes on after step {}", o.checkpoint, trainer.steps()));
  }

  const auto outcome = [&] {
    Progress bar(o.quiet, "lm train");
    const auto start = std::chrono::steady_clock::now();
    Index tokens = 0;
    return run_training(trainer, corpus.valid, run, [&](const TrainingStep& step) {
      tokens += step.predicted;
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      if (bar.on()) {
        bar.show(static_cast<double>(step.step) / static_cast<double>(trainer.options().steps),
                 fmt::format(", loss {:.3f}, {:.0f} tokens/s", step.loss,
                             static_cast<double>(tokens) / passed.count()));
      }
    });
  }();
  const bool any_valid = outcome.valid.predicted > 0;
  Table table{{"step", "valid_loss", "valid_bits", "bigram_valid_loss", "status"}, {}};
  table.rows.push_back(
      {std::int64_t{outcome.step}, any_valid ? Cell(outcome.valid.nats) : Cell(),
       any_valid ? Cell(outcome.valid.bits()) : Cell(),
       corpus.valid.size() > 1
           ? Cell(bigram_nll(corpus.train, corpus.valid, corpus.vocabulary.size()))
           : Cell(),
       std::string(outcome.status == StepStatus::taken ? "done" : to_string(outcome.status))});
  fmt::print("{}", format_table(table, format));
  note(o.quiet, fmt::format("{}, {}", run.checkpoint.string(), run.log.string()));
  if (outcome.status != StepStatus::taken) {
    fmt::print(stderr,
               "lipsa lm train: {} in step {}: training stopped, {} is the last checkpoint\n",
               to_string(outcome.status), outcome.step + 1, o.checkpoint);
    return unsettled;
  }
  return success;
}

}  // namespace

const Command lm_train{"lm train", "Trains a model on the characters of a text.", &run};

}  // namespace lipsa::cli
