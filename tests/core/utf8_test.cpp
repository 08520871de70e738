#include "core/utf8.hpp"

#include <catch2/catch.hpp>

#include "array_bytes.hpp"

namespace lipsa {
namespace {

std::string utf8(char32_t code_point) {
  std::string bytes;
  append_utf8(bytes, code_point);
  return bytes;
}

TEST_CASE("utf8: code points have the bytes of the standard's examples", "[core]") {
  struct Case {
    char32_t code_point;
    std::string hex;
  };
  const auto& [code_point, hex] = GENERATE(values<Case>({{0, "00"},
                                                         {0x41, "41"},
                                                         {0x7f, "7f"},
                                                         {0x80, "c280"},
                                                         {0x391, "ce91"},
                                                         {0x7ff, "dfbf"},
                                                         {0x800, "e0a080"},
                                                         {0x2262, "e289a2"},
                                                         {0xd7ff, "ed9fbf"},
                                                         {0xe000, "ee8080"},
                                                         {0xfeff, "efbbbf"},
                                                         {0xffff, "efbfbf"},
                                                         {0x10000, "f0908080"},
                                                         {0x233b4, "f0a38eb4"},
                                                         {0x10ffff, "f48fbfbf"}}));
  CAPTURE(hex);
  CHECK(utf8(code_point) == from_hex(hex));
}

// With the next test: what is taken is exactly what is written.
TEST_CASE("utf8: every code point that is written is read again, whatever follows", "[core]") {
  int wrong = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) {
      continue;
    }
    const std::string bytes = utf8(c);
    const Utf8Character alone = first_character(bytes);
    const Utf8Character before = first_character(bytes + "\x80");
    wrong += alone.code_point == c && alone.size == bytes.size() ? 0 : 1;
    wrong += before.code_point == c && before.size == bytes.size() ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("utf8: no other bytes are read as a character", "[core]") {
  int wrong = 0;
  int refused = 0;
  const auto check = [&](std::string_view bytes) {
    const Utf8Character c = first_character(bytes);
    const bool written = c.size > 0 && utf8(c.code_point) == bytes.substr(0, c.size);
    wrong += c.size == 0 || (written && (c.code_point < 0xd800 || c.code_point > 0xdfff)) ? 0 : 1;
    refused += c.size == 0 ? 1 : 0;
  };
  // Every first three bytes, with a fourth of each class.
  for (unsigned k = 0; k < 1U << 24U; ++k) {
    const std::string bytes = little(k, 3) + (k % 3 == 0 ? '\x41' : k % 3 == 1 ? '\x80' : '\xbf');
    check(bytes);
    if (k % 251 == 0) {
      check(std::string_view(bytes).substr(0, 3));
      check(std::string_view(bytes).substr(0, 2));
      check(std::string_view(bytes).substr(0, 1));
    }
  }
  CHECK(wrong == 0);
  CHECK(refused > 0);
  for (const char* hex :
       {"", "80", "bf", "c0af", "c180", "e08080", "e09fbf", "eda080", "edbfbf", "f0808080",
        "f08fbfbf", "f4908080", "f5808080", "ff", "c3", "e282", "f09f92", "c341", "e28241"}) {
    CAPTURE(hex);
    CHECK(first_character(from_hex(hex)).size == 0);
  }
}

TEST_CASE("character_name: the number, and the character where it leaves a mark", "[core]") {
  CHECK(character_name(U'A') == "U+0041 'A'");
  CHECK(character_name(U'é') == "U+00E9 'é'");
  CHECK(character_name(U'𣎴') == "U+233B4 '𣎴'");
  CHECK(character_name(U'\n') == "U+000A");
  CHECK(character_name(U' ') == "U+0020");
  CHECK(character_name(0xa0) == "U+00A0");
  CHECK(character_name(0x200b) == "U+200B");
  CHECK(character_name(0xfeff) == "U+FEFF");
}

}  // namespace
}  // namespace lipsa
