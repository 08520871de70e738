#include "lipsa/experiment/language_model_run.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "files.hpp"
#include "grammar_text.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/invert/inverse.hpp"

namespace lipsa {
namespace {

struct Stopped {};

class LanguageModelRunTest {
 protected:
  TrainingOptions options(Index steps) const {
    return {.depth = 1,
            .dim = 4,
            .heads = 2,
            .feed_forward = 6,
            .context = 8,
            .batch = 4,
            .steps = steps};
  }
  LanguageModelRun run(const std::string& name) const {
    return {.checkpoint = folder / (name + ".safetensors"),
            .log = folder / (name + ".csv"),
            .log_every = 3,
            .evaluate_every = 5,
            .checkpoint_every = 4};
  }

  TemporaryFolder folder;
  Corpus corpus = make_corpus(test::grammar_text(1, 600));
};

TEST_CASE_METHOD(LanguageModelRunTest, "run_training: rows where they are due, no clock",
                 "[experiment]") {
  Trainer trainer(options(11), corpus.vocabulary, corpus.train);
  Index seen = 0;
  const auto outcome = run_training(trainer, corpus.valid, run("a"),
                                    [&](const TrainingStep& step) { CHECK(step.step == ++seen); });
  CHECK(seen == 11);
  CHECK(outcome.step == 11);
  CHECK(outcome.status == StepStatus::taken);
  CHECK(outcome.valid.predicted == static_cast<Index>(corpus.valid.size()) - 1);
  std::istringstream log(get_bytes(folder / "a.csv"));
  std::string line;
  std::getline(log, line);
  CHECK(line == "step,train_loss,valid_loss,learning_rate,gradient_norm,status");
  std::string steps;
  while (std::getline(log, line)) {
    steps += line.substr(0, line.find(',') + 1);
    CHECK_THAT(line, Catch::EndsWith(",taken"));
    const bool evaluated = line.find(",,") == std::string::npos;
    const Index step = std::stoll(line);
    CHECK(evaluated == (step % 5 == 0 || step == 11));
  }
  CHECK(steps == "3,5,6,9,10,11,");
}

TEST_CASE_METHOD(LanguageModelRunTest, "run_training: stopped anywhere and resumed, the same files",
                 "[experiment]") {
  Trainer whole(options(11), corpus.vocabulary, corpus.train);
  static_cast<void>(run_training(whole, corpus.valid, run("whole")));
  const Index at = GENERATE(1, 3, 4, 7, 8, 10);
  Trainer killed(options(11), corpus.vocabulary, corpus.train);
  CHECK_THROWS_AS(run_training(killed, corpus.valid, run("part"),
                               [&](const TrainingStep& step) {
                                 if (step.step == at) {
                                   throw Stopped{};
                                 }
                               }),
                  Stopped);
  Trainer resumed(folder / "part.safetensors", corpus.train);
  CHECK(resumed.steps() == at / 4 * 4);
  static_cast<void>(run_training(resumed, corpus.valid, run("part")));
  CHECK(get_bytes(folder / "part.csv") == get_bytes(folder / "whole.csv"));
  CHECK(get_bytes(folder / "part.safetensors") == get_bytes(folder / "whole.safetensors"));
}

TEST_CASE_METHOD(LanguageModelRunTest, "run_training: ended early and moved on, the same files",
                 "[experiment]") {
  Trainer whole(options(11), corpus.vocabulary, corpus.train);
  static_cast<void>(run_training(whole, corpus.valid, run("whole")));
  const Index at = GENERATE(0, 5, 6, 7);
  Trainer first(options(at), corpus.vocabulary, corpus.train);
  static_cast<void>(run_training(first, corpus.valid, run("part")));
  Trainer second(folder / "part.safetensors", corpus.train);
  CHECK(second.steps() == at);
  second.set_steps(11);
  static_cast<void>(run_training(second, corpus.valid, run("part")));
  CHECK(get_bytes(folder / "part.csv") == get_bytes(folder / "whole.csv"));
  CHECK(get_bytes(folder / "part.safetensors") == get_bytes(folder / "whole.safetensors"));
}

TEST_CASE_METHOD(LanguageModelRunTest,
                 "run_training: what is not finite ends it, with a row and the last checkpoint",
                 "[experiment]") {
  TrainingOptions wild = options(11);
  wild.learning_rate = 1e200;
  Trainer trainer(wild, corpus.vocabulary, corpus.train);
  LanguageModelRun often = run("wild");
  often.checkpoint_every = GENERATE(1, 4);
  const auto outcome = run_training(trainer, corpus.valid, often);
  CHECK(outcome.status == StepStatus::non_finite_loss);
  CHECK(outcome.step == 1);
  CHECK(std::isnan(outcome.valid.nats));
  CHECK_THAT(get_bytes(folder / "wild.csv"),
             Catch::Matches("[^\n]*\n2,(nan|inf),,[^,]*,,non-finite loss\n"));
  CHECK(read_language_model(folder / "wild.safetensors").step == (often.checkpoint_every == 1));
}

TEST_CASE_METHOD(LanguageModelRunTest, "run_training: no validation text, no validation loss",
                 "[experiment]") {
  Trainer trainer(options(3), corpus.vocabulary, corpus.train);
  const auto outcome = run_training(trainer, {}, run("a"));
  CHECK(std::isnan(outcome.valid.nats));
  CHECK_THAT(get_bytes(folder / "a.csv"), Catch::Contains(",,0.001,"));
}

TEST_CASE_METHOD(LanguageModelRunTest, "run_training: refuses a log of something else",
                 "[experiment]") {
  Trainer trainer(options(3), corpus.vocabulary, corpus.train);
  static_cast<void>(run_training(trainer, corpus.valid, run("a")));
  trainer.set_steps(5);
  const std::string good = get_bytes(folder / "a.csv");
  for (const std::string& bad : {std::string("n,m\n"), good + "x,1,2,3,4,taken\n", good + "7\n"}) {
    put_bytes(folder / "a.csv", bad);
    CHECK_THROWS_AS(run_training(trainer, corpus.valid, run("a")), std::runtime_error);
    CHECK(get_bytes(folder / "a.csv") == bad);
  }
  LanguageModelRun none = run("a");
  none.log_every = 0;
  CHECK_THROWS_AS(run_training(trainer, corpus.valid, none), std::invalid_argument);
}

TEST_CASE("run_training: the attention of a trained contractive model is inverted to 1e-10",
          "[experiment]") {
  const TemporaryFolder folder;
  const Corpus corpus = make_corpus(test::grammar_text(3, 1200));
  Trainer trainer({.model = LanguageModelKind::contractive_l2,
                   .depth = 2,
                   .dim = 8,
                   .heads = 2,
                   .feed_forward = 12,
                   .context = 10,
                   .batch = 4,
                   .learning_rate = 0.02,
                   .steps = 40},
                  corpus.vocabulary, corpus.train);
  const auto outcome = run_training(
      trainer, corpus.valid, {.checkpoint = folder / "m.safetensors", .log = folder / "m.csv"});
  REQUIRE(outcome.status == StepStatus::taken);
  const LanguageModelFile file = read_language_model(folder / "m.safetensors");
  Rng rng(1);
  for (const Block& block : std::get<LanguageModel>(file.model).stack.blocks) {
    const AttentionLayer& layer = block.attention;
    const auto g = ResidualAttention::contractive(
        layer.weights, 10, {.factor = file.options.contraction, .divisor = "kim2021"}, layer.mask);
    CHECK(g.gain() == layer.gain);
    for (const double size : {1e-3, 1.0, 1e3}) {
      const Matrix x = size * normal_matrix(rng, 10, 8);
      const Inverse back = invert(g, g.forward(x), {.tolerance = 1e-11});
      CAPTURE(size, back.error_upper_bound);
      CHECK((back.x - x).cwiseAbs().maxCoeff() <= 1e-10);
      CHECK(back.error_upper_bound <= 1e-10);
    }
  }
}

}  // namespace
}  // namespace lipsa
