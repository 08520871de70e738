#include "lipsa/experiment/depth_study.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "files.hpp"
#include "grammar_text.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/version.hpp"
#include "lipsa/experiment/depth_study_plot.hpp"

namespace lipsa {
namespace {

struct Stopped {};

DepthStudy small_study(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  return {
      .training = {.dim = 4,
                   .heads = 2,
                   .feed_forward = 6,
                   .context = 8,
                   .batch = 4,
                   .learning_rate = 1e-2,
                   .steps = 30},
      .model = {LanguageModelKind::dot, LanguageModelKind::l2, LanguageModelKind::contractive_l2},
      .depth = {1, 2},
      .seed = {0, 1},
      .checkpoint_every = 10,
      .folder = folder};
}

std::string csv(const DepthStudyResult& result) {
  return format_table(depth_study_table(result), TableFormat::csv) +
         format_table(attention_histogram(result), TableFormat::csv);
}

TEST_CASE("depth_study: a cell for all of the grid, each a training of its own", "[experiment]") {
  const TemporaryFolder folder;
  const Corpus corpus = make_corpus(test::grammar_text(1, 1500));
  const DepthStudyResult result = depth_study(corpus, small_study(folder / "a"));
  REQUIRE(result.cells.size() == 3 * 2 * 2);
  CHECK(result.bigram < result.unigram);
  const DepthStudyCell& cell = result.cells[7];
  CHECK(cell.model == LanguageModelKind::l2);
  CHECK(cell.depth == 2);
  CHECK(cell.seed == 1);
  CHECK(cell.step == 30);
  const LanguageModelFile file = read_language_model(folder / "a/l2-2-1.safetensors");
  CHECK(file.step == 30);
  CHECK(evaluate(file.model, corpus.test, examples_of(corpus.test, corpus.vocabulary, file.options),
                 4)
            .nats == cell.test.nats);
  for (const DepthStudyCell& each : result.cells) {
    CHECK(each.status == (each.test.nats < result.unigram ? "done" : "stuck"));
    REQUIRE(each.values.size() == static_cast<std::size_t>(each.depth));
    for (const AttentionValues& values : each.values) {
      // All 75 characters of the test text but the last, and not what fills up their windows.
      CHECK(std::accumulate(values.counts.begin(), values.counts.end(), std::int64_t{0}) == 74 * 4);
      CHECK(values.output_deviation <= values.largest);
      CHECK(values.input_deviation > 0.0);
    }
  }
  CHECK(depth_study_table(result).rows.size() == 12);
  CHECK(attention_histogram(result).rows.size() == 3 * 2 * (1 + 2) * AttentionValues::bins);
}

TEST_CASE("depth_study: the same bytes with one thread, and when stopped and resumed",
          "[experiment]") {
  const TemporaryFolder folder;
  const Corpus corpus = make_corpus(test::grammar_text(1, 1500));
  const std::string whole = csv(depth_study(corpus, small_study(folder / "a")));
  {
    const ThreadLimit limit(1);
    CHECK(csv(depth_study(corpus, small_study(folder / "b"))) == whole);
  }
  DepthStudy part = small_study(folder / "c");
  part.training.steps = 17;  // and other cells not begun
  CHECK_THROWS_AS(depth_study(corpus, part,
                              [](const DepthStudyResult& so_far) {
                                if (so_far.cells.size() == 5) {
                                  throw Stopped{};
                                }
                              }),
                  Stopped);
  part.training.steps = 30;
  CHECK(csv(depth_study(corpus, part)) == whole);
  part.training.learning_rate = 1e-3;
  CHECK_THROWS_WITH(depth_study(corpus, part),
                    Catch::Contains("expected learning-rate = 0.001, found 0.01"));
}

TEST_CASE("depth_study: a cell that diverges says so, and one that learns nothing too",
          "[experiment]") {
  const TemporaryFolder folder;
  const Corpus corpus = make_corpus(test::grammar_text(1, 1500));
  DepthStudy study = small_study(folder / "a");
  study.model = {LanguageModelKind::dot};
  study.depth = {1};
  study.seed = {0};
  study.training.learning_rate = 1e200;
  const DepthStudyResult wild = depth_study(corpus, study);
  CHECK(wild.cells[0].status == "diverged");
  CHECK(wild.cells[0].step == 1);
  CHECK(std::isnan(wild.cells[0].test.nats));
  CHECK(attention_histogram(wild).rows.empty());
  CHECK(csv(depth_study(corpus, study)) == csv(wild));

  study = small_study(folder / "b");
  study.model = {LanguageModelKind::dot};
  study.training.steps = 0;
  for (const DepthStudyCell& cell : depth_study(corpus, study).cells) {
    CHECK(cell.status == "stuck");
  }
  study.depth.clear();
  CHECK_THROWS_AS(depth_study(corpus, study), std::invalid_argument);
}

TEST_CASE("parse_depth_study: what the tables of a study were written from", "[experiment]") {
  const TemporaryFolder folder;
  const Corpus corpus = make_corpus(test::grammar_text(1, 1500));
  DepthStudy study = small_study(folder / "a");
  study.model.push_back(LanguageModelKind::lstm);
  const DepthStudyResult result = depth_study(corpus, study);
  const auto write = [&](const std::string& version) {
    put_bytes(folder / "depth-study.csv",
              format_table(depth_study_table(result), TableFormat::csv));
    put_bytes(folder / "attention-outputs.csv",
              format_table(attention_histogram(result), TableFormat::csv));
    put_bytes(folder / "depth-study.meta.json",
              "[{\"version\": \"" + version + "\", \"command_line\": \"lipsa\"}]");
  };
  write(std::string(version()));
  const DepthStudyResult back = parse_depth_study(read_depth_study_files(folder / "."));
  CHECK(csv(back) == csv(result));
  CHECK(depth_study_origin(get_bytes(folder / "depth-study.meta.json"), "m").command_line ==
        "lipsa");
  CHECK(depth_study_gnuplot(back) == depth_study_gnuplot(result));
  write("0.0.9");
  CHECK_THROWS_WITH(parse_depth_study(read_depth_study_files(folder / ".")),
                    Catch::Contains("found 0.0.9"));
  write(std::string(version()));
  const auto refuses = [&](const std::string& name, const std::string& from,
                           const std::string& to) {
    std::string text = get_bytes(folder / name);
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    put_bytes(folder / name, text);
    CHECK_THROWS_AS(parse_depth_study(read_depth_study_files(folder / ".")), std::runtime_error);
    write(std::string(version()));
  };
  refuses("depth-study.csv", "model", "attention");
  refuses("depth-study.csv", "\ndot,", "\nsum,");
  refuses("depth-study.csv", "\ndot,1,0,30,", "\ndot,1,0,30,x");
  refuses("depth-study.csv", "\ndot,1,", "\ndot,1.5,");
  refuses("attention-outputs.csv", "\ndot,1,0,0,", "\ndot,9,0,0,");
  refuses("attention-outputs.csv", "\ndot,1,0,0,", "\ndot,1,0,1,");
  refuses("depth-study.meta.json", "[", "{");
  // A loss that is none, a row twice, a status nobody writes, layers out of order, a huge output.
  const std::string table = get_bytes(folder / "depth-study.csv");
  const std::string first = table.substr(
      table.find("\ndot,"), table.find('\n', table.find("\ndot,") + 1) - table.find("\ndot,"));
  const std::string loss = first.substr(0, first.find(',', first.find(",30,") + 4));
  refuses("depth-study.csv", loss, loss.substr(0, loss.rfind(',') + 1) + "nan");
  refuses("depth-study.csv", loss, loss.substr(0, loss.rfind(',') + 1) + "-1");
  refuses("depth-study.csv", first, first + first);
  refuses("depth-study.csv", first, first.substr(0, first.rfind(',')) + ",fine");
  refuses("depth-study.csv", table.substr(table.find('\n') + 1), "");
  refuses("attention-outputs.csv", "\ndot,2,0,1,", "\ndot,2,0,900000000,");
  refuses("attention-outputs.csv", "\ndot,1,0,0,", "\ndot,1,0,0,0,inf,1\ndot,1,0,0,");
}

}  // namespace
}  // namespace lipsa
