/// \file
/// A Transformer block: attention and a feed-forward layer, each with its residual and its norm.
#pragma once

#include <optional>
#include <string_view>

#include "lipsa/model/attention_layer.hpp"
#include "lipsa/model/dropout.hpp"
#include "lipsa/model/feed_forward.hpp"
#include "lipsa/model/layer_norm.hpp"

namespace lipsa {

/// Where the norms N stand, for a branch f (attention, then feed-forward):
enum class NormPlacement {
  post,  ///< N(x + f(x)): Vaswani et al. 2017, Kim et al. 2021
  pre,   ///< x + f(N(x))
};

std::string_view to_string(NormPlacement placement);  ///< "post", "pre"

/// \throws std::invalid_argument  `text` is neither
NormPlacement parse_norm_placement(std::string_view text);

/// In training dropout is of each branch, before it is added.
struct Block {
  NormPlacement placement = NormPlacement::post;
  AttentionLayer attention{};
  LayerNorm attention_norm{};
  FeedForward feed_forward{};
  LayerNorm feed_forward_norm{};
  double dropout = 0.0;  ///< rate, in [0, 1)
};

template <MaybeConst<Block> B, class F>
void for_each_parameter(B& block, const F& f) {
  for_each_parameter(block.attention, prefixed("attention.", f));
  for_each_parameter(block.attention_norm, prefixed("attention_norm.", f));
  for_each_parameter(block.feed_forward, prefixed("feed_forward.", f));
  for_each_parameter(block.feed_forward_norm, prefixed("feed_forward_norm.", f));
}

///     post  U = N_1(X + A(X)),   Y = N_2(U + F(U))
///     pre   U = X + A(N_1(X)),   Y = U + F(N_2(U))
///
/// \test tests/model/block_test.cpp
class BlockAt {
 public:
  /// \param x        (B n) × D
  /// \param tokens   n ≥ 1
  /// \param dropout  of training, its sites `site` and `site` + 1; nothing at evaluation
  /// \throws std::invalid_argument  shapes disagree, a branch does not give D columns
  BlockAt(const Block& block, Matrix x, Index tokens,
          const std::optional<DropoutStream>& dropout = {});

  Index rows() const { return attention_->rows(); }
  Index input_width() const { return attention_->input_width(); }
  Index output_width() const { return attention_->input_width(); }
  const Matrix& output() const { return output_; }
  Matrix take_output() { return std::move(output_); }

  Matrix apply(Matrix dx) const;
  Matrix apply_adjoint(Matrix dy) const;
  Matrix backward(Matrix dy, Block& gradient) const;

  /// The attention at its input; its output has moved on.
  const AttentionLayerAt& attention() const { return *attention_; }

 private:
  bool post() const { return placement_ == NormPlacement::post; }

  NormPlacement placement_;
  std::optional<AttentionLayerAt> attention_{};
  std::optional<DropoutAt> attention_dropout_{};
  std::optional<LayerNormAt> attention_norm_{};
  std::optional<FeedForwardAt> feed_forward_{};
  std::optional<DropoutAt> feed_forward_dropout_{};
  std::optional<LayerNormAt> feed_forward_norm_{};
  Matrix output_{};
};

}  // namespace lipsa
