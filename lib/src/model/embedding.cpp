#include "lipsa/model/embedding.hpp"

#include "core/same_shapes.hpp"
#include "linalg/row_products.hpp"

namespace lipsa {

EmbeddingAt::EmbeddingAt(const Embedding& embedding, std::span<const Index> ids, Index tokens)
    : ids_(ids.begin(), ids.end()),
      tokens_(tokens),
      vocabulary_(embedding.tokens.rows()),
      width_(embedding.tokens.cols()) {
  const auto count = static_cast<Index>(ids_.size());
  const bool positions = embedding.positions.size() > 0;
  require(tokens >= 1, "EmbeddingAt: tokens must be at least 1, got {}", tokens);
  require(count >= tokens && count % tokens == 0,
          "EmbeddingAt: ids must be a positive multiple of {} in number, got {}", tokens, count);
  require(
      !positions || (embedding.positions.cols() == width_ && embedding.positions.rows() >= tokens),
      "EmbeddingAt: positions must have at least {} rows of {}, got {} x {}", tokens, width_,
      embedding.positions.rows(), embedding.positions.cols());
  for (Index i = 0; i < count; ++i) {
    const Index id = ids_[static_cast<std::size_t>(i)];
    require(id >= 0 && id < embedding.tokens.rows(),
            "EmbeddingAt: ids must be in [0, {}), got {} at {}", embedding.tokens.rows(), id, i);
  }
  output_.resize(count, width_);
  for_row_pieces(count, [&](Index first, Index piece) {
    for (Index i = first; i < first + piece; ++i) {
      output_.row(i) = embedding.tokens.row(ids_[static_cast<std::size_t>(i)]);
      if (positions) {
        output_.row(i) += embedding.positions.row(i % tokens);
      }
    }
  });
}

void EmbeddingAt::backward(const ConstMatrixRef& dy, Embedding& gradient) const {
  const auto count = static_cast<Index>(ids_.size());
  require_shape("EmbeddingAt", "dy", dy, count, width_);
  const bool positions = gradient.positions.size() > 0;
  require(gradient.tokens.rows() == vocabulary_ && gradient.tokens.cols() == width_ &&
              (!positions ||
               (gradient.positions.cols() == width_ && gradient.positions.rows() >= tokens_)),
          "EmbeddingAt: gradient must have the shapes of the embedding, {} x {}, got {} x {}",
          vocabulary_, width_, gradient.tokens.rows(), gradient.tokens.cols());
  for_pieces(width_, 32, [&](Index first, Index piece) {  // rows meet, columns do not
    for (Index i = 0; i < count; ++i) {
      const auto row = dy.row(i).segment(first, piece);
      gradient.tokens.row(ids_[static_cast<std::size_t>(i)]).segment(first, piece) += row;
      if (positions) {
        gradient.positions.row(i % tokens_).segment(first, piece) += row;
      }
    }
  });
}

}  // namespace lipsa
