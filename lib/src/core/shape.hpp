/// \file
/// Shapes of arrays. Private to lib/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lipsa/core/array_file.hpp"

namespace lipsa {

/// The product of the extents, all ≥ 0; nothing when it does not fit, an extent of 0 aside: such
/// an array has strides that do not fit either.
std::optional<Index> element_count(const std::vector<Index>& shape);

/// As Python writes a tuple: (), (3,), (3, 4).
std::string tuple_text(const std::vector<Index>& values);

/// The indices of the element at `place` in C order.
std::vector<Index> indices_of(const std::vector<Index>& shape, std::size_t place);

/// Throws std::invalid_argument unless `data` has as many elements as `shape` says.
void require_consistent(std::string_view function, const Array& array);

}  // namespace lipsa
