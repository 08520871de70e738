/// \file
/// Blocks on blocks, as a map of rows.
#pragma once

#include <optional>
#include <vector>

#include "lipsa/model/block.hpp"

namespace lipsa {

/// Blocks in order; then a norm, as pre-norm networks have it; then a linear map, to logits say.
struct Stack {
  std::vector<Block> blocks{};
  std::optional<LayerNorm> final_norm{};
  std::optional<Linear> output{};
};

template <MaybeConst<Stack> S, class F>
void for_each_parameter(S& stack, const F& f) {
  for (std::size_t k = 0; k < stack.blocks.size(); ++k) {
    for_each_parameter(stack.blocks[k], prefixed("blocks." + std::to_string(k) + ".", f));
  }
  if (stack.final_norm) {
    for_each_parameter(*stack.final_norm, prefixed("final_norm.", f));
  }
  if (stack.output) {
    for_each_parameter(*stack.output, prefixed("output.", f));
  }
}

/// \test tests/model/stack_test.cpp
class StackAt {
 public:
  /// \param x        (B n) × D
  /// \param tokens   n ≥ 1
  /// \param dropout  of training: block k has the sites `site` + 2k and `site` + 2k + 1
  /// \throws std::invalid_argument  shapes disagree
  StackAt(const Stack& stack, Matrix x, Index tokens,
          const std::optional<DropoutStream>& dropout = {});

  Index rows() const { return rows_; }
  Index input_width() const { return input_width_; }
  Index output_width() const { return output_width_; }
  const Matrix& output() const { return output_; }
  Matrix take_output() { return std::move(output_); }

  Matrix apply(Matrix dx) const;
  Matrix apply_adjoint(Matrix dy) const;
  Matrix backward(Matrix dy, Stack& gradient) const;

  /// The blocks, each at its own input; their outputs have moved on.
  const std::vector<BlockAt>& blocks() const { return blocks_; }

 private:
  Index rows_;
  Index input_width_;
  Index output_width_ = 0;
  std::vector<BlockAt> blocks_{};
  std::optional<LayerNormAt> final_norm_{};
  std::optional<LinearAt> output_map_{};
  Matrix output_{};
};

}  // namespace lipsa
