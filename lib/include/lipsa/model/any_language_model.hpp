/// \file
/// A language model of either architecture, for what treats them alike: training, sampling, loss.
#pragma once

#include <optional>
#include <span>
#include <variant>

#include "lipsa/model/language_model.hpp"
#include "lipsa/model/lstm_model.hpp"

namespace lipsa {

/// A Transformer or the recurrent baseline.
using AnyLanguageModel = std::variant<LanguageModel, LstmModel>;

template <MaybeConst<AnyLanguageModel> M, class F>
void for_each_parameter(M& model, const F& f) {
  std::visit([&](auto& own) { for_each_parameter(own, f); }, model);
}

/// The longest sequence that a model takes; none where any length will do.
std::optional<Index> most_tokens(const AnyLanguageModel& model);

/// At token ids.
///
/// \test tests/model/any_language_model_test.cpp
class AnyLanguageModelAt {
 public:
  /// \param ids     B n ids in [0, V), sequence after sequence
  /// \param tokens  n ≥ 1
  /// \throws std::invalid_argument  as LanguageModelAt and LstmModelAt
  AnyLanguageModelAt(const AnyLanguageModel& model, std::span<const Index> ids, Index tokens,
                     const std::optional<DropoutStream>& dropout = {});

  const Matrix& output() const;  ///< logits, (B n) × V
  Matrix take_output();

  /// Adds the gradient of ⟨dy, output⟩.
  /// \throws std::invalid_argument  `gradient` is of the other architecture, or of other shapes
  void backward(Matrix dy, AnyLanguageModel& gradient) const;

 private:
  std::variant<LanguageModelAt, LstmModelAt> at_;
};

}  // namespace lipsa
