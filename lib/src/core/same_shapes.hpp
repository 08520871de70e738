/// \file
/// Whether a gradient fits its piece. Private to lib/.
#pragma once

#include <string_view>

#include "core/check.hpp"
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
            "{}: gradient must have {} of {} numbers, got {} of {}, or their shapes differ",
            function, expected[k].name, expected[k].values.size(), found[k].name,
            found[k].values.size());
  }
}

}  // namespace lipsa
