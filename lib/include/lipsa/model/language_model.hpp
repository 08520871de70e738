/// \file
/// A language model: embedding and stack, token ids to logits.
#pragma once

#include <optional>
#include <span>

#include "lipsa/model/embedding.hpp"
#include "lipsa/model/stack.hpp"

namespace lipsa {

struct LanguageModel {
  Embedding embedding{};
  double dropout = 0.0;  ///< of the embedded tokens, in [0, 1)
  Stack stack{};         ///< with a causal mask in each block, and V columns of output
};

template <MaybeConst<LanguageModel> M, class F>
void for_each_parameter(M& model, const F& f) {
  for_each_parameter(model.embedding, prefixed("embedding.", f));
  for_each_parameter(model.stack, f);
}

/// \test tests/model/language_model_test.cpp
class LanguageModelAt {
 public:
  /// \param ids      B n ids in [0, V), sequence after sequence
  /// \param tokens   n ≥ 1
  /// \param dropout  of training: the embedding has its site `site`, the stack those that follow
  /// \throws std::invalid_argument  as EmbeddingAt and StackAt
  LanguageModelAt(const LanguageModel& model, std::span<const Index> ids, Index tokens,
                  const std::optional<DropoutStream>& dropout = {});

  const Matrix& output() const { return stack_->output(); }  ///< logits, (B n) × V
  Matrix take_output() { return stack_->take_output(); }

  /// Adds the gradient of ⟨dy, output⟩.
  void backward(Matrix dy, LanguageModel& gradient) const;

  /// From the embedded tokens to the logits: the differentiable part.
  const StackAt& stack() const { return *stack_; }

 private:
  EmbeddingAt embedding_;
  std::optional<DropoutAt> embedding_dropout_{};
  std::optional<StackAt> stack_{};
};

}  // namespace lipsa
