/// \file
/// Texts that a language model writes, and how each of their characters is drawn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lipsa/core/rng.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/model/any_language_model.hpp"
#include "lipsa/train/corpus.hpp"

namespace lipsa {

/// An index k with probability softmax(logits/temperature)_k; with temperature 0 the first of the
/// largest. Takes one number from `rng`, at temperature 0 too.
///
/// \param logits       not empty, finite
/// \param temperature  ≥ 0, finite
/// \throws std::invalid_argument
/// \test   tests/train/sampling_test.cpp
Index draw(const ConstVectorRef& logits, double temperature, Rng& rng);

struct SampleOptions {
  Index length = 200;        ///< characters to write, ≥ 0
  double temperature = 1.0;  ///< as of draw
  /// Characters that each one is drawn after, at most; of a model with fewer positions, as many as
  /// it has. ≥ 1.
  Index context = 256;
  std::uint64_t seed = 0;
};

/// Characters after a prompt, without it, drawn one by one from what the model predicts.
///
/// \param prompt  not empty; of one longer than the context its end counts
/// \throws std::invalid_argument  an option is out of range, the prompt is empty or has an id that
///         the model does not have
/// \throws std::runtime_error     a logit is not finite
/// \test   tests/train/sampling_test.cpp
std::vector<CharacterId> sample(const AnyLanguageModel& model, std::span<const CharacterId> prompt,
                                const SampleOptions& options = {});

}  // namespace lipsa
