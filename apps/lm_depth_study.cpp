#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "commands.hpp"
#include "common/depth_study_options.hpp"
#include "common/layer_options.hpp"
#include "common/output.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/experiment/depth_study_plot.hpp"

namespace lipsa::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr std::string_view depth_examples =
    "  lipsa lm depth-study --preset kim2021-table1-small --text book.txt\n"
    "      three kinds of attention, 1 to 18 blocks, two seeds: table 1 of the paper, scaled down\n"
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
  DepthStudyOptions o;
  const po::options_description options = describe_depth_study(o);
  po::variables_map values;
  if (!parse(lm_depth_study, depth_examples, arguments, options, values)) {
    return success;
  }
  if (values.count("preset") != 0) {
    apply_preset(lm_depth_study, values["preset"].as<std::string>(), options, values);
  }
  po::notify(values);
  const TableFormat format = parse_table_format(o.format);
  read_depth_study_options(o, values);
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
