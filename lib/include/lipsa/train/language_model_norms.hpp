/// \file
/// Local Lipschitz constants of a language model's parts, beside their bounds.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "lipsa/bounds/bound.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "lipsa/model/any_language_model.hpp"

namespace lipsa {

struct [[nodiscard]] LanguageModelNorm {
  std::string part{};  ///< "blocks.0.attention", …, "network"
  /// |J|_2 of the part at its input, an estimate: of an attention layer with its gain, without its
  /// residual; of the network from the embedded tokens to the logits.
  SpectralNorm estimate{};
  /// The smallest bound of |J|_2 there that holds, of an attention layer, on all X or at its input;
  /// times the gain, rounded up. NaN: none.
  double upper_bound = std::numeric_limits<double>::quiet_NaN();
  std::string bound{};                 ///< its name in the catalogue, or empty
  Domain domain = Domain::everywhere;  ///< on which it holds
};

/// One of each attention layer, in order, and one of the network, without dropout. A recurrent
/// model has the last alone.
///
/// \param ids      one sequence of n ids, n ≥ 1
/// \param options  of the estimates
/// \throws std::invalid_argument  as AnyLanguageModelAt
/// \test   tests/train/language_model_norms_test.cpp
std::vector<LanguageModelNorm> language_model_norms(const AnyLanguageModel& model,
                                                    std::span<const Index> ids,
                                                    const SpectralNormOptions& options = {});

}  // namespace lipsa
