/// \file
/// Random pieces of networks for tests, all from a seed.
#pragma once

#include <cmath>

#include "lipsa/core/rng.hpp"
#include "lipsa/model/language_model.hpp"
#include "random_problems.hpp"

namespace lipsa::test {

inline Linear random_linear(Rng& rng, Index D, Index D_out, bool bias = true) {
  Linear linear{.W = normal_matrix(rng, D, D_out) / std::sqrt(static_cast<double>(D))};
  if (bias) {
    linear.b = normal_matrix(rng, D_out, 1);
  }
  return linear;
}

inline LayerNorm random_norm(Rng& rng, Index D, LayerNorm::Kind kind) {
  LayerNorm norm{.kind = kind, .gamma = normal_matrix(rng, D, 1), .epsilon = 0.1};
  norm.beta = normal_matrix(rng, D, 1);
  return norm;
}

inline FeedForward random_feed_forward(Rng& rng, Index D, Index hidden, Activation activation) {
  FeedForward piece{.in = random_linear(rng, D, hidden), .activation = activation};
  piece.out = random_linear(rng, hidden, D);
  return piece;
}

/// Options that a block is tested with.
struct BlockShape {
  NormPlacement placement = NormPlacement::post;
  AttentionKind attention = AttentionKind::dot;
  LayerNorm::Kind norm = LayerNorm::Kind::layer_norm;
  Activation activation = Activation::gelu;
  Index D = 4;
  Index H = 2;
};

inline Block random_block(Rng& rng, const BlockShape& s) {
  Block block{.placement = s.placement};
  const Index d = std::max<Index>(1, s.D / s.H);
  block.attention = {.weights = random_layer(rng, s.attention, {0, s.D, s.H, d, d, s.D}),
                     .mask = Mask::causal(),
                     .gain = 0.8};
  block.attention_norm = random_norm(rng, s.D, s.norm);
  block.feed_forward = random_feed_forward(rng, s.D, 2 * s.D, s.activation);
  block.feed_forward_norm = random_norm(rng, s.D, s.norm);
  return block;
}

inline Stack random_stack(Rng& rng, const BlockShape& s, Index blocks, Index outputs) {
  Stack stack;
  for (Index k = 0; k < blocks; ++k) {
    stack.blocks.push_back(random_block(rng, s));
  }
  if (s.placement == NormPlacement::pre) {
    stack.final_norm = random_norm(rng, s.D, s.norm);
  }
  stack.output = random_linear(rng, s.D, outputs);
  return stack;
}

inline LanguageModel random_language_model(Rng& rng, const BlockShape& s, Index blocks, Index V,
                                           Index positions) {
  LanguageModel model{.embedding = {.tokens = normal_matrix(rng, V, s.D)}};
  model.embedding.positions = normal_matrix(rng, positions, s.D);
  model.stack = random_stack(rng, s, blocks, V);
  return model;
}

}  // namespace lipsa::test
