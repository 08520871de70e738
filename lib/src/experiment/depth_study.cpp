#include "lipsa/experiment/depth_study.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/check.hpp"
#include "core/csv.hpp"
#include "core/input_file.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/version.hpp"
#include "lipsa/train/ngram.hpp"

namespace lipsa {
namespace {

constexpr std::size_t most_windows = 16;
constexpr double most_deviation = 1e100;  // of a study that is read: squares are finite

std::string name_of(LanguageModelKind model) {
  return settings({.model = model}).front().value;
}

double deviation(const Matrix& m) {
  return std::sqrt((m.array() - m.mean()).square().mean());
}

AttentionValues values_of(const Matrix& in, const Matrix& out) {
  AttentionValues values{.input_deviation = deviation(in), .output_deviation = deviation(out)};
  values.largest = out.cwiseAbs().maxCoeff();
  values.counts.resize(AttentionValues::bins);
  constexpr auto bins = static_cast<double>(AttentionValues::bins);
  for (Index k = 0; k < out.size(); ++k) {
    const double place =
        values.largest > 0.0 ? (out.data()[k] / values.largest + 1.0) / 2.0 * bins : bins / 2.0;
    values.counts[static_cast<std::size_t>(std::clamp(place, 0.0, bins - 1.0))] += 1;
  }
  return values;
}

/// Of each layer, at windows of a text.
std::vector<AttentionValues> all_values(const LanguageModel& model,
                                        std::span<const CharacterId> text,
                                        const std::vector<Example>& examples) {
  const Batch batch =
      make_batch(text, std::span(examples).first(std::min(examples.size(), most_windows)));
  std::vector<Index> rows;  // what fills up shorter sequences is none of the text
  for (std::size_t k = 0; k < batch.targets.size(); ++k) {
    if (batch.targets[k] != Batch::no_target) {
      rows.push_back(static_cast<Index>(k));
    }
  }
  Matrix x = EmbeddingAt(model.embedding, batch.inputs, batch.length).take_output();
  std::vector<AttentionValues> list;
  list.reserve(model.stack.blocks.size());
  for (const Block& block : model.stack.blocks) {
    const Matrix in = block.placement == NormPlacement::post
                          ? x
                          : LayerNormAt(block.attention_norm, x).take_output();
    const Matrix out = AttentionLayerAt(block.attention, in, batch.length).take_output();
    list.push_back(values_of(in(rows, Eigen::all), out(rows, Eigen::all)));
    x = BlockAt(block, std::move(x), batch.length).take_output();
  }
  return list;
}

/// A trainer that goes on where the cell was left, or a new one.
Trainer trainer_of(const Corpus& corpus, const TrainingOptions& options,
                   const std::filesystem::path& checkpoint) {
  if (!std::filesystem::exists(checkpoint)) {
    return {options, corpus.vocabulary, corpus.train};
  }
  Trainer trainer(checkpoint, corpus.train);
  if (!(trainer.vocabulary() == corpus.vocabulary)) {
    malformed(checkpoint.string(), "it was written in training on another text: characters differ");
  }
  const std::vector<Setting> asked = settings(options);
  const std::vector<Setting> found = settings(trainer.options());
  for (std::size_t k = 0; k < asked.size(); ++k) {
    if (asked[k].name != "steps" && asked[k].value != found[k].value) {
      malformed(checkpoint.string(), "expected {} = {}, found {}", asked[k].name, asked[k].value,
                found[k].value);
    }
  }
  if (trainer.steps() > options.steps) {
    malformed(checkpoint.string(), "expected at most {} steps, found {}", options.steps,
              trainer.steps());
  }
  trainer.set_steps(options.steps);
  return trainer;
}

TrainingOptions options_of(const DepthStudy& study, const DepthStudyCell& cell) {
  TrainingOptions options = study.training;
  options.model = cell.model;
  options.depth = cell.depth;
  options.seed = cell.seed;
  return options;
}

std::string name_of(const DepthStudyCell& cell) {
  return fmt::format("{}-{}-{}", name_of(cell.model), cell.depth, cell.seed);
}

DepthStudyCell run_cell(const Corpus& corpus, const DepthStudy& study, DepthStudyCell cell,
                        double unigram) {
  const TrainingOptions options = options_of(study, cell);
  const std::string name = name_of(cell);
  const LanguageModelRun run{.checkpoint = study.folder / (name + ".safetensors"),
                             .log = study.folder / (name + ".csv"),
                             .log_every = study.log_every,
                             .evaluate_every = study.evaluate_every,
                             .checkpoint_every = study.checkpoint_every};
  Trainer trainer = trainer_of(corpus, options, run.checkpoint);
  const LanguageModelOutcome outcome = run_training(trainer, corpus.valid, run);
  cell.step = outcome.step;
  if (outcome.status != StepStatus::taken) {
    cell.status = "diverged";
    return cell;
  }
  const auto examples = examples_of(corpus.test, corpus.vocabulary, options);
  cell.test = evaluate(trainer.model(), corpus.test, examples, options.batch);
  cell.status = !std::isfinite(cell.test.nats) ? "diverged"
                : cell.test.nats < unigram     ? "done"
                                               : "stuck";
  const auto* const transformer = std::get_if<LanguageModel>(&trainer.model());
  if (cell.status != "diverged" && transformer != nullptr) {
    cell.values = all_values(*transformer, corpus.test, examples);
  }
  return cell;
}

std::vector<Cell> first_cells(const DepthStudyCell& cell) {
  return {name_of(cell.model), std::int64_t{cell.depth}, static_cast<std::int64_t>(cell.seed)};
}

Cell number(double x) {
  return std::isnan(x) ? Cell() : Cell(x);
}

}  // namespace

DepthStudyResult depth_study(const Corpus& corpus, const DepthStudy& study,
                             const std::function<void(const DepthStudyResult&)>& progress) {
  require(!study.model.empty() && !study.depth.empty() && !study.seed.empty(),
          "depth_study: model, depth and seed must not be empty");
  require(corpus.test.size() >= 2,
          "depth_study: corpus must have at least 2 characters for test, got {}",
          corpus.test.size());
  const auto distinct = [](auto list) {
    std::sort(list.begin(), list.end());
    return std::adjacent_find(list.begin(), list.end()) == list.end();
  };
  require(distinct(study.model) && distinct(study.depth) && distinct(study.seed),
          "depth_study: model, depth and seed must each be distinct");
  std::vector<DepthStudyCell> grid;
  for (const LanguageModelKind model : study.model) {
    for (const Index depth : study.depth) {
      for (const std::uint64_t seed : study.seed) {
        grid.push_back({.model = model, .depth = depth, .seed = seed});
        TrainingOptions options = study.training;
        options.depth = depth;
        options.seed = seed;
        require_valid(options);
      }
    }
  }
  for (const DepthStudyCell& cell : grid) {  // before anything is written
    const auto checkpoint = study.folder / (name_of(cell) + ".safetensors");
    if (std::filesystem::exists(checkpoint)) {
      static_cast<void>(trainer_of(corpus, options_of(study, cell), checkpoint));
    }
  }
  const Index V = corpus.vocabulary.size();
  DepthStudyResult result{.unigram = unigram_nll(corpus.train, corpus.test, V),
                          .bigram = bigram_nll(corpus.train, corpus.test, V)};
  std::vector<std::optional<DepthStudyCell>> finished(grid.size());
  std::mutex mutex;
  parallel_for(static_cast<Index>(grid.size()), [&](Index k) {
    const auto place = static_cast<std::size_t>(k);
    DepthStudyCell cell = run_cell(corpus, study, grid[place], result.unigram);
    const std::lock_guard lock(mutex);
    finished[place] = std::move(cell);
    if (progress) {
      DepthStudyResult so_far{.unigram = result.unigram, .bigram = result.bigram};
      for (const auto& one : finished) {
        if (one) {
          so_far.cells.push_back(*one);
        }
      }
      progress(so_far);
    }
  });
  for (auto& one : finished) {
    result.cells.push_back(std::move(*one));
  }
  return result;
}

DepthStudyOrigin depth_study_origin(std::string_view meta, const std::string& origin) {
  const auto json = nlohmann::json::parse(meta, nullptr, false);
  const auto text = [&](const char* key) {
    if (!json.is_array() || json.empty() || !json.back().is_object() ||
        !json.back().contains(key) || !json.back()[key].is_string()) {
      malformed(origin, "expected a list whose last part has a text {:?}", key);
    }
    return json.back()[key].get<std::string>();
  };
  return {.version = text("version"), .command_line = text("command_line")};
}

DepthStudyResult parse_depth_study(const DepthStudyFiles& files) {
  const std::string meta_path = files.folder + "/depth-study.meta.json";
  const std::string found = depth_study_origin(files.meta, meta_path).version;
  if (found != version()) {
    malformed(meta_path, "expected a study by version {}, found {}", version(), found);
  }
  DepthStudyResult result;
  const Csv cells(files.cells, files.folder + "/depth-study.csv", depth_study_table({}).columns);
  const auto positive = [](const Csv::Row& row, const char* column) {
    const double value = row.number(column);
    if (!(value > 0.0 && std::isfinite(value))) {
      row.refuse(fmt::format("expected {} above 0, found {:?}", column, row.text(column)));
    }
    return value;
  };
  for (const Csv::Row& row : cells.rows()) {
    DepthStudyCell cell{.depth = row.index("depth"),
                        .seed = static_cast<std::uint64_t>(row.index("seed")),
                        .step = row.index("step"),
                        .status = row.text("status")};
    TrainingOptions options;
    try {
      set(options, "model", row.text("model"));
    } catch (const std::invalid_argument& e) {
      row.refuse(e.what());
    }
    cell.model = options.model;
    if (cell.status != "done" && cell.status != "stuck" && cell.status != "diverged") {
      row.refuse(fmt::format("expected status done, stuck or diverged, found {:?}", cell.status));
    }
    if (cell.status != "diverged") {
      cell.test.nats = positive(row, "test_loss");
    }
    const double unigram = positive(row, "unigram_test_loss");
    const double bigram = positive(row, "bigram_test_loss");
    if (!result.cells.empty() && (unigram != result.unigram || bigram != result.bigram)) {
      row.refuse("expected the losses of counts of the rows before");
    }
    result.unigram = unigram;
    result.bigram = bigram;
    if (std::any_of(result.cells.begin(), result.cells.end(), [&](const DepthStudyCell& other) {
          return other.model == cell.model && other.depth == cell.depth && other.seed == cell.seed;
        })) {
      row.refuse("a model, depth and seed of a row before");
    }
    if (!row.text("output_deviation").empty()) {
      AttentionValues first{.input_deviation = row.number("input_deviation"),
                            .output_deviation = row.number("output_deviation")};
      for (const double deviation : {first.input_deviation, first.output_deviation}) {
        if (!(deviation >= 0.0 && deviation <= most_deviation)) {
          row.refuse(fmt::format("expected deviations from 0 to {:g}", most_deviation));
        }
      }
      cell.values.push_back(std::move(first));
    }
    result.cells.push_back(std::move(cell));
  }
  if (result.cells.empty()) {
    malformed(files.folder + "/depth-study.csv", "expected a row a training, found none");
  }
  const std::string bins_path = files.folder + "/attention-outputs.csv";
  const Csv bins(files.outputs, bins_path, attention_histogram({}).columns);
  for (const Csv::Row& row : bins.rows()) {
    const auto cell = std::find_if(result.cells.begin(), result.cells.end(), [&](const auto& c) {
      return name_of(c.model) == row.text("model") && c.depth == row.index("depth") &&
             static_cast<Index>(c.seed) == row.index("seed");
    });
    const auto layer = static_cast<std::size_t>(row.index("layer"));
    if (cell == result.cells.end() || layer >= static_cast<std::size_t>(cell->depth) ||
        layer > cell->values.size()) {
      row.refuse("expected a training of depth-study.csv and its layers in order");
    }
    if (layer == cell->values.size()) {
      cell->values.emplace_back();
    }
    AttentionValues& values = cell->values[layer];
    const double to = row.number("to");
    if (!(std::abs(to) <= most_deviation)) {
      row.refuse(fmt::format("expected a number up to {:g} for to, found {:?}", most_deviation,
                             row.text("to")));
    }
    values.largest = std::max(values.largest, to);
    values.counts.push_back(row.index("count"));
  }
  for (const DepthStudyCell& cell : result.cells) {
    for (const AttentionValues& values : cell.values) {
      if (!values.counts.empty() && values.counts.size() != AttentionValues::bins) {
        malformed(bins_path, "expected {} rows a layer, found {} of {}, {} blocks, seed {}",
                  AttentionValues::bins, values.counts.size(), name_of(cell.model), cell.depth,
                  cell.seed);
      }
    }
  }
  return result;
}

DepthStudyFiles read_depth_study_files(const std::filesystem::path& folder) {
  const auto content = [&](const char* name) {
    InputFile file = open_input(folder / name);
    return std::string(std::istreambuf_iterator<char>(file.stream), {});
  };
  return {.folder = folder.string(),
          .cells = content("depth-study.csv"),
          .outputs = content("attention-outputs.csv"),
          .meta = content("depth-study.meta.json")};
}

Table depth_study_table(const DepthStudyResult& result) {
  Table table{{"model", "depth", "seed", "step", "test_loss", "test_bits", "unigram_test_loss",
               "bigram_test_loss", "input_deviation", "output_deviation", "status"},
              {}};
  for (const DepthStudyCell& cell : result.cells) {
    std::vector<Cell> row = first_cells(cell);
    const AttentionValues first = cell.values.empty() ? AttentionValues{} : cell.values.front();
    for (const Cell& one :
         {Cell(std::int64_t{cell.step}), number(cell.test.nats), number(cell.test.bits()),
          number(result.unigram), number(result.bigram), number(first.input_deviation),
          number(first.output_deviation), Cell(cell.status)}) {
      row.push_back(one);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table attention_histogram(const DepthStudyResult& result) {
  Table table{{"model", "depth", "seed", "layer", "from", "to", "count"}, {}};
  for (const DepthStudyCell& cell : result.cells) {
    for (std::size_t layer = 0; layer < cell.values.size(); ++layer) {
      const AttentionValues& values = cell.values[layer];
      const auto edge = [&](std::size_t bin) {
        return values.largest *
               (2.0 * static_cast<double>(bin) / static_cast<double>(AttentionValues::bins) - 1.0);
      };
      for (std::size_t bin = 0; bin < values.counts.size(); ++bin) {
        std::vector<Cell> row = first_cells(cell);
        row.insert(row.end(), {static_cast<std::int64_t>(layer), edge(bin), edge(bin + 1),
                               values.counts[bin]});
        table.rows.push_back(std::move(row));
      }
    }
  }
  return table;
}

}  // namespace lipsa
