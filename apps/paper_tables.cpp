#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "commands.hpp"
#include "common/depth_study_options.hpp"
#include "common/layer_options.hpp"
#include "common/list.hpp"
#include "common/output.hpp"
#include "common/recorded.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/core/version.hpp"
#include "lipsa/experiment/paper_tables.hpp"
#include "lipsa/model/layer_file.hpp"

namespace lipsa::cli {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

constexpr std::string_view examples =
    "  lipsa paper-tables --quick\n"
    "      all of Kim, Papamakarios & Mnih 2021 in minutes; open paper-tables/report.html\n"
    "  lipsa paper-tables --full --corpus kjv --out full --resume\n"
    "      at the sizes of the paper, but language models, which are small; goes on where it was\n"
    "      stopped\n"
    "  lipsa paper-tables --only theorem-3.2,figure-2\n"
    "      some of it\n\n"
    "Writes report.html, which needs no other file, and NAME.csv, NAME.md, NAME.tex of each "
    "table. A section that an ascent did not settle says so; the exit code is 0 all the same.\n";

struct Options {
  std::string only{};
  bool quick = false;
  bool full = false;
  std::string depth_study{};
  TextOptions text{};
  std::string weights{};
  std::string out = "paper-tables";
  std::string seed = "0";
  bool resume = false;
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

po::options_description describe(Options& o) {
  std::string names;
  for (const PaperTable& table : lipsa::paper_tables()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", table.name);
  }
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("only", po::value(&o.only), fmt::format("list of {}", names).c_str())
      ("quick", po::bool_switch(&o.quick), "sizes that take minutes (the default)")
      ("full", po::bool_switch(&o.full), "the sizes of the paper, in hours; with small language models where a text is given")
      ("depth-study", po::value(&o.depth_study), "folder of a study by this version of lipsa lm depth-study, for figure-4, table-1 and output-variance; without it and a text, those recorded with this version");
  describe_text(o.text, options);
  options.add_options()
      ("weights", po::value(&o.weights), "list of layer files to show beside random layers, in theorem-3.1 and figure-3")
      ("out", po::value(&o.out)->default_value(o.out), "folder of the report")
      ("seed", po::value(&o.seed)->default_value(o.seed), "seed of weights and starts")
      ("resume", po::bool_switch(&o.resume), "take over the sections that are finished in that folder");
  // clang-format on
  describe_output(o.threads, o.format, o.quiet, options);
  return options;
}

std::vector<PaperTable> chosen_tables(const Options& o, bool given) {
  std::vector<PaperTable> chosen;
  if (!given) {
    return lipsa::paper_tables();
  }
  const std::vector<std::string_view> words = parse_words("only", o.only);
  for (const PaperTable& table : lipsa::paper_tables()) {
    if (std::find(words.begin(), words.end(), table.name) != words.end()) {
      chosen.push_back(table);
    }
  }
  for (const std::string_view word : words) {
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](const PaperTable& table) { return table.name == word; })) {
      throw std::invalid_argument(
          fmt::format("--only: there is no table or figure '{}'; see --help", word));
    }
  }
  return chosen;
}

