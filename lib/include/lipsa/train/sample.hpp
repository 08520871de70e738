/// \file
/// Texts that a language model writes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lipsa/model/language_model.hpp"
#include "lipsa/train/corpus.hpp"

namespace lipsa {

struct SampleOptions {
  Index length = 200;        ///< characters to write, ≥ 0
  double temperature = 1.0;  ///< T ≥ 0; 0: the most probable character, the first of equals
  std::uint64_t seed = 0;
};

/// Characters after a prompt, one by one with probability ∝ exp(logit/T), each from at most as many
/// before it as the model has positions. Without the prompt.
///
/// \param prompt  not empty; of a longer one than the model has positions its end counts
/// \throws std::invalid_argument  an option is out of range, the prompt is empty or has an id that
///         the model does not have
/// \throws std::runtime_error     a logit is not finite
/// \test   tests/train/sample_test.cpp
std::vector<CharacterId> sample(const LanguageModel& model, std::span<const CharacterId> prompt,
                                const SampleOptions& options = {});

}  // namespace lipsa
