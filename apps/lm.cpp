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
#include "common/presets.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/experiment/depth_study.hpp"
#include "lipsa/experiment/language_model_run.hpp"
#include "lipsa/experiment/table.hpp"
#include "lipsa/train/language_model_norms.hpp"
#include "lipsa/train/ngram.hpp"
#include "lipsa/train/sample.hpp"

namespace lipsa::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

const Command& find_task(std::string_view name);

// ---- the text -------------------------------------------------------------------------------

struct TextOptions {
  std::string text{};
  std::string corpus{};
  double valid = SplitOptions{}.valid;
  double test = SplitOptions{}.test;
};

po::typed_value<double>* real(double& x) {
  return po::value(&x)->default_value(x, fmt::format("{}", x));
}

void describe_text(TextOptions& o, po::options_description& options) {
  // clang-format off
  options.add_options()
      ("text", po::value(&o.text), "a text file, UTF-8: its beginning is for training, what follows for validation, its end for test")
      ("corpus", po::value(&o.corpus), "a folder with NAME.train.txt, NAME.valid.txt and NAME.test.txt, one sentence a line")
      ("valid-fraction", real(o.valid), "of the text for validation")
      ("test-fraction", real(o.test), "of the text for test");
  // clang-format on
}

Corpus read_corpus(const TextOptions& o, const po::variables_map& values) {
  if (o.text.empty() == o.corpus.empty()) {
    throw std::invalid_argument("give --text or --corpus, one of them");
  }
  if (!o.text.empty()) {
    return read_corpus_file(o.text, {.valid = o.valid, .test = o.test});
  }
  for (const char* name : {"valid-fraction", "test-fraction"}) {
    if (!values[name].defaulted()) {
      throw std::invalid_argument(
          fmt::format("--{} must not be given with --corpus, which has its own parts", name));
    }
  }
  return read_corpus_folder(o.corpus);
}

const std::string& name_of(const TextOptions& o) {
  return o.text.empty() ? o.corpus : o.text;
}

/// A part of a corpus as a model numbers its characters.
std::vector<CharacterId> part_of(const Corpus& corpus, const std::string& part,
                                 const Vocabulary& vocabulary, const TextOptions& o) {
  for (const auto& [name, ids] :
       {std::pair{"train", &corpus.train}, std::pair{"valid", &corpus.valid},
        std::pair{"test", &corpus.test}}) {
    if (part != name) {
      continue;
    }
    if (ids->size() < 2) {
      throw std::invalid_argument(
          fmt::format("{}: the part '{}' must have at least 2 characters, it has {}", name_of(o),
                      part, ids->size()));
    }
    try {
      return vocabulary.encode(corpus.vocabulary.decode(*ids));
    } catch (const std::invalid_argument& e) {  // the file's fault
      throw std::runtime_error(fmt::format("{}, part '{}': {}", name_of(o), part, e.what()));
    }
  }
  throw std::invalid_argument(fmt::format("--part must be train, valid or test, got '{}'", part));
}

// ---- train ----------------------------------------------------------------------------------

constexpr std::string_view train_examples =
    "  lipsa lm train --text book.txt --attention l2 --depth 2 --steps 2000\n"
    "      writes lm.safetensors and the log lm.csv\n"
    "  lipsa lm train --text book.txt --steps 4000 --resume\n"
    "      goes on from there, to the bytes of a training that never stopped\n\n"
    "Losses are in nats a character. Exit codes: 3 also for an empty text, 2 for one that is "
    "shorter\n"
    "than a batch, 4 when a loss, gradient or weight is not finite; then the last checkpoint "
    "stays.\n";

struct TrainOptions {
  TextOptions text{};
  std::string checkpoint = "lm.safetensors";
  std::string out{};
  Index log_every = LanguageModelRun{}.log_every;
  Index evaluate_every = LanguageModelRun{}.evaluate_every;
  Index checkpoint_every = LanguageModelRun{}.checkpoint_every;
  bool resume = false;
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

void describe_output(Index& threads, std::string& format, bool& quiet,
                     po::options_description& options) {
  // clang-format off
  options.add_options()
      ("threads", po::value(&threads)->default_value(threads), "threads to use, 0 for all; results are the same")
      ("format", po::value(&format)->default_value(format), "text, csv, json, markdown, latex")
      ("quiet", po::bool_switch(&quiet), "no notes and no progress on stderr");
  // clang-format on
}

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

/// Runs `body`, whose messages begin with the name of an option.
void for_option(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("--{}", e.what()));
  }
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

