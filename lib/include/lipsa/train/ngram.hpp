/// \file
/// What counting alone predicts: the oracle that a trained model has to beat.
#pragma once

#include <span>

#include "lipsa/train/corpus.hpp"

namespace lipsa {

/// The mean of −log p(b | a) in nats over the pairs (a, b) of neighbours in a text, with
///
///     p(b | a) = (c(a, b) + 1) / (Σ_b' c(a, b') + V),   c counts pairs in the training text.
///
/// \param vocabulary  V
/// \throws std::invalid_argument  an id outside [0, V); a text without a pair
/// \source Laplace's rule of succession.
/// \test   tests/train/ngram_test.cpp
double bigram_nll(std::span<const CharacterId> train, std::span<const CharacterId> text,
                  Index vocabulary);

/// The same of p(b) = (c(b) + 1)/(Σ_b' c(b') + V), over all characters but the first of the text.
///
/// \throws std::invalid_argument  as bigram_nll
/// \test   tests/train/ngram_test.cpp
double unigram_nll(std::span<const CharacterId> train, std::span<const CharacterId> text,
                   Index vocabulary);

}  // namespace lipsa
