#include "core/element.hpp"

#include <cmath>

#include "core/check.hpp"
#include "core/input_file.hpp"
#include "core/shape.hpp"

namespace lipsa {
namespace {

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A double beyond the range of float is undefined behaviour to convert.
bool is_float(double x) {
  return !std::isfinite(x) || (std::abs(x) <= double{std::numeric_limits<float>::max()} &&
                               double{static_cast<float>(x)} == x);
}

}  // namespace

double widened(const ElementFormat& format, const char* bytes, std::string_view origin,
               const std::vector<Index>& shape, std::size_t place) {
  if (const std::optional<double> value = format.widen(bytes)) {
    return *value;
  }
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, format.size);
  malformed(
      origin, "element {}: expected {}, found {}", tuple_text(indices_of(shape, place)),
      format.size == 1 ? "0 or 1" : "an integer that a double holds exactly",
      format.is_signed ? fmt::to_string(static_cast<std::int64_t>(bits)) : fmt::to_string(bits));
}

std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::float64:
      return 8;
    case ElementType::float32:
      return 4;
    case ElementType::uint8:
      return 1;
  }
  return 0;
}

void append_elements(std::string& bytes, std::string_view function, const Array& array) {
  require_consistent(function, array);
  bytes.reserve(bytes.size() + array.data.size() * element_size(array.written_as));
  switch (array.written_as) {
    case ElementType::float64:
      bytes.append(reinterpret_cast<const char*>(array.data.data()),
                   array.data.size() * sizeof(double));
      break;
    case ElementType::float32:
      for (const double x : array.data) {
        require(is_float(x),
                "{}: array must hold numbers of single precision to be written as float32, got {}",
                function, x);
        append(bytes, static_cast<float>(x));
      }
      break;
    case ElementType::uint8:
      for (const double x : array.data) {
        require(x >= 0.0 && x <= 255.0 && x == std::floor(x),
                "{}: array must hold whole numbers from 0 to 255 to be written as uint8, got {}",
                function, x);
        append(bytes, static_cast<unsigned char>(x));
      }
      break;
  }
}

}  // namespace lipsa
