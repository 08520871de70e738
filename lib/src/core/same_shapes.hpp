/// \file
/// Whether tangents, cotangents and gradients fit a piece. Private to lib/.
#pragma once

#include <string_view>

#include "core/check.hpp"
#include "core/shape.hpp"
#include "lipsa/core/parameters.hpp"

namespace lipsa {

/// Throws std::invalid_argument unless both have the same arrays of the same shapes.
template <class Piece>
void require_same_shapes(std::string_view function, const Piece& piece, const Piece& gradient) {
  const auto expected = parameters(piece);
  const auto found = parameters(gradient);
  require(expected.size() == found.size(), "{}: gradient must have {} arrays, got {}", function,
          expected.size(), found.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    require(expected[k].name == found[k].name && expected[k].shape == found[k].shape,
            "{}: gradient must have {} of shape {}, got {} of shape {}", function, expected[k].name,
            tuple_text(expected[k].shape), found[k].name, tuple_text(found[k].shape));
  }
}

inline void require_shape(std::string_view function, std::string_view name, const ConstMatrixRef& m,
                          Index rows, Index cols) {
  require(m.rows() == rows && m.cols() == cols, "{}: {} must be {} x {}, got {} x {}", function,
          name, rows, cols, m.rows(), m.cols());
}

}  // namespace lipsa
