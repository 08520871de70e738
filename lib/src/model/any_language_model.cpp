#include "lipsa/model/any_language_model.hpp"

#include <utility>

#include "core/check.hpp"

namespace lipsa {
namespace {

using AnyAt = std::variant<LanguageModelAt, LstmModelAt>;

AnyAt linearised(const AnyLanguageModel& model, std::span<const Index> ids, Index tokens,
                 const std::optional<DropoutStream>& dropout) {
  if (const auto* const lstm = std::get_if<LstmModel>(&model)) {
    return LstmModelAt(*lstm, ids, tokens, dropout);
  }
  return LanguageModelAt(std::get<LanguageModel>(model), ids, tokens, dropout);
}

}  // namespace

std::optional<Index> most_tokens(const AnyLanguageModel& model) {
  const Embedding& embedding =
      std::visit([](const auto& own) -> const Embedding& { return own.embedding; }, model);
  const Index positions = embedding.positions.rows();
  return positions == 0 ? std::nullopt : std::optional(positions);
}

AnyLanguageModelAt::AnyLanguageModelAt(const AnyLanguageModel& model, std::span<const Index> ids,
                                       Index tokens, const std::optional<DropoutStream>& dropout)
    : at_(linearised(model, ids, tokens, dropout)) {}

const Matrix& AnyLanguageModelAt::output() const {
  return std::visit([](const auto& at) -> const Matrix& { return at.output(); }, at_);
}

Matrix AnyLanguageModelAt::take_output() {
  return std::visit([](auto& at) { return at.take_output(); }, at_);
}

void AnyLanguageModelAt::backward(Matrix dy, AnyLanguageModel& gradient) const {
  require(gradient.index() == at_.index(),
          "AnyLanguageModelAt: gradient must be of the model's architecture, got the other");
  if (const auto* const lstm = std::get_if<LstmModelAt>(&at_)) {
    lstm->backward(std::move(dy), std::get<LstmModel>(gradient));
  } else {
    std::get<LanguageModelAt>(at_).backward(std::move(dy), std::get<LanguageModel>(gradient));
  }
}

}  // namespace lipsa
