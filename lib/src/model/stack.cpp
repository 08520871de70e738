#include "lipsa/model/stack.hpp"

#include "core/check.hpp"

namespace lipsa {

StackAt::StackAt(const Stack& stack, Matrix x, Index tokens,
                 const std::optional<DropoutStream>& dropout)
    : rows_(x.rows()), input_width_(x.cols()) {
  blocks_.reserve(stack.blocks.size());
  for (const Block& block : stack.blocks) {
    std::optional<DropoutStream> own = dropout;
    if (own) {
      own->site += 2 * blocks_.size();
    }
    blocks_.emplace_back(block, std::move(x), tokens, own);
    x = blocks_.back().take_output();
  }
  if (stack.final_norm) {
    final_norm_.emplace(*stack.final_norm, std::move(x));
    x = final_norm_->take_output();
  }
  if (stack.output) {
    output_map_.emplace(*stack.output, std::move(x));
    x = output_map_->take_output();
  }
  output_ = std::move(x);
  output_width_ = output_.cols();
}

Matrix StackAt::apply(Matrix dx) const {
  for (const BlockAt& block : blocks_) {
    dx = block.apply(std::move(dx));
  }
  if (final_norm_) {
    dx = final_norm_->apply(std::move(dx));
  }
  return output_map_ ? output_map_->apply(dx) : dx;
}

Matrix StackAt::apply_adjoint(Matrix dy) const {
  if (output_map_) {
    dy = output_map_->apply_adjoint(dy);
  }
  if (final_norm_) {
    dy = final_norm_->apply_adjoint(std::move(dy));
  }
  for (std::size_t k = blocks_.size(); k-- > 0;) {
    dy = blocks_[k].apply_adjoint(std::move(dy));
  }
  return dy;
}

Matrix StackAt::backward(Matrix dy, Stack& gradient) const {
  require(gradient.blocks.size() == blocks_.size() &&
              gradient.final_norm.has_value() == final_norm_.has_value() &&
              gradient.output.has_value() == output_map_.has_value(),
          "StackAt: gradient must have the pieces of the stack, {} blocks, got {}", blocks_.size(),
          gradient.blocks.size());
  if (output_map_) {
    dy = output_map_->backward(dy, *gradient.output);
  }
  if (final_norm_) {
    dy = final_norm_->backward(std::move(dy), *gradient.final_norm);
  }
  for (std::size_t k = blocks_.size(); k-- > 0;) {
    dy = blocks_[k].backward(std::move(dy), gradient.blocks[k]);
  }
  return dy;
}

}  // namespace lipsa
