#include "lipsa/train/language_model_training.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "files.hpp"
#include "grammar_text.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/parameter_file.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "lipsa/model/cross_entropy.hpp"
#include "lipsa/train/ngram.hpp"
#include "piece_checks.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

const std::vector<LanguageModelKind> kinds{LanguageModelKind::dot, LanguageModelKind::l2_untied,
                                           LanguageModelKind::l2, LanguageModelKind::contractive_l2,
                                           LanguageModelKind::lstm};

TrainingOptions tiny(LanguageModelKind kind) {
  return {.model = kind,
          .depth = 2,
          .dim = 8,
          .heads = 2,
          .feed_forward = 12,
          .context = 10,
          .dropout = 0.1,
          .l2_scale = 1.0,
          .batch = 4};
}

const LanguageModel& transformer(const AnyLanguageModel& model) {
  return std::get<LanguageModel>(model);
}

bool same_bits(const AnyLanguageModel& a, const AnyLanguageModel& b) {
  const auto left = parameters(a);
  const auto right = parameters(b);
  bool same = left.size() == right.size();
  for (std::size_t k = 0; same && k < left.size(); ++k) {
    same = left[k].name == right[k].name && left[k].values == right[k].values;
  }
  if (same && std::holds_alternative<LanguageModel>(a)) {
    const std::vector<Block>& blocks = transformer(a).stack.blocks;
    for (std::size_t k = 0; same && k < blocks.size(); ++k) {
      same = blocks[k].attention.gain == transformer(b).stack.blocks[k].attention.gain;
    }
  }
  return same;
}

TEST_CASE("TrainingOptions: every option is read back from its text", "[train]") {
  TrainingOptions options = tiny(LanguageModelKind::contractive_l2);
  options.placement = NormPlacement::pre;
  options.activation = Activation::gelu;
  options.bound = "l2_2_fused";
  options.contraction = 0.1 + 0.2;
  options.examples = ExampleKind::sentences;
  options.schedule = LearningRate::Kind::warm_up;
  options.learning_rate = 1.0 / 3.0;
  options.clip = 0.7;
  options.seed = INT64_MAX;
  const std::vector<Setting> from = settings(options);
  TrainingOptions to;
  for (const Setting& setting : from) {
    CHECK_FALSE(setting.meaning.empty());
    set(to, setting.name, setting.value);
  }
  const std::vector<Setting> again = settings(to);
  const std::vector<Setting> defaults = settings({});
  for (std::size_t k = 0; k < from.size(); ++k) {
    CAPTURE(from[k].name);
    CHECK(again[k].value == from[k].value);
    CHECK((from[k].value != defaults[k].value || from[k].name == "depth" ||
           from[k].name == "warm-up" || from[k].name == "steps"));
  }
  CHECK(to.contraction == options.contraction);
  CHECK(settings({.clip = std::numeric_limits<double>::infinity()})[17].value == "inf");
}

TEST_CASE("TrainingOptions: what is out of range is named", "[train]") {
  const auto [name, value, message] = GENERATE(table<std::string, std::string, std::string>(
      {{"model", "l3", "model must be one of dot, l2-untied, l2, contractive-l2, lstm, got 'l3'"},
       {"depth", "2.5", "depth must be a whole number, got '2.5'"},
       {"depth", "", "depth must be a whole number, got ''"},
       {"dropout", "0.1x", "dropout must be a number, got '0.1x'"},
       {"bound", "kim", "bound must be one of kim2021_inf, "},
       {"seed", "-1", "seed must be a whole number, got '-1'"},
       {"layers", "3", "set: name must be that of an option of training, got 'layers'"},
       {"depth", "0", "depth must be at least 1, got 0"},
       {"heads", "5", "heads must divide dim = 64, got 5"},
       {"dropout", "1", "dropout must be from 0 below 1, got 1"},
       {"dropout", "nan", "dropout must be from 0 below 1, got nan"},
       {"contraction", "1.5", "contraction must be above 0 and at most 1, got 1.5"},
       {"learning-rate", "inf", "learning-rate must be above 0 and finite, got inf"},
       {"learning-rate", "-1e-3", "learning-rate must be above 0 and finite, got -0.001"},
       {"clip", "0", "clip must be above 0, got 0"},
       {"steps", "-1", "steps must be at least 0, got -1"},
       {"seed", "9223372036854775808", "seed must be at most 2^63 - 1"}}));
  const auto attempt = [n = name, v = value] {
    TrainingOptions options;
    set(options, n, v);
    require_valid(options);
  };
  CHECK_THROWS_WITH(attempt(), Catch::StartsWith(message));
}

