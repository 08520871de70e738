/// \file
/// Attention as a piece of a network: its weights, its mask, and a gain.
#pragma once

#include "lipsa/attention/attention_gradient.hpp"
#include "lipsa/model/piece.hpp"

namespace lipsa {

/// Y = gain · attend(weights, X, mask), sequence by sequence. With gain = c/L, L an upper bound of
/// the Lipschitz constant, it is contractive; L depends on the weights, so that the gradient of a
/// loss has a part through the gain: see train/bound_gradient.hpp. The gain is no trainable array.
struct AttentionLayer {
  MultiHead weights{};
  Mask mask = Mask::none();
  double gain = 1.0;
};

template <MaybeConst<AttentionLayer> L, class F>
void for_each_parameter(L& layer, const F& f) {
  for_each_parameter(layer.weights, f);
}

/// \test tests/model/attention_layer_test.cpp
class AttentionLayerAt {
 public:
  /// \throws std::invalid_argument  as AttentionAt
  AttentionLayerAt(const AttentionLayer& layer, Matrix x, Index tokens)
      : at_(layer.weights, std::move(x), tokens, layer.mask, layer.gain) {}

  Index rows() const { return at_.rows(); }
  Index input_width() const { return at_.input_width(); }
  Index output_width() const { return at_.output_width(); }
  const Matrix& output() const { return at_.output(); }
  Matrix take_output() { return at_.take_output(); }

  Matrix apply(const ConstMatrixRef& dx) const { return at_.apply(dx); }
  Matrix apply_adjoint(const ConstMatrixRef& dy) const { return at_.apply_adjoint(dy); }

  /// Adds to the weights of `gradient` with the gain held fixed, and to its gain: of a `gradient`
  /// from zeros_like that is the layer's own until it is set to zero, as the gain is no array.
  Matrix backward(const ConstMatrixRef& dy, AttentionLayer& gradient) const {
    return at_.backward(dy, gradient.weights, &gradient.gain);
  }

 private:
  AttentionAt at_;
};

}  // namespace lipsa
