/// The pieces of a training put together: corpus, batches, model, loss, optimiser, checkpoint.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "files.hpp"
#include "lipsa/core/parameter_file.hpp"
#include "lipsa/model/cross_entropy.hpp"
#include "lipsa/model/language_model.hpp"
#include "lipsa/model/lstm_model.hpp"
#include "lipsa/train/adam.hpp"
#include "lipsa/train/corpus.hpp"
#include "lipsa/train/ngram.hpp"
#include "random_pieces.hpp"

namespace lipsa {
namespace {

/// Sentences of a small grammar, a line each: a word is known from its first letters, which pairs
/// of letters do not tell.
std::string made_up_text(std::size_t characters) {
  const std::vector<std::vector<std::string>> slots{
      {"the ", "a ", "every ", "no "},
      {"quiet ", "golden ", "broken ", "", ""},
      {"river", "sailor", "mountain", "letter", "window", "orchard"},
      {" finds ", " follows ", " remembers ", " forgets ", " answers "},
      {"the night", "a stranger", "winter", "its name", "the harbour"},
      {".\n", ".\n", ", and so do we.\n", "!\n"}};
  std::string text;
  Rng rng(42);
  while (text.size() < characters) {
    for (const auto& words : slots) {
      text += words[static_cast<std::size_t>(rng.next() % words.size())];
    }
  }
  text.resize(characters);
  return text;
}

constexpr Index context = 32;
constexpr Index batch_size = 16;
constexpr double rate = 5e-3;

LstmModel initial_recurrent(Index V) {
  Rng rng(1);
  LstmModel model =
      initial_lstm_model({.vocabulary = V, .width = 24, .hidden_width = 48, .layers = 1}, rng);
  model.dropout = 0.1;
  return model;
}

LanguageModel initial_transformer(Index V) {
  Rng rng(1);
  LanguageModel model = test::random_language_model(
      rng, {.activation = Activation::relu, .D = 32, .H = 4}, 2, V, context);
  model.embedding.positions *= 0.3;
  for (Block& block : model.stack.blocks) {
    block.dropout = 0.05;
    for (LayerNorm* norm : {&block.attention_norm, &block.feed_forward_norm}) {
      norm->gamma.setOnes();
      norm->beta.setZero();
    }
  }
  return model;
}

template <class At, class Model>
AdamStep train_step(Model& model, Adam& adam, const Batch& batch, Index step, double* nats) {
  const At at(model, batch.inputs, batch.length,
              DropoutStream{.seed = 5, .step = static_cast<std::uint64_t>(step)});
  CrossEntropy loss = cross_entropy(at.output(), batch.targets);
  *nats = loss.nats;
  Model gradient = zeros_like(model);
  at.backward(std::move(loss.gradient), gradient);
  return adam.step(model, gradient, rate);
}

template <class At, class Model>
void train(Model& model, Adam& adam, const std::vector<CharacterId>& text, Index until) {
  TrainingBatches batches(text, windows(static_cast<Index>(text.size()), context), batch_size, 3);
  for (Index step = adam.steps(); step < until; ++step) {
    double nats = 0.0;
    REQUIRE(train_step<At>(model, adam, batches.at(step), step, &nats).taken);
  }
}

template <class At, class Model>
double mean_nats(const Model& model, const std::vector<CharacterId>& text) {
  const Batch batch = make_batch(text, windows(static_cast<Index>(text.size()), context));
  return cross_entropy(At(model, batch.inputs, batch.length).output(), batch.targets).nats;
}

template <class At, class Model>
void check_that_it_learns(Model model, const Corpus& corpus, Index steps) {
  const double bigram = bigram_nll(corpus.train, corpus.valid, corpus.vocabulary.size());
  Adam adam(model);
  const double before = mean_nats<At>(model, corpus.valid);
  CHECK(before > bigram);  // or the test could not fail
  train<At>(model, adam, corpus.train, steps);
  const double after = mean_nats<At>(model, corpus.valid);
  CAPTURE(before, bigram, after);
  CHECK(after < 0.9 * bigram);
}

TEST_CASE("training: the LSTM model learns more of 20 kB than pairs of letters tell", "[train]") {
  const Corpus corpus = make_corpus(made_up_text(20000), {.valid = 0.1, .test = 0.0});
  check_that_it_learns<LstmModelAt>(initial_recurrent(corpus.vocabulary.size()), corpus, 150);
}

TEST_CASE("training: the Transformer learns more of 20 kB than pairs of letters tell", "[train]") {
  const Corpus corpus = make_corpus(made_up_text(20000), {.valid = 0.1, .test = 0.0});
  check_that_it_learns<LanguageModelAt>(initial_transformer(corpus.vocabulary.size()), corpus, 150);
}

template <class At, class Model>
void check_that_it_resumes(const Model& initial, const Corpus& corpus) {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  Model whole = initial;
  Adam uninterrupted(whole);
  train<At>(whole, uninterrupted, corpus.train, 12);
  {
    Model half = initial;
    Adam adam(half);
    train<At>(half, adam, corpus.train, 7);
    Safetensors file{.metadata = {{"characters", corpus.vocabulary.characters()}}};
    const Model& trained = half;
    store_parameters(file, "model.", parameters(trained));
    adam.store(file);
    write_safetensors(path, file);
  }
  const Safetensors file = read_safetensors(path);
  CHECK(Vocabulary(file.metadata.at("characters")) == corpus.vocabulary);
  Model half = initial;
  load_parameters(file, "model.", parameters(half));
  Adam adam(half);
  adam.load(file);
  train<At>(half, adam, corpus.train, 12);
  const auto expected = parameters(whole);
  const auto found = parameters(half);
  REQUIRE(found.size() == expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    CAPTURE(found[k].name);
    CHECK(found[k].values == expected[k].values);
  }
}

TEST_CASE("training: from a checkpoint it goes on to the same bits", "[train]") {
  const Corpus corpus = make_corpus(made_up_text(3000), {.valid = 0.0, .test = 0.0});
  const Index V = corpus.vocabulary.size();
  check_that_it_resumes<LstmModelAt>(initial_recurrent(V), corpus);
  check_that_it_resumes<LanguageModelAt>(initial_transformer(V), corpus);
}

TEST_CASE("training: a model that has diverged says so in its loss and is not stepped", "[train]") {
  const Corpus corpus = make_corpus(made_up_text(3000), {.valid = 0.0, .test = 0.0});
  LstmModel model = initial_recurrent(corpus.vocabulary.size());
  Adam adam(model);
  model.output.b(0) = std::numeric_limits<double>::quiet_NaN();
  const Matrix before = model.output.W;
  const Batch batch = make_batch(corpus.train, windows(200, context));
  double nats = 0.0;
  CHECK_FALSE(train_step<LstmModelAt>(model, adam, batch, 0, &nats).taken);
  CHECK_FALSE(std::isfinite(nats));
  CHECK(model.output.W == before);
  CHECK(adam.steps() == 0);
}

}  // namespace
}  // namespace lipsa
