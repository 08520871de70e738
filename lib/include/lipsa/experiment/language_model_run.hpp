/// \file
/// A training from its first step to its last, with the files it leaves.
#pragma once

#include <filesystem>
#include <functional>

#include "lipsa/train/language_model_training.hpp"

namespace lipsa {

struct LanguageModelRun {
  std::filesystem::path checkpoint{};
  std::filesystem::path log{};   ///< CSV
  Index log_every = 10;          ///< steps between two rows, ≥ 1
  Index evaluate_every = 100;    ///< steps between two losses of the validation text, ≥ 1
  Index checkpoint_every = 100;  ///< steps between two checkpoints, ≥ 1
};

struct [[nodiscard]] LanguageModelOutcome {
  Index step = 0;    ///< steps taken
  TextLoss valid{};  ///< at the end; NaN without a validation text, or when the model is lost
  StepStatus status = StepStatus::taken;  ///< of the last step
};

/// Trains up to the steps of the trainer's options.
///
/// The log has the columns step, train_loss, valid_loss, learning_rate, gradient_norm and status:
/// nats a character, of the step's batch before the step and of the whole validation text after it.
/// Rows are those of every log_every-th and evaluate_every-th step and of the last one. It is
/// written before each checkpoint, whole or not at all, so that a training that is killed goes on
/// with the files of one that was not: rows after the checkpoint are dropped and come again.
///
/// A step that was not taken ends the training. It has a row, and the checkpoint stays as it was.
/// The first checkpoint is written before the first step.
///
/// \param valid     validation text, in ids of the trainer's vocabulary; with less than two
///                  characters there is no valid_loss
/// \param progress  called after each step
/// \throws std::invalid_argument  a field is out of range; the log of a training that goes on has
///         rows of other steps
/// \throws std::runtime_error     the log of a training that goes on is malformed
/// \throws WriteError
/// \test   tests/experiment/language_model_run_test.cpp
LanguageModelOutcome run_training(Trainer& trainer, std::span<const CharacterId> valid,
                                  const LanguageModelRun& run,
                                  const std::function<void(const TrainingStep&)>& progress = {});

}  // namespace lipsa
