#include "core/utf8.hpp"

#include <fmt/format.h>

namespace lipsa {

Utf8Character first_character(std::string_view bytes) {
  const auto byte = [&](std::size_t k) {
    return k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0U;
  };
  const char32_t first = byte(0);
  if (bytes.empty() || first < 0x80) {
    return {first, bytes.empty() ? 0U : 1U};
  }
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) {
    return {};
  }
  char32_t code_point = first & (0x7fU >> size);
  for (std::size_t k = 1; k < size; ++k) {
    if ((byte(k) & 0xc0U) != 0x80U) {
      return {};
    }
    code_point = code_point << 6U | (byte(k) & 0x3fU);
  }
  const bool longer_than_needed = code_point < (size == 4 ? 0x10000U : size == 3 ? 0x800U : 0x80U);
  const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (longer_than_needed || surrogate || code_point > 0x10ffff) {
    return {};
  }
  return {code_point, size};
}

void append_utf8(std::string& bytes, char32_t code_point) {
  const auto put = [&](char32_t byte) {
    bytes += static_cast<char>(static_cast<unsigned char>(byte));
  };
  if (code_point < 0x80) {
    put(code_point);
    return;
  }
  const unsigned continuations = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  put((0xff00U >> (continuations + 1) & 0xffU) | code_point >> 6U * continuations);
  for (unsigned k = continuations; k-- > 0;) {
    put(0x80U | (code_point >> 6U * k & 0x3fU));
  }
}

std::string character_name(char32_t code_point) {
  std::string name = fmt::format("U+{:04X}", static_cast<unsigned>(code_point));
  // Controls, and the space and joiners that leave no mark, are named only.
  const bool invisible = code_point <= 0x20 || (code_point >= 0x7f && code_point <= 0xa0) ||
                         code_point == 0xad || (code_point >= 0x2000 && code_point <= 0x200f) ||
                         (code_point >= 0x2028 && code_point <= 0x202f) ||
                         (code_point >= 0x205f && code_point <= 0x206f) || code_point == 0x3000 ||
                         code_point == 0xfeff;
  if (!invisible) {
    name += " '";
    append_utf8(name, code_point);
    name += '\'';
  }
  return name;
}

}  // namespace lipsa
