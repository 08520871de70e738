#include "lipsa/model/layer_norm.hpp"

#include <cmath>

#include "core/same_shapes.hpp"
#include "linalg/row_products.hpp"

namespace lipsa {

LayerNormAt::LayerNormAt(const LayerNorm& norm, Matrix x) : norm_(norm), unit_(std::move(x)) {
  const Index D = unit_.cols();
  require(D >= 1, "LayerNormAt: x must have at least one column, got {}", D);
  require(norm_.gamma.size() == 0 || norm_.gamma.size() == D,
          "LayerNormAt: gamma must be empty or of length {}, got {}", D, norm_.gamma.size());
  require(norm_.beta.size() == 0 || norm_.beta.size() == D,
          "LayerNormAt: beta must be empty or of length {}, got {}", D, norm_.beta.size());
  require(norm_.epsilon > 0.0 && std::isfinite(norm_.epsilon),
          "LayerNormAt: epsilon must be positive, got {}", norm_.epsilon);
  const double share = 1.0 / static_cast<double>(D);
  inverse_length_.resize(unit_.rows());
  output_.resize(unit_.rows(), D);
  for_row_pieces(unit_.rows(), [&](Index first, Index count) {
    for (Index i = first; i < first + count; ++i) {
      auto row = unit_.row(i);
      if (norm_.kind == LayerNorm::Kind::layer_norm) {
        row.array() -= (row * share).sum();
        // The mean of equal numbers need not be that number: what is left would be scaled to 1.
        row.array() -= row(0);
        row.array() -= (row * share).sum();
      }
      double length = std::sqrt(row.squaredNorm() * share + norm_.epsilon);
      if (!std::isfinite(length)) {  // the squares overflow where their root need not
        length = std::hypot(row.stableNorm() * std::sqrt(share), std::sqrt(norm_.epsilon));
      }
      row /= length;
      inverse_length_(i) = 1.0 / length;
      auto out = output_.row(i);
      if (norm_.gamma.size() > 0) {
        out = row.cwiseProduct(norm_.gamma.transpose());
      } else {
        out = row;
      }
      if (norm_.beta.size() > 0) {
        out += norm_.beta.transpose();
      }
    }
  });
}

void LayerNormAt::through_unit(Index i, Matrix& m) const {
  const double share = 1.0 / static_cast<double>(unit_.cols());
  const auto unit = unit_.row(i);
  auto row = m.row(i);
  const double mean = norm_.kind == LayerNorm::Kind::layer_norm ? row.sum() * share : 0.0;
  const double along = row.dot(unit) * share;
  row.array() = inverse_length_(i) * (row.array() - mean - along * unit.array());
}

void LayerNormAt::scale(Index i, Matrix& m) const {
  if (norm_.gamma.size() > 0) {
    m.row(i).array() *= norm_.gamma.transpose().array();
  }
}

Matrix LayerNormAt::apply(Matrix dx) const {
  require_shape("LayerNormAt", "dx", dx, rows(), input_width());
  for_row_pieces(rows(), [&](Index first, Index count) {
    for (Index i = first; i < first + count; ++i) {
      through_unit(i, dx);
      scale(i, dx);
    }
  });
  return dx;
}

Matrix LayerNormAt::apply_adjoint(Matrix dy) const {
  require_shape("LayerNormAt", "dy", dy, rows(), output_width());
  for_row_pieces(rows(), [&](Index first, Index count) {
    for (Index i = first; i < first + count; ++i) {
      scale(i, dy);
      through_unit(i, dy);
    }
  });
  return dy;
}

Matrix LayerNormAt::backward(Matrix dy, LayerNorm& gradient) const {
  require_shape("LayerNormAt", "dy", dy, rows(), output_width());
  require_same_shapes("LayerNormAt", norm_, gradient);
  if (gradient.gamma.size() > 0) {
    add_column_products(unit_, dy, gradient.gamma);
  }
  if (gradient.beta.size() > 0) {
    add_column_sums(1.0, dy, gradient.beta);
  }
  return apply_adjoint(std::move(dy));
}

}  // namespace lipsa