TEST_CASE("initial_language_model: arrays, ranges and masks as they are said to be", "[train]") {
  const auto kind = GENERATE(LanguageModelKind::dot, LanguageModelKind::l2_untied,
                             LanguageModelKind::l2, LanguageModelKind::contractive_l2);
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  TrainingOptions options{.model = kind, .dim = 32, .heads = 4, .placement = placement};
  const LanguageModel model = transformer(initial_language_model(options, 17));
  CHECK(model.stack.blocks.size() == 2);
  CHECK(model.stack.final_norm.has_value() == (placement == NormPlacement::pre));
  const bool l2 = kind != LanguageModelKind::dot;
  for (const Block& block : model.stack.blocks) {
    CHECK(block.attention.mask.kind() == Mask::Kind::causal);
    const MultiHead& w = block.attention.weights;
    require_valid(w);
    const double limit = l2 ? 1.0 / 16.0 / std::sqrt(32.0) : std::sqrt(6.0 / 64.0);
    for (const Matrix* m : {&w.W_Q, &w.W_V, &w.W_O}) {
      // The largest of 1024 is below 0.98 of the limit with probability 1e-9.
      CHECK(m->cwiseAbs().maxCoeff() <= limit);
      CHECK(m->cwiseAbs().maxCoeff() > 0.98 * limit);
    }
    CHECK(block.feed_forward.in.b.isZero(0.0));
    CHECK((block.attention_norm.gamma.array() == 1.0).all());
  }
  CHECK(model.embedding.tokens.cwiseAbs().maxCoeff() <= std::sqrt(6.0 / 49.0));
  CHECK(same_bits(model, initial_language_model(options, 17)));
  options.seed = 1;
  CHECK_FALSE(same_bits(model, initial_language_model(options, 17)));
}

TEST_CASE("initial_language_model: the baseline has `depth` layers of the width, and dropout",
          "[train]") {
  const TrainingOptions options{
      .model = LanguageModelKind::lstm, .depth = 3, .dim = 32, .heads = 4, .dropout = 0.2};
  const AnyLanguageModel model = initial_language_model(options, 17);
  const auto& lstm = std::get<LstmModel>(model);
  CHECK(lstm.layers.size() == 3);
  CHECK(lstm.layers[2].hidden_width() == 32);
  CHECK(lstm.embedding.tokens.rows() == 17);
  CHECK(lstm.dropout == 0.2);
  CHECK_FALSE(most_tokens(model).has_value());
  CHECK(same_bits(model, initial_language_model(options, 17)));
}

