/// \file
/// The numbers that array files hold, one element at a time. Private to lib/.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lipsa/core/array_file.hpp"

namespace lipsa {

static_assert(std::endian::native == std::endian::little, "elements are taken as little-endian");

/// The double of the same value as the T in native order at `bytes`; nothing when there is none.
template <class T>
std::optional<double> widen(const char* bytes) {
  if constexpr (std::is_same_v<T, bool>) {
    return *bytes == 0 || *bytes == 1 ? std::optional<double>(*bytes) : std::nullopt;
  } else {
    T value{};
    std::memcpy(&value, bytes, sizeof value);
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
      const auto bits = static_cast<std::uint64_t>(value);
      const std::uint64_t magnitude = value < T{0} ? 0 - bits : bits;
      const int significant = static_cast<int>(std::bit_width(magnitude)) -
                              std::countr_zero(magnitude);  // negative for 0
      if (significant > std::numeric_limits<double>::digits) {
        return std::nullopt;
      }
    }
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<double>(value);
    } else {
      return static_cast<float>(value);  // the halves of Eigen
    }
  }
}

/// A type of number, by its size and its way to double.
struct ElementFormat {
  std::size_t size;
  bool is_signed;
  std::optional<double> (*widen)(const char*);
};

template <class T>
inline constexpr ElementFormat format_of{sizeof(T), std::is_signed_v<T>, widen<T>};

/// The double of the element in native order at `bytes`, which holds at least 8. One that has none
/// is refused: \throws std::runtime_error  naming origin and place
double widened(const ElementFormat& format, const char* bytes, std::string_view origin,
               const std::vector<Index>& shape, std::size_t place);

/// The bytes of an element that is written.
std::size_t element_size(ElementType type);

/// Appends the elements of an array as its `written_as` says, little-endian, in C order.
/// \param function  the caller's name, for the message
/// \throws std::invalid_argument  the array is inconsistent or holds what that type does not
void append_elements(std::string& bytes, std::string_view function, const Array& array);

}  // namespace lipsa
