/// \file
/// Token ids to rows, with learned positions.
#pragma once

#include <span>
#include <vector>

#include "lipsa/model/piece.hpp"

namespace lipsa {

/// Row t of a sequence is the row of its token plus the row of position t.
struct Embedding {
  Matrix tokens{};     ///< V × D
  Matrix positions{};  ///< at least n rows of D, or empty for none
};

template <MaybeConst<Embedding> E, class F>
void for_each_parameter(E& embedding, const F& f) {
  visit_parameter(f, "tokens", embedding.tokens);
  visit_parameter(f, "positions", embedding.positions);
}

/// \test tests/model/embedding_test.cpp
class EmbeddingAt {
 public:
  /// \param ids     B n ids in [0, V), sequence after sequence
  /// \param tokens  n ≥ 1
  /// \throws std::invalid_argument  an id is out of range, shapes disagree, no position for token n
  EmbeddingAt(const Embedding& embedding, std::span<const Index> ids, Index tokens);

  const Matrix& output() const { return output_; }  ///< (B n) × D
  Matrix take_output() { return std::move(output_); }

  /// Adds the gradient of ⟨dy, output⟩.
  void backward(const ConstMatrixRef& dy, Embedding& gradient) const;

 private:
  std::vector<Index> ids_;
  Index tokens_;
  Index vocabulary_;
  Index width_;
  Matrix output_{};
};

}  // namespace lipsa