TEST_CASE("evaluate: each character once, whatever the batch", "[train]") {
  const Corpus corpus = make_corpus(test::grammar_text(1, 500));
  TrainingOptions options = tiny(GENERATE(LanguageModelKind::dot, LanguageModelKind::lstm));
  options.examples = GENERATE(ExampleKind::windows, ExampleKind::sentences);
  const AnyLanguageModel model = initial_language_model(options, corpus.vocabulary.size());
  const auto examples = examples_of(corpus.train, corpus.vocabulary, options);
  const TextLoss loss = evaluate(model, corpus.train, examples, 4);
  CHECK(loss.predicted == static_cast<Index>(corpus.train.size()) - 1);
  CHECK(loss.bits() == Approx(loss.nats / std::log(2.0)).epsilon(1e-15));
  // Sums of the same numbers in another order.
  CHECK(evaluate(model, corpus.train, examples, 7).nats == Approx(loss.nats).epsilon(1e-13));
  double one_by_one = 0.0;
  for (const Example& example : examples) {
    const auto batch = make_batch(corpus.train, std::vector<Example>{example});
    one_by_one +=
        cross_entropy(AnyLanguageModelAt(model, batch.inputs, batch.length).output(), batch.targets)
            .nats *
        static_cast<double>(example.length);
  }
  CHECK(one_by_one / static_cast<double>(loss.predicted) == Approx(loss.nats).epsilon(1e-13));
  CHECK_THROWS_WITH(evaluate(model, {}, {}, 4),
                    "evaluate: text must have at least 2 characters, got 0");

  AnyLanguageModel indifferent = zeros_like(model);
  CHECK(evaluate(indifferent, corpus.train, examples, 4).nats ==
        Approx(std::log(static_cast<double>(corpus.vocabulary.size()))).epsilon(1e-14));
}

TEST_CASE("Trainer: ten steps, a checkpoint and ten more are twenty, bit for bit", "[train]") {
  const auto kind = GENERATE(from_range(kinds));
  CAPTURE(static_cast<int>(kind));
  const TemporaryFolder folder;
  const Corpus corpus = make_corpus(test::grammar_text(1, 600));
  TrainingOptions options = tiny(kind);
  options.clip = 0.5;
  options.schedule = LearningRate::Kind::warm_up;
  options.warm_up = 15;
  Trainer straight(options, corpus.vocabulary, corpus.train);
  for (int k = 0; k < 20; ++k) {
    CHECK(straight.step().status == StepStatus::taken);
  }
  straight.write(folder / "straight");
  {
    const ThreadLimit limit(1);
    Trainer half(options, corpus.vocabulary, corpus.train);
    for (int k = 0; k < 10; ++k) {
      CHECK(half.step().step == k + 1);
    }
    half.write(folder / "half");
  }
  const ThreadLimit limit(2);
  Trainer resumed(folder / "half", corpus.train);
  CHECK(resumed.steps() == 10);
  CHECK(resumed.vocabulary() == corpus.vocabulary);
  for (int k = 0; k < 10; ++k) {
    CHECK(resumed.step().step == k + 11);
  }
  CHECK(same_bits(resumed.model(), straight.model()));
  resumed.write(folder / "resumed");
  CHECK(get_bytes(folder / "resumed") == get_bytes(folder / "straight"));
  CHECK(get_bytes(folder / "half") != get_bytes(folder / "straight"));

  const LanguageModelFile file = read_language_model(folder / "straight");
  CHECK(file.step == 20);
  CHECK(same_bits(file.model, straight.model()));
}

