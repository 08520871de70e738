#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "commands.hpp"
#include "common/layer_options.hpp"
#include "common/list.hpp"
#include "common/output.hpp"
#include "common/presets.hpp"
#include "common/text_options.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/experiment/depth_study_plot.hpp"

namespace lipsa::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr std::string_view depth_examples =
    "  lipsa lm depth-study --preset kim2021-table1-small --text book.txt\n"
    "      three kinds of attention, 2 to 18 blocks, two seeds: table 1 of the paper, scaled down\n"
    "  lipsa lm depth-study --text book.txt --model dot,l2 --depth 1,2,3 --steps 100\n"
    "      a grid of one's own\n\n"
    "Writes depth-study.csv, a row a cell, attention-outputs.csv, histograms of what each "
    "attention\n"
    "layer gives, pictures of both, and of each cell checkpoint and log. Exit code 4 when a cell\n"
    "diverged.\n\n"
    "Losses are in nats a character. Status: done; stuck, when the loss is not below that of a\n"
    "model that only counts characters; diverged, when a loss, gradient or weight is not finite.\n"
    "Deviations are those of what the first attention layer takes and gives. --resume wants the\n"
    "options of before.\n";

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
  options.add_options()("preset", po::value(&o.preset),
                        fmt::format("options from a preset, what is typed wins: {}",
                                    preset_names(lm_depth_study.name))
                            .c_str());
  describe_text(o.text, options);
  for (const Setting& setting : settings({})) {
    std::string value = setting.value;
    std::string meaning(setting.meaning);
    if (setting.name == "model") {
      value = "dot,l2,contractive-l2";
      meaning.insert(0, "list of ");
    } else if (setting.name == "depth") {
      value = "2,4,6";
      meaning.insert(0, "list: ");
    } else if (setting.name == "seed") {
      meaning.insert(0, "list: ");
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
  const std::string model = text("model");
  study.model.clear();
  for (const std::string_view word : parse_words("model", model)) {
    for_option([&] { set(study.training, "model", word); });
    study.model.push_back(study.training.model);
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
    if (setting.name != "model" && setting.name != "depth" && setting.name != "seed") {
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

/// MODEL-DEPTH-SEED of each checkpoint in a folder.
std::vector<std::string> cells_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".safetensors") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_cell_of(const DepthStudy& study, const std::string& name) {
  for (const LanguageModelKind model : study.model) {
    for (const Index depth : study.depth) {
      for (const std::uint64_t seed : study.seed) {
        if (name ==
            fmt::format("{}-{}-{}", settings({.model = model}).front().value, depth, seed)) {
          return true;
        }
      }
    }
  }
  return false;
}

int run(Arguments arguments) {
  DepthOptions o;
  const po::options_description options = describe(o);
  po::variables_map values;
  if (!parse(lm_depth_study, depth_examples, arguments, options, values)) {
    return success;
  }
  if (values.count("preset") != 0) {
    apply_preset(lm_depth_study, values["preset"].as<std::string>(), options, values);
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
  for (const std::string& name : cells_in(o.out)) {
    if (!is_cell_of(o.study, name)) {
      throw std::invalid_argument(fmt::format(
          "--resume: {} has the cell {}, which is not of this grid: name another folder, or all of "
          "its models, depths and seeds",
          o.out, name));
    }
  }
  prepare_folder(o.out, {"depth-study.csv", "attention-outputs.csv", "depth-study.meta.json"});
  const auto start = std::chrono::steady_clock::now();
  const auto write = [&](const DepthStudyResult& result) {
    write_file_atomically(fs::path(o.out) / "depth-study.csv",
                          format_table(depth_study_table(result), TableFormat::csv));
    write_file_atomically(fs::path(o.out) / "attention-outputs.csv",
                          format_table(attention_histogram(result), TableFormat::csv));
  };
  const DepthStudyResult result = [&] {
    Progress bar(o.quiet, "lm depth-study");
    const auto cells =
        static_cast<double>(o.study.model.size() * o.study.depth.size() * o.study.seed.size());
    bar.show(0.0);
    return depth_study(corpus, o.study, [&](const DepthStudyResult& so_far) {
      write(so_far);
      bar.show(static_cast<double>(so_far.cells.size()) / cells);
    });
  }();
  write(result);
  fmt::print("{}", format_table(depth_study_table(result), format));
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  write_file_atomically(fs::path(o.out) / "depth-study.meta.json",
                        meta_json(lm_depth_study.name, arguments, passed.count(), o.threads));
  std::string pictures = draw(o.out, "depth-study", depth_study_gnuplot(result), o.quiet);
  pictures += draw(o.out, "attention-outputs", attention_outputs_gnuplot(result), o.quiet);
  note(o.quiet, fmt::format("{}: depth-study.csv, attention-outputs.csv, depth-study.meta.json{}",
                            o.out, pictures));
  return std::any_of(result.cells.begin(), result.cells.end(),
                     [](const DepthStudyCell& cell) { return cell.status == "diverged"; })
             ? unsettled
             : success;
}

}  // namespace

const Command lm_depth_study{"lm depth-study", "Test loss by depth and kind of model, over a grid.",
                             &run};

}  // namespace lipsa::cli
