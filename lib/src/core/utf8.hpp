/// \file
/// UTF-8, strictly. Private to lib/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lipsa {

/// A code point at the front of some bytes.
struct Utf8Character {
  char32_t code_point = 0;
  std::size_t size = 0;  ///< its bytes, 1 to 4; 0 when the bytes are no UTF-8
};

/// The first code point of `bytes`. Not UTF-8 are continuations without a start, starts without all
/// of their continuations, forms longer than needed, surrogates, and what lies beyond U+10FFFF.
///
/// \source RFC 3629, sections 3 and 4
Utf8Character first_character(std::string_view bytes);

void append_utf8(std::string& bytes, char32_t code_point);

/// U+0041 'A', or U+000A for what is no graphic character.
std::string character_name(char32_t code_point);

}  // namespace lipsa