TEST_CASE("Trainer: one step of plain descent moves along the gradient, gain included", "[train]") {
  // Adam's first step is −η sign(g): with β = 0 untouched, its signs are those of differences.
  const auto bound = GENERATE("kim2021_inf", "kim2021_2", "l2_2_fused");
  CAPTURE(bound);
  const Corpus corpus = make_corpus(test::grammar_text(2, 300));
  TrainingOptions options = tiny(LanguageModelKind::contractive_l2);
  options.dropout = 0.0;
  options.bound = bound;
  const double rate = 1e-6;
  options.learning_rate = rate;
  Trainer trainer(options, corpus.vocabulary, corpus.train);
  const LanguageModel before = transformer(trainer.model());
  CHECK(trainer.step().status == StepStatus::taken);
  const LanguageModel after = transformer(trainer.model());

  TrainingBatches batches(corpus.train, examples_of(corpus.train, corpus.vocabulary, options),
                          options.batch, options.seed);
  const Batch batch = batches.at(0);
  // The loss with gains that follow the weights.
  const auto loss = [&](LanguageModel model) {
    for (Block& block : model.stack.blocks) {
      AttentionLayer& layer = block.attention;
      layer.gain =
          options.contraction /
          find_entry(options.bound)
              .evaluate({.layer = layer.weights, .mask = layer.mask, .tokens = options.context})
              .value;
    }
    return cross_entropy(LanguageModelAt(model, batch.inputs, batch.length).output(), batch.targets)
        .nats;
  };
  int checked = 0;
  for (std::size_t k = 0; k < before.stack.blocks.size(); ++k) {
    for (const Index entry : {0, 7, 20, 41, 63}) {
      for (const auto member : {&MultiHead::W_Q, &MultiHead::W_V, &MultiHead::W_O}) {
        const auto at = [&](LanguageModel& model) -> double& {
          return (model.stack.blocks[k].attention.weights.*member).data()[entry];
        };
        LanguageModel moved = before;
        const double step = 1e-5;
        at(moved) += step;
        double slope = loss(moved);
        at(moved) -= 2.0 * step;
        slope = (slope - loss(moved)) / (2.0 * step);
        if (std::abs(slope) < 1e-6) {  // rounding of the loss over the step: 1e-11
          continue;
        }
        ++checked;
        LanguageModel end = after;
        CHECK((at(end) - (at(moved) + step)) / rate ==
              Approx(slope > 0.0 ? -1.0 : 1.0).margin(0.02));
      }
    }
  }
  CHECK(checked > 15);
}

TEST_CASE("Trainer: a contractive model stays contractive", "[train]") {
  const auto [bound, norm] =
      GENERATE(table<std::string, Norm>({{"kim2021_inf", Norm::inf}, {"l2_2_fused", Norm::two}}));
  CAPTURE(bound);
  const Corpus corpus = make_corpus(test::grammar_text(3, 600));
  TrainingOptions options = tiny(LanguageModelKind::contractive_l2);
  options.bound = bound;
  options.learning_rate = 0.05;
  Trainer trainer(options, corpus.vocabulary, corpus.train);
  for (int k = 0; k < 30; ++k) {
    REQUIRE(trainer.step().status == StepStatus::taken);
  }
  Rng rng(1);
  for (const Block& block : transformer(trainer.model()).stack.blocks) {
    CHECK(block.attention.gain > 0.0);
    double worst = 0.0;
    for (int trial = 0; trial < 1000; ++trial) {
      const Index n = trial % 50 == 0 ? options.context : 1 + trial % 4;
      const double size = std::pow(10.0, rng.uniform(-3.0, 3.0));
      const Matrix x = size * normal_matrix(rng, n, options.dim);
      const AttentionLayerAt at(block.attention, x, n);
      Matrix dense(n * options.dim, n * options.dim);
      for (Index j = 0; j < dense.cols(); ++j) {
        Matrix unit = Matrix::Zero(n, options.dim);
        unit.data()[j] = 1.0;
        dense.col(j) = at.apply(unit).reshaped<Eigen::RowMajor>();
      }
      const double found = norm == Norm::two ? spectral_norm(DenseOperator(dense)).value
                                             : dense.cwiseAbs().rowwise().sum().maxCoeff();
      worst = std::max(worst, found);
    }
    CHECK(worst > 0.0);
    CHECK(worst <= options.contraction);
  }
}

