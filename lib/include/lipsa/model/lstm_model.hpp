/// \file
/// The recurrent baseline: a language model of LSTM layers, token ids to logits.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lipsa/core/rng.hpp"
#include "lipsa/model/dropout.hpp"
#include "lipsa/model/embedding.hpp"
#include "lipsa/model/linear.hpp"
#include "lipsa/model/lstm.hpp"

namespace lipsa {

/// Embedding, layers in order, linear output. Positions are not needed: the state knows the past.
struct LstmModel {
  Embedding embedding{};  ///< V × D
  /// In training, of the embedded tokens and of the output of each layer, in [0, 1); what a layer
  /// hands on to itself is left alone (Zaremba, Sutskever & Vinyals 2014).
  double dropout = 0.0;
  std::vector<Lstm> layers{};  ///< the first takes D columns, each other those of the one before
  Linear output{};             ///< K × V of the last layer; D × V without layers
};

template <MaybeConst<LstmModel> M, class F>
void for_each_parameter(M& model, const F& f) {
  for_each_parameter(model.embedding, prefixed("embedding.", f));
  for (std::size_t k = 0; k < model.layers.size(); ++k) {
    for_each_parameter(model.layers[k], prefixed("layers." + std::to_string(k) + ".", f));
  }
  for_each_parameter(model.output, prefixed("output.", f));
}

/// What an LstmModel is made of.
struct LstmModelShape {
  Index vocabulary = 2;      ///< V ≥ 1
  Index width = 256;         ///< D ≥ 1, of the embedding
  Index hidden_width = 256;  ///< K ≥ 1, of each layer
  Index layers = 1;          ///< L ≥ 0
};

/// Every matrix uniform on ±√(6/(rows + columns)), LSTM layers by initial_lstm, biases of the
/// output zero.
///
/// \throws std::invalid_argument  a size is out of range
/// \test   tests/model/lstm_model_test.cpp
LstmModel initial_lstm_model(const LstmModelShape& shape, Rng& rng);

/// At token ids. As a linearised piece, it is the map from embedded tokens to logits.
///
/// \test tests/model/lstm_model_test.cpp
class LstmModelAt {
 public:
  /// \param ids      B n ids in [0, V), sequence after sequence
  /// \param tokens   n ≥ 1
  /// \param dropout  of training: the embedding has its site `site`, layer k the site `site` + 1 +
  /// k \throws std::invalid_argument  an id is out of range, shapes disagree
  LstmModelAt(const LstmModel& model, std::span<const Index> ids, Index tokens,
              const std::optional<DropoutStream>& dropout = {});

  Index rows() const { return output_->rows(); }
  Index input_width() const { return width_; }                    ///< D
  Index output_width() const { return output_->output_width(); }  ///< V
  const Matrix& output() const { return output_->output(); }      ///< logits, (B n) × V
  Matrix take_output() { return output_->take_output(); }

  Matrix apply(Matrix dx) const;
  Matrix apply_adjoint(Matrix dy) const;

  /// Adds the gradient of ⟨dy, output⟩.
  void backward(Matrix dy, LstmModel& gradient) const;

 private:
  Index width_;
  EmbeddingAt embedding_;
  std::vector<LstmAt> layers_{};
  std::vector<DropoutAt> dropouts_{};  ///< none, or of the embedding and of each layer
  std::optional<LinearAt> output_{};
};

}  // namespace lipsa
