/// \file
/// The loss of a language model.
#pragma once

#include <limits>
#include <span>

#include "lipsa/core/types.hpp"

namespace lipsa {

struct [[nodiscard]] CrossEntropy {
  /// The mean of −log softmax(logits)_target in nats over the rows that count; NaN or infinite
  /// where a logit is, except for −∞ of a character that is no target: probability 0.
  double nats = std::numeric_limits<double>::quiet_NaN();
  Index counted = 0;  ///< rows that count
  Matrix gradient{};  ///< of `nats` in the logits; its rows sum to zero
};

/// \param logits   rows × V
/// \param targets  one a row, in [0, V), or −1 for a row that does not count
/// \throws std::invalid_argument  a target is out of range, their number is not that of the rows,
/// no
///         row counts
/// \test   tests/model/cross_entropy_test.cpp
CrossEntropy cross_entropy(Matrix logits, std::span<const Index> targets);

}  // namespace lipsa
