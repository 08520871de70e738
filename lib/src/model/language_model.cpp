#include "lipsa/model/language_model.hpp"

namespace lipsa {

LanguageModelAt::LanguageModelAt(const LanguageModel& model, std::span<const Index> ids,
                                 Index tokens, const std::optional<DropoutStream>& dropout)
    : embedding_(model.embedding, ids, tokens) {
  Matrix x = embedding_.take_output();
  std::optional<DropoutStream> following = dropout;
  if (dropout) {
    if (model.dropout != 0.0) {
      embedding_dropout_.emplace(model.dropout, *dropout, std::move(x));
      x = embedding_dropout_->take_output();
    }
    ++following->site;
  }
  stack_.emplace(model.stack, std::move(x), tokens, following);
}

void LanguageModelAt::backward(Matrix dy, LanguageModel& gradient) const {
  Matrix dx = stack_->backward(std::move(dy), gradient.stack);
  if (embedding_dropout_) {
    dx = embedding_dropout_->apply_adjoint(std::move(dx));
  }
  embedding_.backward(dx, gradient.embedding);
}

}  // namespace lipsa
