#include "lipsa/model/block.hpp"

#include "core/check.hpp"
#include "linalg/row_products.hpp"

namespace lipsa {
namespace {

/// v through the dropout of a branch, where there is one.
Matrix through(const std::optional<DropoutAt>& dropout, Matrix v) {
  return dropout ? dropout->apply(std::move(v)) : v;
}

}  // namespace

std::string_view to_string(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::post:
      return "post";
    case NormPlacement::pre:
      return "pre";
  }
  return "unknown";
}

NormPlacement parse_norm_placement(std::string_view text) {
  for (const NormPlacement placement : {NormPlacement::post, NormPlacement::pre}) {
    if (text == to_string(placement)) {
      return placement;
    }
  }
  throw std::invalid_argument(fmt::format("norm placement must be post or pre, got '{}'", text));
}

BlockAt::BlockAt(const Block& block, Matrix x, Index tokens,
                 const std::optional<DropoutStream>& dropout)
    : placement_(block.placement) {
  const auto add_branch = [&](Matrix f, std::uint64_t site, std::optional<DropoutAt>& kept,
                              const Matrix& in, std::string_view name) {
    require(f.cols() == in.cols(), "BlockAt: {} must give {} columns as it takes, got {}", name,
            in.cols(), f.cols());
    if (dropout && block.dropout != 0.0) {
      kept.emplace(block.dropout, DropoutStream{dropout->seed, dropout->step, dropout->site + site},
                   std::move(f));
      f = kept->take_output();
    }
    add_rows(in, f);
    return f;
  };
  if (post()) {
    attention_.emplace(block.attention, x, tokens);
    attention_norm_.emplace(block.attention_norm, add_branch(attention_->take_output(), 0,
                                                             attention_dropout_, x, "attention"));
    x = attention_norm_->take_output();
    feed_forward_.emplace(block.feed_forward, x);
    feed_forward_norm_.emplace(
        block.feed_forward_norm,
        add_branch(feed_forward_->take_output(), 1, feed_forward_dropout_, x, "feed_forward"));
    output_ = feed_forward_norm_->take_output();
  } else {
    attention_norm_.emplace(block.attention_norm, x);
    attention_.emplace(block.attention, attention_norm_->take_output(), tokens);
    x = add_branch(attention_->take_output(), 0, attention_dropout_, x, "attention");
    feed_forward_norm_.emplace(block.feed_forward_norm, x);
    feed_forward_.emplace(block.feed_forward, feed_forward_norm_->take_output());
    output_ = add_branch(feed_forward_->take_output(), 1, feed_forward_dropout_, x, "feed_forward");
  }
}

Matrix BlockAt::apply(Matrix dx) const {
  if (post()) {
    add_rows(through(attention_dropout_, attention_->apply(dx)), dx);
    dx = attention_norm_->apply(std::move(dx));
    add_rows(through(feed_forward_dropout_, feed_forward_->apply(dx)), dx);
    return feed_forward_norm_->apply(std::move(dx));
  }
  add_rows(through(attention_dropout_, attention_->apply(attention_norm_->apply(dx))), dx);
  add_rows(through(feed_forward_dropout_, feed_forward_->apply(feed_forward_norm_->apply(dx))), dx);
  return dx;
}

Matrix BlockAt::apply_adjoint(Matrix dy) const {
  if (post()) {
    dy = feed_forward_norm_->apply_adjoint(std::move(dy));
    add_rows(feed_forward_->apply_adjoint(through(feed_forward_dropout_, dy)), dy);
    dy = attention_norm_->apply_adjoint(std::move(dy));
    add_rows(attention_->apply_adjoint(through(attention_dropout_, dy)), dy);
    return dy;
  }
  add_rows(feed_forward_norm_->apply_adjoint(
               feed_forward_->apply_adjoint(through(feed_forward_dropout_, dy))),
           dy);
  add_rows(
      attention_norm_->apply_adjoint(attention_->apply_adjoint(through(attention_dropout_, dy))),
      dy);
  return dy;
}

Matrix BlockAt::backward(Matrix dy, Block& gradient) const {
  if (post()) {
    dy = feed_forward_norm_->backward(std::move(dy), gradient.feed_forward_norm);
    add_rows(feed_forward_->backward(through(feed_forward_dropout_, dy), gradient.feed_forward),
             dy);
    dy = attention_norm_->backward(std::move(dy), gradient.attention_norm);
    add_rows(attention_->backward(through(attention_dropout_, dy), gradient.attention), dy);
    return dy;
  }
  add_rows(feed_forward_norm_->backward(
               feed_forward_->backward(through(feed_forward_dropout_, dy), gradient.feed_forward),
               gradient.feed_forward_norm),
           dy);
  add_rows(attention_norm_->backward(
               attention_->backward(through(attention_dropout_, dy), gradient.attention),
               gradient.attention_norm),
           dy);
  return dy;
}

}  // namespace lipsa