/// \throws std::runtime_error  it is no file
std::string bytes_of(const fs::path& path) {
  if (!fs::is_regular_file(path)) {
    throw std::runtime_error(fmt::format("{}: is no regular file", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A study of language models that sections show.
struct Study {
  const char* preset;  ///< of lipsa lm depth-study
  const DepthStudyFiles& (*recorded)();
  PaperStudy PaperTableOptions::*shown;
  std::vector<std::string_view> sections;
};

const std::vector<Study>& studies() {
  static const std::vector<Study> all{
      {"kim2021-fig4-small", &recorded_figure_4, &PaperTableOptions::shallow_study, {"figure-4"}},
      {"kim2021-table1-small",
       &recorded_table_1,
       &PaperTableOptions::depth_study,
       {"table-1", "output-variance"}}};
  return all;
}

bool shows(const PaperTable& table, const Study& study) {
  return std::find(study.sections.begin(), study.sections.end(), table.name) !=
         study.sections.end();
}

/// The study in a folder, or the one that is recorded, which another version does not show.
PaperStudy find_study(const Options& o, const Study& study) {
  if (!o.depth_study.empty()) {
    const DepthStudyFiles files = read_depth_study_files(o.depth_study);
    return {parse_depth_study(files),
            fmt::format("Read from {}, written by `{}`.", o.depth_study,
                        depth_study_origin(files.meta, files.folder).command_line),
            fmt::format("--depth-study '{}'", o.depth_study)};
  }
  const DepthStudyFiles& recorded = study.recorded();
  const DepthStudyOrigin origin = depth_study_origin(recorded.meta, recorded.folder);
  if (origin.version == version()) {
    return {parse_depth_study(recorded),
            fmt::format("Not trained now: recorded with this version, {}, by `{}`.", origin.version,
                        origin.command_line),
            {}};
  }
  return {{},
          fmt::format("The study that is recorded is of version {}, this is {}: train on a text "
                      "with --full --text, or name the folder of a study with --depth-study.",
                      origin.version, version()),
          {}};
}

/// The study trained here, on a text.
PaperStudy train_study(const Options& o, const Corpus& corpus, const Study& of) {
  const fs::path folder = fs::path(o.out) / of.preset;
  prepare_folder(folder, {});
  DepthStudy study = depth_study_of_preset(of.preset);
  study.folder = folder;
  Progress bar(o.quiet, fmt::format("paper-tables: {}", of.preset));
  const auto cells =
      static_cast<double>(study.model.size() * study.depth.size() * study.seed.size());
  return {depth_study(corpus, study,
                      [&](const DepthStudyResult& so_far) {
                        bar.show(static_cast<double>(so_far.cells.size()) / cells);
                      }),
          fmt::format("Trained here on {}, preset {}.", name_of(o.text), of.preset),
          fmt::format("--{} '{}' --valid-fraction {} --test-fraction {}",
                      o.text.text.empty() ? "corpus" : "text", name_of(o.text), o.text.valid,
                      o.text.test)};
}

/// Everything that decides the sections: options, and what the files hold.
std::string identity_of(const Options& o, const std::optional<Corpus>& corpus,
                        const PaperTableOptions& options) {
  std::string identity = fmt::format("lipsa {} {}, seed {}, weights {}, depth study {}", version(),
                                     o.full ? "full" : "quick", o.seed, o.weights, o.depth_study);
  for (const fs::path& path : options.weights) {
    identity += fmt::format(", {} bytes of {}", fs::file_size(path),
                            fs::last_write_time(path).time_since_epoch().count());
  }
  if (corpus) {
    identity += fmt::format(", text {} of {} and {}", name_of(o.text), text_hash(corpus->train),
                            text_hash(corpus->test));
  }
  for (const PaperStudy* study : {&options.shallow_study, &options.depth_study}) {
    if (study->result) {
      identity += fmt::format(", {} trainings", study->result->cells.size());
      for (const DepthStudyCell& cell : study->result->cells) {
        identity += fmt::format(" {:a}", cell.test.nats);
      }
    }
  }
  return identity + "\n";
}

void write_tables(const fs::path& folder, const ReportSection& section) {
  std::vector<ReportTable> tables = section.tables;
  if (!section.agreements.empty()) {
    tables.push_back(paper_and_ours(section));
  }
  for (const ReportTable& table : tables) {
    for (const auto& [ending, format] :
         {std::pair{"csv", TableFormat::csv}, std::pair{"md", TableFormat::markdown},
          std::pair{"tex", TableFormat::latex}}) {
      write_file_atomically(folder / fmt::format("{}.{}", table.name, ending),
                            format_table(table.table, format));
    }
  }
}

int run(Arguments arguments) {
  Options o;
  const po::options_description description = describe(o);
  po::variables_map values;
  if (!parse(cli::paper_tables, examples, arguments, description, values)) {
    return success;
  }
  po::notify(values);
  if (o.quick && o.full) {
    throw std::invalid_argument("give --quick or --full, not both");
  }
  if (o.out.empty()) {
    throw std::invalid_argument("--out must not be empty");
  }
  const bool has_text = !o.text.text.empty() || !o.text.corpus.empty();
  if (has_text && !o.full) {
    throw std::invalid_argument("--text and --corpus are for --full, which trains on them");
  }
  if (has_text && !o.depth_study.empty()) {
    throw std::invalid_argument("give --depth-study or a text, not both");
  }
  const TableFormat format = parse_table_format(o.format);
  const std::vector<PaperTable> chosen = chosen_tables(o, values.count("only") > 0);
  PaperTableOptions options{.full = o.full,
                            .seed = parse_seed(o.seed),
                            .facts = parse_paper_facts(kim2021_facts(), "kim2021.csv")};
  for (const std::string_view word :
       o.weights.empty() ? std::vector<std::string_view>{} : parse_words("weights", o.weights)) {
    options.weights.emplace_back(word);
    (void)read_layer_file(options.weights.back(), AttentionKind::dot);  // wrong ones now, not later
  }
  const auto limit = thread_limit(o.threads);
  std::optional<Corpus> corpus;
  for (const Study& study : studies()) {
    if (std::none_of(chosen.begin(), chosen.end(),
                     [&](const PaperTable& table) { return shows(table, study); })) {
      continue;
    }
    if (!has_text) {
      options.*study.shown = find_study(o, study);
    } else if (!corpus) {
      corpus = read_corpus(o.text, values);
      if (corpus->train.size() < 2 || corpus->test.size() < 2) {
        throw std::runtime_error(
            fmt::format("{}: expected at least 2 characters for training and 2 for test, found {} "
                        "and {}",
                        name_of(o.text), corpus->train.size(), corpus->test.size()));
      }
    }
  }
  if (has_text && !corpus) {
    throw std::invalid_argument("--text and --corpus: no section of --only is trained on them");
  }

  const fs::path folder(o.out);
  const fs::path sections = folder / "sections";
  prepare_folder(folder, {"report.html", "report.meta.json"});
  prepare_folder(sections, {"identity.txt"});
  const std::string identity = identity_of(o, corpus, options);
  const bool begun = fs::exists(sections / "identity.txt");
  if (begun) {
    if (!o.resume) {
      throw std::invalid_argument(fmt::format(
          "--out {} holds a report that is not finished: continue it with --resume, or name "
          "another",
          o.out));
    }
    if (bytes_of(sections / "identity.txt") != identity) {
      throw std::invalid_argument(fmt::format(
          "--resume: {} was begun with other options or files, or by another version", o.out));
    }
  }
  write_file_atomically(sections / "identity.txt", identity);

  const auto start = std::chrono::steady_clock::now();
  Report report{
      .title = "Kim, Papamakarios & Mnih, The Lipschitz Constant of Self-Attention, recomputed",
      .version = std::string(version()),
      .settings = fmt::format("{}, seed {}", o.full ? "full" : "quick", o.seed)};
  {
    Progress bar(o.quiet, "paper-tables");
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const PaperTable& table = chosen[k];
      bar.show(static_cast<double>(k) / static_cast<double>(chosen.size()),
               fmt::format(", {}", table.name));
      const fs::path file = sections / fmt::format("{}.json", table.name);
      if (begun && fs::exists(file)) {
        report.sections.push_back(parse_section_json(bytes_of(file), file.string()));
        if (report.sections.back().name != table.name) {
          throw std::runtime_error(fmt::format("{}: expected section {}, found {}", file.string(),
                                               table.name, report.sections.back().name));
        }
        continue;
      }
      for (const Study& study : studies()) {
        if (corpus && shows(table, study) && !(options.*study.shown).result) {
          options.*study.shown = train_study(o, *corpus, study);
        }
      }
      report.sections.push_back(table.compute(options));
      write_file_atomically(file, section_json(report.sections.back()));
    }
  }

  std::string pictures;
  for (const ReportSection& section : report.sections) {
    write_tables(folder, section);
    for (const ReportFigure& figure : section.figures) {
      draw(folder, figure.name, figure.script, o.quiet);
    }
  }
  write_file_atomically(folder / "report.html",
                        report_html(report, [&](const ReportFigure& figure) {
                          const fs::path picture = folder / (figure.name + ".svg");
                          return fs::exists(picture) ? bytes_of(picture) : std::string();
                        }));
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  write_file_atomically(folder / "report.meta.json",
                        meta_json(cli::paper_tables.name, arguments, passed.count(), o.threads));
  std::error_code ignored;
  for (const PaperTable& table : chosen) {
    fs::remove(sections / fmt::format("{}.json", table.name), ignored);
  }
  fs::remove(sections / "identity.txt", ignored);
  fs::remove(sections, ignored);  // not what somebody else put there

  Table summary{{"section", "tables", "figures", "verdict"}, {}};
  for (const ReportSection& section : report.sections) {
    summary.rows.push_back({section.name, static_cast<std::int64_t>(section.tables.size()),
                            static_cast<std::int64_t>(section.figures.size()), section.verdict});
  }
  fmt::print("{}", format_table(summary, format));
  note(o.quiet, fmt::format("{}", (folder / "report.html").string()));
  return success;
}

}  // namespace

const Command paper_tables{"paper-tables",
                           "Every table and figure of Kim et al. 2021, ours beside theirs.", &run};

}  // namespace lipsa::cli
