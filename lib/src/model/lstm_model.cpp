#include "lipsa/model/lstm_model.hpp"

#include <cmath>

#include "core/check.hpp"

namespace lipsa {

LstmModel initial_lstm_model(const LstmModelShape& shape, Rng& rng) {
  require(shape.vocabulary >= 1 && shape.width >= 1 && shape.hidden_width >= 1 && shape.layers >= 0,
          "initial_lstm_model: shape must have V, D, K from 1 and L from 0, got {}, {}, {} and {}",
          shape.vocabulary, shape.width, shape.hidden_width, shape.layers);
  const auto glorot = [&](Index rows, Index cols) {
    const double limit = std::sqrt(6.0 / static_cast<double>(rows + cols));
    return uniform_matrix(rng, rows, cols, -limit, limit);
  };
  LstmModel model;
  model.embedding.tokens = glorot(shape.vocabulary, shape.width);
  Index width = shape.width;
  for (Index k = 0; k < shape.layers; ++k) {
    model.layers.push_back(initial_lstm(width, shape.hidden_width, rng));
    width = shape.hidden_width;
  }
  model.output.W = glorot(width, shape.vocabulary);
  model.output.b = Vector::Zero(shape.vocabulary);
  return model;
}

LstmModelAt::LstmModelAt(const LstmModel& model, std::span<const Index> ids, Index tokens,
                         const std::optional<DropoutStream>& dropout)
    : width_(model.embedding.tokens.cols()), embedding_(model.embedding, ids, tokens) {
  const bool drop = dropout && model.dropout != 0.0;
  const auto dropped = [&](Matrix x, std::size_t site) {
    if (!drop) {
      return x;
    }
    DropoutStream stream = *dropout;
    stream.site += site;
    dropouts_.emplace_back(model.dropout, stream, std::move(x));
    return dropouts_.back().take_output();
  };
  Matrix x = dropped(embedding_.take_output(), 0);
  layers_.reserve(model.layers.size());
  for (const Lstm& layer : model.layers) {
    layers_.emplace_back(layer, x, tokens);
    x = dropped(layers_.back().take_output(), layers_.size());
  }
  output_.emplace(model.output, std::move(x));
}

Matrix LstmModelAt::apply(Matrix dx) const {
  for (std::size_t k = 0; k <= layers_.size(); ++k) {
    if (k > 0) {
      dx = layers_[k - 1].apply(dx);
    }
    if (!dropouts_.empty()) {
      dx = dropouts_[k].apply(std::move(dx));
    }
  }
  return output_->apply(dx);
}

Matrix LstmModelAt::apply_adjoint(Matrix dy) const {
  dy = output_->apply_adjoint(dy);
  for (std::size_t k = layers_.size() + 1; k-- > 0;) {
    if (!dropouts_.empty()) {
      dy = dropouts_[k].apply_adjoint(std::move(dy));
    }
    if (k > 0) {
      dy = layers_[k - 1].apply_adjoint(dy);
    }
  }
  return dy;
}

void LstmModelAt::backward(Matrix dy, LstmModel& gradient) const {
  require(gradient.layers.size() == layers_.size(),
          "LstmModelAt: gradient must have {} layers, got {}", layers_.size(),
          gradient.layers.size());
  dy = output_->backward(dy, gradient.output);
  for (std::size_t k = layers_.size() + 1; k-- > 0;) {
    if (!dropouts_.empty()) {
      dy = dropouts_[k].apply_adjoint(std::move(dy));
    }
    if (k > 0) {
      dy = layers_[k - 1].backward(dy, gradient.layers[k - 1]);
    }
  }
  embedding_.backward(dy, gradient.embedding);
}

}  // namespace lipsa
