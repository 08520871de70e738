#include "lipsa/core/array_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/check.hpp"
#include "core/input_file.hpp"
#include "core/shape.hpp"

namespace lipsa {
namespace {

std::string_view name_of(const Array& array) {
  return array.origin.empty() ? std::string_view("array") : array.origin;
}

[[noreturn]] void wrong_shape(const Array& array, std::string_view expected) {
  malformed(name_of(array), "expected {}, found shape {}", expected, tuple_text(array.shape));
}

}  // namespace

std::optional<Index> element_count(const std::vector<Index>& shape) {
  Index product = 1;
  for (const Index extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, std::max<Index>(extent, 1), &product)) {
      return std::nullopt;
    }
  }
  return std::find(shape.begin(), shape.end(), 0) == shape.end() ? product : 0;
}

std::string tuple_text(const std::vector<Index>& values) {
  return fmt::format("({}{})", fmt::join(values, ", "), values.size() == 1 ? "," : "");
}

std::vector<Index> indices_of(const std::vector<Index>& shape, std::size_t place) {
  std::vector<Index> indices(shape.size());
  auto rest = static_cast<Index>(place);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    indices[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  return indices;
}

void require_consistent(std::string_view function, const Array& array) {
  require(element_count(array.shape) == static_cast<Index>(array.data.size()),
          "{}: array must have as many elements as its shape says, got {} for {}", function,
          array.data.size(), tuple_text(array.shape));
}

Array to_array(const Matrix& matrix) {
  return {.shape = {matrix.rows(), matrix.cols()},
          .data = {matrix.data(), matrix.data() + matrix.size()}};
}

Array to_array(const Vector& vector) {
  return {.shape = {vector.size()}, .data = {vector.data(), vector.data() + vector.size()}};
}

Array to_array(double scalar) {
  return {.data = {scalar}};
}

Matrix to_matrix(const Array& array) {
  require_consistent("to_matrix", array);
  if (array.shape.size() != 2) {
    wrong_shape(array, "a matrix");
  }
  return Eigen::Map<const Matrix>(array.data.data(), array.shape[0], array.shape[1]);
}

Vector to_vector(const Array& array) {
  require_consistent("to_vector", array);
  if (array.shape.size() != 1) {
    wrong_shape(array, "a vector");
  }
  return Eigen::Map<const Vector>(array.data.data(), array.shape[0]);
}

double to_scalar(const Array& array) {
  require_consistent("to_scalar", array);
  if (array.data.size() != 1) {
    wrong_shape(array, "one number");
  }
  return array.data[0];
}

void require_finite(const Array& array) {
  require_consistent("require_finite", array);
  const auto bad = std::find_if(array.data.begin(), array.data.end(),
                                [](double x) { return !std::isfinite(x); });
  if (bad == array.data.end()) {
    return;
  }
  const std::vector<Index> at =
      indices_of(array.shape, static_cast<std::size_t>(bad - array.data.begin()));
  malformed(
      name_of(array), "{}: expected a finite number, found {}",
      at.size() == 2 ? fmt::format("row {}, column {}", at[0], at[1]) : "element " + tuple_text(at),
      *bad);
}

}  // namespace lipsa
