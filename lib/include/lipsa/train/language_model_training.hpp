/// \file
/// Training a language model on the characters of a text: options, steps, evaluation, checkpoints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipsa/model/any_language_model.hpp"
#include "lipsa/train/adam.hpp"
#include "lipsa/train/bound_gradient.hpp"
#include "lipsa/train/corpus.hpp"

namespace lipsa {

/// The architecture of a language model: a Transformer with a kind of attention, or the baseline.
///
/// | kind           | attention                                                        |
/// |----------------|------------------------------------------------------------------|
/// | dot            | dot-product                                                      |
/// | l2_untied      | L2 with keys of its own                                          |
/// | l2             | L2, tied: Lipschitz                                              |
/// | contractive_l2 | l2 times the gain c/L, L its bound: Lipschitz with constant c    |
/// | lstm           | none: `depth` LSTM layers of width D                             |
enum class LanguageModelKind { dot, l2_untied, l2, contractive_l2, lstm };

/// Which stretches of a text are examples, see train/corpus.hpp.
enum class ExampleKind { windows, sentences };

/// Everything that a training depends on besides its text. `settings` has the meaning of each.
struct TrainingOptions {
  LanguageModelKind model = LanguageModelKind::dot;
  Index depth = 2;           ///< blocks, or LSTM layers; ≥ 1
  Index dim = 64;            ///< D ≥ 1
  Index heads = 4;           ///< H, a divisor of D; d = d_v = D/H
  Index feed_forward = 256;  ///< features inside the feed-forward pieces, ≥ 1
  Index context = 64;        ///< n ≥ 1
  NormPlacement placement = NormPlacement::post;
  Activation activation = Activation::relu;
  double dropout = 0.0;               ///< rate, in [0, 1)
  double l2_scale = 1.0 / 16.0;       ///< k > 0: L2 attention weights begin uniform on ±k/√D
  std::string bound = "kim2021_inf";  ///< L of contractive_l2, see bound_gradient
  double contraction = 0.9;           ///< c of contractive_l2, in (0, 1]
  ExampleKind examples = ExampleKind::windows;
  Index batch = 16;  ///< examples a step, ≥ 1
  LearningRate::Kind schedule = LearningRate::Kind::fixed;
  double learning_rate = 1e-3;                            ///< γ > 0
  Index warm_up = 4000;                                   ///< w ≥ 1 of the schedule warm_up
  double clip = std::numeric_limits<double>::infinity();  ///< of the gradient's norm, > 0
  Index steps = 1000;                                     ///< where training ends, ≥ 0
  std::uint64_t seed = 0;  ///< of weights, batches and dropout, below 2⁶³
};

/// One option as text: what the program, its help and a checkpoint know it by.
struct Setting {
  std::string name{};   ///< "feed-forward"
  std::string value{};  ///< read back by `set` to the same bits
  std::string_view meaning{};
};

/// All of them, in the order of the fields.
/// \test tests/train/language_model_training_test.cpp
std::vector<Setting> settings(const TrainingOptions& options);

/// Sets the option of that name.
/// \throws std::invalid_argument  no option has that name, or the value is none of it
void set(TrainingOptions& options, std::string_view name, std::string_view value);

/// \throws std::invalid_argument  naming the option that is out of range, or two that do not fit
void require_valid(const TrainingOptions& options);

/// A model with weights of the options' seed: matrices uniform on ±√(6/(rows + columns)) (Glorot &
/// Bengio 2010), those of L2 attention on ±k/√D, biases zero, norms the identity; see also
/// initial_lstm. Blocks have causal masks; those of contractive_l2 their gain.
///
/// \param vocabulary  V ≥ 1
/// \throws std::invalid_argument  as require_valid
/// \source Kim, Papamakarios & Mnih, ICML 2021, experiments, as recalled.
/// \test   tests/train/language_model_training_test.cpp
AnyLanguageModel initial_language_model(const TrainingOptions& options, Index vocabulary);

/// Stretches of `text` as the options have them.
std::vector<Example> examples_of(std::span<const CharacterId> text, const Vocabulary& vocabulary,
                                 const TrainingOptions& options);

struct [[nodiscard]] TextLoss {
  /// The mean of −log p in nats over the characters predicted; see CrossEntropy for
  /// logits that are not finite.
  double nats = std::numeric_limits<double>::quiet_NaN();
  Index predicted = 0;  ///< characters that were: all but the first