TEST_CASE("Trainer: what is not finite is said, and changes nothing", "[train]") {
  const Corpus corpus = make_corpus(test::grammar_text(4, 300));
  TrainingOptions options = tiny(LanguageModelKind::dot);
  SECTION("a rate beyond all measure ends in weights or a loss that are not finite") {
    options.learning_rate = GENERATE(1e300, 1e308);
    Trainer trainer(options, corpus.vocabulary, corpus.train);
    StepStatus status = StepStatus::taken;
    for (int k = 0; k < 10 && status == StepStatus::taken; ++k) {
      status = trainer.step().status;
    }
    CHECK(status != StepStatus::taken);
  }
  SECTION("a loss that is not finite") {
    options.learning_rate = 1e200;
    Trainer trainer(options, corpus.vocabulary, corpus.train);
    CHECK(trainer.step().status == StepStatus::taken);
    const AnyLanguageModel before = trainer.model();
    const TrainingStep step = trainer.step();
    CHECK(step.status == StepStatus::non_finite_loss);
    CHECK_FALSE(std::isfinite(step.loss));
    CHECK(step.step == 2);
    CHECK(trainer.steps() == 1);
    CHECK(same_bits(before, trainer.model()));
  }
}

TEST_CASE("Trainer: gradients and weights that overflow are told apart", "[train]") {
  const TemporaryFolder folder;
  const Corpus corpus = make_corpus(test::grammar_text(4, 300));
  TrainingOptions options = tiny(LanguageModelKind::dot);
  Trainer(options, corpus.vocabulary, corpus.train).write(folder / "good");
  Safetensors file = read_safetensors(folder / "good");
  SECTION("a loss of 1e200 is finite, the square of its gradient is not") {
    for (double& x : file.tensors["model.output.W"].data) {
      x *= 1e200;
    }
    write_safetensors(folder / "bad", file);
    Trainer trainer(folder / "bad", corpus.train);
    const AnyLanguageModel before = trainer.model();
    const TrainingStep step = trainer.step();
    CHECK(std::isfinite(step.loss));
    CHECK(step.status == StepStatus::non_finite_gradient);
    CHECK(trainer.steps() == 0);
    CHECK(same_bits(trainer.model(), before));
  }
  SECTION("a first moment that dwarfs the second takes the weights beyond double") {
    for (double& x : file.tensors["adam.m.output.b"].data) {
      x = 1e308;
    }
    file.tensors["adam.steps"].data = {1.0};
    write_safetensors(folder / "bad", file);
    Trainer trainer(folder / "bad", corpus.train);
    CHECK(trainer.step().status == StepStatus::non_finite_weights);
  }
}

TEST_CASE("Trainer: where training ends may move, within what options allow", "[train]") {
  const Corpus corpus = make_corpus(test::grammar_text(4, 300));
  Trainer trainer(tiny(LanguageModelKind::lstm), corpus.vocabulary, corpus.train);
  trainer.set_steps(7);
  CHECK(trainer.options().steps == 7);
  CHECK_THROWS_WITH(trainer.set_steps(-1), "steps must be at least 0, got -1");
  CHECK(trainer.options().steps == 7);
}

TEST_CASE("Trainer: a text shorter than one batch is refused with its numbers", "[train]") {
  const Corpus corpus = make_corpus("abcdefg", {.valid = 0.0, .test = 0.0});
  CHECK_THROWS_WITH(
      Trainer(tiny(LanguageModelKind::dot), corpus.vocabulary, corpus.train),
      Contains("text must be at least one batch of 4 examples, got 7 characters that make 1"));
  CHECK_THROWS_AS(Trainer(tiny(LanguageModelKind::dot), corpus.vocabulary, {}),
                  std::invalid_argument);
}