void require_at_least_1(std::initializer_list<std::pair<const char*, Index>> options) {
  for (const auto& [name, value] : options) {
    if (value < 1) {
      throw std::invalid_argument(fmt::format("--{} must be at least 1, got {}", name, value));
    }
  }
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
  if (fs::exists(o.checkpoint)) {
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
      trainer.set_steps(options.steps);
    }
    return trainer;
  }
  if (!o.text.corpus.empty() && values["examples"].defaulted()) {
    options.examples = ExampleKind::sentences;
  }
  return {options, corpus.vocabulary, corpus.train};
}

int train(Arguments arguments) {
  TrainOptions o;
  po::variables_map values;
  if (!parse(find_task("lm train"), train_examples, arguments, describe(o), values)) {
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
  if (run.log == run.checkpoint) {
    throw std::invalid_argument("--out must be another file than --checkpoint");
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

// ---- eval -----------------------------------------------------------------------------------

constexpr std::string_view eval_examples =
    "  lipsa lm eval --checkpoint lm.safetensors --text book.txt\n"
    "      the loss on the text's last twentieth, which training has not seen\n"
    "  lipsa lm eval --checkpoint lm.safetensors --text other.txt --part train\n"
    "      on the beginning of another one\n";

struct EvalOptions {
  TextOptions text{};
  std::string checkpoint = TrainOptions{}.checkpoint;
  std::string part = "test";
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

int eval(Arguments arguments) {
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
  if (!parse(find_task("lm eval"), eval_examples, arguments, options, values)) {
    return success;
  }
  po::notify(values);
  const TableFormat format = parse_table_format(o.format);
  const auto limit = thread_limit(o.threads);
  const Corpus corpus = read_corpus(o.text, values);
  const LanguageModelFile file = read_language_model(o.checkpoint);
  const auto ids = part_of(corpus, o.part, file.vocabulary, o.text);
  const TextLoss loss = evaluate(file.model, ids, examples_of(ids, file.vocabulary, file.options),
                                 file.options.batch);
  Table table{{"part", "step", "characters", "loss", "bits", "status"}, {}};
  table.rows.push_back({o.part, std::int64_t{file.step}, std::int64_t{loss.predicted}, loss.nats,
                        loss.bits(),
                        std::string(std::isfinite(loss.nats) ? "done" : "non-finite loss")});
  fmt::print("{}", format_table(table, format));
  return std::isfinite(loss.nats) ? success : unsettled;
}

// ---- sample ---------------------------------------------------------------------------------

constexpr std::string_view sample_examples =
    "  lipsa lm sample --prompt 'The king ' --length 500 --temperature 0.8\n"
    "      goes on with the prompt\n"
    "  lipsa lm sample --seed 2\n"
    "      begins a line\n";

struct WriteOptions {
  std::string checkpoint = TrainOptions{}.checkpoint;
  std::string prompt = "\n";
  std::string seed = "0";
  SampleOptions sample{};
  Index threads = 0;
};

int write_sample(Arguments arguments) {
  WriteOptions o;
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
  if (!parse(find_task("lm sample"), sample_examples, arguments, options, values)) {
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
    throw std::invalid_argument(fmt::format("--prompt: {}", e.what()));
  }
  const auto written = lipsa::sample(file.model, prompt, o.sample);
  fmt::print("{}{}\n", values.count("prompt") == 0 ? "" : o.prompt,
             file.vocabulary.decode(written));
  return success;
}

// ---- lipschitz ------------------------------------------------------------------------------

constexpr std::string_view lipschitz_examples =
    "  lipsa lm lipschitz --text book.txt --inputs 4\n"
    "      |J|_2 of each attention layer and of the network at four windows of the validation "
    "text\n";

struct LipschitzOptions {
  TextOptions text{};
  std::string checkpoint = TrainOptions{}.checkpoint;
  std::string part = "valid";
  Index inputs = 4;
  double tolerance = 1e-6;
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

int lipschitz(Arguments arguments) {
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
  if (!parse(find_task("lm lipschitz"), lipschitz_examples, arguments, options, values)) {
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

  Table table{
      {"input", "n", "part", "local_norm_estimate", "residual", "upper_bound", "bound", "status"},
      {}};
  bool settled = true;
  Progress bar(o.quiet, "lm lipschitz");
  for (std::size_t k = 0; k < inputs; ++k) {
    bar.show(static_cast<double>(k) / static_cast<double>(inputs));
    const Example& example = examples[k * examples.size() / inputs];
    const std::vector<Index> window(ids.begin() + example.first,
                                    ids.begin() + example.first + example.length);
    for (const LanguageModelNorm& norm :
         language_model_norms(file.model, window, {.relative_tolerance = o.tolerance})) {
      settled = settled && norm.estimate.converged();
      table.rows.push_back({static_cast<std::int64_t>(k), std::int64_t{example.length}, norm.part,
                            norm.estimate.value, norm.estimate.residual,
                            norm.bound.empty() ? Cell() : Cell(norm.upper_bound), norm.bound,
                            std::string(to_string(norm.estimate.termination))});
    }
  }
  fmt::print("{}", format_table(table, format));
  return settled ? success : unsettled;
}

// ---- depth-study ----------------------------------------------------------------------------

constexpr std::string_view depth_examples =
    "  lipsa lm depth-study --preset kim2021-table1-small --text book.txt\n"
    "      three kinds of attention, 2 to 18 blocks, two seeds: table 1 of the paper, scaled down\n"
    "  lipsa lm depth-study --text book.txt --attention dot,l2 --depth 1,2,3 --steps 100\n"
    "      a grid of one's own\n\n"
    "Writes depth-study.csv, a row a cell, attention-outputs.csv, histograms of what each "
    "attention\n"
    "layer gives, and of each cell checkpoint and log. Exit code 4 when a cell diverged.\n";

struct DepthOptions {
  TextOptions text{};
  std::string preset{};
  std::string out = "depth-study";
  DepthStudy study{};
  bool resume = false;
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

po::options_description describe(DepthOptions& o) {
  po::options_description options("Options");
  options.add_options()(
      "preset", po::value(&o.preset),
      fmt::format("options from a preset, what is typed wins: {}", preset_names("lm depth-study"))
          .c_str());
  describe_text(o.text, options);
  for (const Setting& setting : settings({})) {
    std::string value = setting.value;
    std::string meaning(setting.meaning);
    if (setting.name == "attention") {
      value = "dot,l2,contractive-l2";
      meaning = "list of " + meaning;
    } else if (setting.name == "depth") {
      value = "2,4,6";
      meaning = "list: " + meaning;
    } else if (setting.name == "seed") {
      meaning = "list: " + meaning;
    }
    options.add_options()(setting.name.c_str(), po::value<std::string>()->default_value(value),
                          meaning.c_str());
  }
  DepthStudy& s = o.study;
  // clang-format off
  options.add_options()
      ("out", po::value(&o.out)->default_value(o.out), "folder of tables, checkpoints and logs")
      ("log-every", po::value(&s.log_every)->default_value(s.log_every), "steps between two rows of a log")
      ("evaluate-every", po::value(&s.evaluate_every)->default_value(s.evaluate_every), "steps between two losses of the validation text")
      ("checkpoint-every", po::value(&s.checkpoint_every)->default_value(s.checkpoint_every), "steps between two checkpoints")
      ("resume", po::bool_switch(&o.resume), "go on with the cells in that folder");
  // clang-format on
  describe_output(o.threads, o.format, o.quiet, options);
  return options;
}

/// The grid and what its cells have in common.
void read_study(DepthStudy& study, const po::variables_map& values, bool sentences) {
  const auto text = [&](const std::string& name) { return values[name].as<std::string>(); };
  const std::string attention = text("attention");
  study.attention.clear();
  for (const std::string_view word : parse_words("attention", attention)) {
    for_option([&] { set(study.training, "attention", word); });
    study.attention.push_back(study.training.attention);
  }
  study.depth = parse_indices("depth", text("depth"));
  study.seed.clear();
  for (const Index seed : parse_indices("seed", text("seed"))) {
    if (seed < 0) {
      throw std::invalid_argument(fmt::format("--seed must not be negative, got {}", seed));
    }
    study.seed.push_back(static_cast<std::uint64_t>(seed));
  }
  for (const Setting& setting : settings({})) {
    if (setting.name != "attention" && setting.name != "depth" && setting.name != "seed") {
      for_option([&] { set(study.training, setting.name, text(setting.name)); });
    }
  }
  if (sentences && values["examples"].defaulted()) {
    study.training.examples = ExampleKind::sentences;
  }
  for (const Index depth : study.depth) {
    TrainingOptions cell = study.training;
    cell.depth = depth;
    for_option([&] { require_valid(cell); });
  }
  require_at_least_1({{"log-every", study.log_every},
                      {"evaluate-every", study.evaluate_every},
                      {"checkpoint-every", study.checkpoint_every}});
}

int depth(Arguments arguments) {
  DepthOptions o;
  const po::options_description options = describe(o);
  po::variables_map values;
  if (!parse(find_task("lm depth-study"), depth_examples, arguments, options, values)) {
    return success;
  }
  if (values.count("preset") != 0) {
    apply_preset(find_task("lm depth-study"), values["preset"].as<std::string>(), options, values);
  }
  po::notify(values);
  const TableFormat format = parse_table_format(o.format);
  read_study(o.study, values, !o.text.corpus.empty());
  const auto limit = thread_limit(o.threads);
  const Corpus corpus = read_corpus(o.text, values);
  o.study.folder = o.out;
  if (!o.resume && fs::is_directory(o.out) && !fs::is_empty(o.out)) {
    throw std::invalid_argument(
        fmt::format("--out {} is not empty: continue it with --resume, or name another", o.out));
  }
  std::error_code error;
  fs::create_directories(o.out, error);
  if (error) {
    throw WriteError(fmt::format("{}: {}", o.out, error.message()));
  }
  const auto write = [&](const DepthStudyResult& result) {
    write_file_atomically(fs::path(o.out) / "depth-study.csv",
                          format_table(depth_study_table(result), TableFormat::csv));
    write_file_atomically(fs::path(o.out) / "attention-outputs.csv",
                          format_table(attention_histogram(result), TableFormat::csv));
  };
  const DepthStudyResult result = [&] {
    Progress bar(o.quiet, "lm depth-study");
    const auto cells =
        static_cast<double>(o.study.attention.size() * o.study.depth.size() * o.study.seed.size());
    bar.show(0.0);
    return depth_study(corpus, o.study, [&](const DepthStudyResult& so_far) {
      write(so_far);
      bar.show(static_cast<double>(so_far.cells.size()) / cells);
    });
  }();
  write(result);
  fmt::print("{}", format_table(depth_study_table(result), format));
  note(o.quiet, fmt::format("{}: depth-study.csv, attention-outputs.csv", o.out));
  return std::any_of(result.cells.begin(), result.cells.end(),
                     [](const DepthStudyCell& cell) { return cell.status == "diverged"; })
             ? unsettled
             : success;
}

// ---- all of them ----------------------------------------------------------------------------

const std::array tasks{
    Command{"lm train", "Trains a model on the characters of a text.", &train},
    Command{"lm eval", "The loss of a trained model on a text.", &eval},
    Command{"lm sample", "Text that a trained model writes.", &write_sample},
    Command{"lm lipschitz", "|J|_2 of a trained model's layers at a text, beside their bounds.",
            &lipschitz},
    Command{"lm depth-study", "Test loss by depth and kind of attention, over a grid.", &depth}};

const Command& find_task(std::string_view name) {
  return *std::find_if(tasks.begin(), tasks.end(),
                       [&](const Command& task) { return task.name == name; });
}

int run(Arguments arguments) {
  const std::string name = arguments.empty() ? "" : arguments.front();
  for (const Command& task : tasks) {
    if (task.name == "lm " + name) {
      return guarded(task.name, [&] { return task.run(arguments.subspan(1)); });
    }
  }
  if (!name.empty() && name != "--help" && name != "-h") {
    throw std::invalid_argument(fmt::format("there is no task '{}'", name));
  }
  fmt::print("lipsa lm: {}\n\nUsage: lipsa lm TASK [options]\n\nTasks\n", lm.summary);
  for (const Command& task : tasks) {
    fmt::print("  {:<14} {}\n", task.name.substr(3), task.summary);
  }
  fmt::print("\n'lipsa lm TASK --help' shows its options.\n");
  return name.empty() ? usage : success;
}

}  // namespace

const Command lm{"lm", "Language models of characters: training, text, Lipschitz constants.", &run};

}  // namespace lipsa::cli