  double bits() const;  ///< a character: nats/log 2
};

/// The loss of a model on a text, without dropout, each character predicted once.
///
/// \param examples  of the text
/// \param batch     how many of them at once: no matter to the result but for rounding
/// \throws std::invalid_argument  no examples; an id that the model does not have
/// \test   tests/train/language_model_training_test.cpp
TextLoss evaluate(const AnyLanguageModel& model, std::span<const CharacterId> text,
                  const std::vector<Example>& examples, Index batch);

/// How a step of training ended.
enum class StepStatus {
  taken,
  non_finite_loss,      ///< nothing has changed
  non_finite_gradient,  ///< nothing has changed
  non_finite_weights,   ///< the step went beyond double: the model is lost
};

/// "taken", "non-finite loss", "non-finite gradient", "non-finite weights"
std::string_view to_string(StepStatus status);

struct [[nodiscard]] TrainingStep {
  Index step = 0;                                          ///< from 1
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< nats a character, before the step
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();  ///< Euclidean, not clipped
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  Index predicted = 0;  ///< characters in the batch
  StepStatus status = StepStatus::non_finite_loss;
};

/// What a checkpoint holds for those who do not train on.
struct LanguageModelFile {
  TrainingOptions options{};
  Vocabulary vocabulary{};
  AnyLanguageModel model{};
  Index step = 0;           ///< steps taken
  std::string text_hash{};  ///< of the text it was trained on
};

/// Tells texts apart: FNV-1a of the ids, 64 bits. No defence against malice.
std::string text_hash(std::span<const CharacterId> text);

/// Reads the model of a checkpoint.
/// \throws std::runtime_error  what read_safetensors refuses; no checkpoint of Trainer: path,
///         tensor or setting, expected, found
LanguageModelFile read_language_model(const std::filesystem::path& path);

/// A training that goes on step by step. Same options, same text, same build: same bits, whatever
/// the number of threads, and whether or not it went through checkpoints.
///
///     Trainer trainer(options, corpus.vocabulary, corpus.train);
///     while (trainer.steps() < options.steps) {
///       if (trainer.step().status != StepStatus::taken) { break; }
///     }
///     trainer.write("model.safetensors");
///
/// \test tests/train/language_model_training_test.cpp
class Trainer {
 public:
  /// \param text  of training, in ids of the vocabulary; borrowed
  /// \throws std::invalid_argument  as require_valid; the text is shorter than one batch
  Trainer(const TrainingOptions& options, const Vocabulary& vocabulary,
          std::span<const CharacterId> text);

  /// Goes on where a checkpoint was written.
  /// \throws std::runtime_error  as read_language_model; it was written in training on another text
  Trainer(const std::filesystem::path& checkpoint, std::span<const CharacterId> text);

  /// The next step. After one that was not taken there is no use in another.
  TrainingStep step();

  Index steps() const { return adam_.steps(); }  ///< that were taken
  const TrainingOptions& options() const { return file_.options; }
  const Vocabulary& vocabulary() const { return file_.vocabulary; }
  const AnyLanguageModel& model() const { return file_.model; }

  /// Where training ends may move.
  /// \throws std::invalid_argument  as require_valid
  void set_steps(Index steps);

  /// Writes all there is into one .safetensors file: tensors model.NAME and adam.NAME; options,
  /// vocabulary and a hash of the text as metadata. Whole or not at all.
  /// \throws WriteError  see core/atomic_file.hpp
  void write(const std::filesystem::path& path) const;

 private:
  Trainer(LanguageModelFile file, std::span<const CharacterId> text);
  Trainer(const Safetensors& file, std::span<const CharacterId> text);

  LanguageModelFile file_;
  std::span<const CharacterId> text_;
  TrainingBatches batches_;
  Adam adam_;
  std::vector<BoundGradient> bounds_{};  ///< one a block for contractive_l2, else none
};

}  // namespace lipsa