TEST_CASE("read_language_model: other files are refused, and say what is wrong", "[train]") {
  const TemporaryFolder folder;
  const Corpus corpus = make_corpus(test::grammar_text(5, 300));
  const Trainer trainer(tiny(LanguageModelKind::l2), corpus.vocabulary, corpus.train);
  trainer.write(folder / "good");
  const Safetensors good = read_safetensors(folder / "good");
  const auto refuses = [&](const auto& change, const std::string& message) {
    Safetensors file = good;
    change(file);
    write_safetensors(folder / "bad", file);
    CHECK_THROWS_AS(read_language_model(folder / "bad"), std::runtime_error);
    CHECK_THROWS_WITH(read_language_model(folder / "bad"),
                      Contains((folder / "bad").string()) && Contains(message));
  };
  refuses([](Safetensors& f) { f.metadata.clear(); }, "expected metadata \"format\"");
  refuses([](Safetensors& f) { f.metadata["format"] = "pt"; }, "found \"pt\"");
  refuses([](Safetensors& f) { f.metadata.erase("option.heads"); },
          "expected metadata \"option.heads\"");
  refuses([](Safetensors& f) { f.metadata["option.heads"] = "3"; }, "heads must divide dim = 8");
  refuses([](Safetensors& f) { f.metadata["option.dim"] = "1000000000000"; },
          "expected shape (" + std::to_string(corpus.vocabulary.size()) + ", 1000000000000)");
  refuses([](Safetensors& f) { f.metadata["option.depth"] = "3"; },
          "expected a tensor \"model.blocks.2.feed_forward.in.W\", found none");
  refuses([](Safetensors& f) { f.metadata["option.model"] = "dot"; },
          "expected a tensor \"model.blocks.0.attention.W_K\", found none");
  refuses([](Safetensors& f) { f.tensors["model.output.b"].data[0] = NAN; }, "found nan");
  refuses([](Safetensors& f) { f.tensors.erase("adam.steps"); },
          "expected a tensor \"adam.steps\"");
  refuses([](Safetensors& f) { f.metadata["vocabulary"] = ""; }, "vocabulary must be");
  refuses([](Safetensors& f) { f.metadata["vocabulary"] += "a"; }, "vocabulary must be");
  refuses([](Safetensors& f) { f.tensors["adam.steps"].data = {0x1p40}; }, "expected at most");
  refuses([](Safetensors& f) { f.metadata["option.context"] = "9223372036854775807"; },
          "context must be at most");
  refuses(
      [](Safetensors& f) {
        f.metadata["option.depth"] = "20";
        f.metadata["option.feed-forward"] = "1000000";
      },
      "numbers as its options say");
  refuses([](Safetensors& f) { f.metadata["option.model"] = "lstm"; },
          "expected a tensor \"model.layers.1.W_H\", found none");
  refuses([](Safetensors& f) { f.metadata["option.depth"] = "4000000000"; },
          "expected depth 4000000000, found ");
  std::vector<CharacterId> other = corpus.train;
  std::swap(other[0], other[5]);
  CHECK_THROWS_WITH(Trainer(folder / "good", other),
                    Contains("it was written in training on another text"));
}

TEST_CASE("Trainer: on 20 kB of sentences a model learns more than pairs of characters",
          "[train][slow]") {
  const auto kind = GENERATE(LanguageModelKind::dot, LanguageModelKind::l2_untied,
                             LanguageModelKind::l2, LanguageModelKind::lstm);
  CAPTURE(static_cast<int>(kind));
  const Corpus corpus = make_corpus(test::grammar_text(1, 20000));
  TrainingOptions options{.model = kind,
                          .depth = 2,
                          .dim = 32,
                          .heads = 4,
                          .feed_forward = 64,
                          .context = 32,
                          .batch = 16,
                          .learning_rate = 3e-3,
                          .steps = 300};
  Trainer trainer(options, corpus.vocabulary, corpus.train);
  const auto examples = examples_of(corpus.test, corpus.vocabulary, options);
  const double bigram = bigram_nll(corpus.train, corpus.test, corpus.vocabulary.size());
  CHECK(evaluate(trainer.model(), corpus.test, examples, 16).nats > bigram);
  while (trainer.steps() < options.steps) {
    REQUIRE(trainer.step().status == StepStatus::taken);
  }
  CHECK(evaluate(trainer.model(), corpus.test, examples, 16).nats < bigram);
}

}  // namespace
}  // namespace lipsa
