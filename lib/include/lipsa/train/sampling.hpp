/// \file
/// Drawing the next character from what a model predicts.
#pragma once

#include "lipsa/core/rng.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

/// An index k with probability softmax(logits/temperature)_k; with temperature 0 the first of the
/// largest. Takes one number from `rng`, at temperature 0 too.
///
/// \param logits       not empty, finite
/// \param temperature  ≥ 0, finite
/// \throws std::invalid_argument
/// \test   tests/train/sampling_test.cpp
Index sample(const ConstVectorRef& logits, double temperature, Rng& rng);

}  // namespace lipsa
