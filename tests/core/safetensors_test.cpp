#include "lipsa/core/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "array_bytes.hpp"
#include "files.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

using Catch::Contains;
using Values = std::vector<double>;

Safetensors read_bytes(std::string_view bytes) {
  const TemporaryFolder folder;
  put_bytes(folder / "w.safetensors", bytes);
  return read_safetensors(folder / "w.safetensors");
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return concat(
      {R"({"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, "}"});
}

/// A file of one tensor named a.
std::string file_of(const std::string& dtype, const std::string& shape, std::string_view data) {
  return safetensors_bytes(
      R"({"a":)" + entry(dtype, shape, concat({"[0,", std::to_string(data.size()), "]"})) + "}",
      data);
}

TEST_CASE("read_safetensors: reads what the authors of the format describe", "[core]") {
  const Safetensors file = read_bytes(safetensors_bytes(
      R"({"__metadata__":{"format":"pt","ä":"é\n"},"b":)" + entry("F32", "[2,1]", "[8,16]") +
          R"(,"a.weight":)" + entry("F64", "[]", "[0,8]") + "}     ",
      from_hex("000000000000f0bf0000003f000000c0")));
  CHECK(file.metadata == decltype(file.metadata){{"format", "pt"}, {"ä", "é\n"}});
  REQUIRE(file.tensors.size() == 2);
  CHECK(to_scalar(file.tensors.at("a.weight")) == -1.0);
  CHECK(file.tensors.at("b").shape == std::vector<Index>{2, 1});
  CHECK(file.tensors.at("b").data == Values{0.5, -2.0});
  CHECK_THAT(file.tensors.at("b").origin, Catch::EndsWith("w.safetensors: tensor \"b\""));
}

TEST_CASE("read_safetensors: widens every type of number exactly", "[core]") {
  struct Case {
    std::string dtype;
    std::string hex;
    Values values;
  };
  const double inf = std::numeric_limits<double>::infinity();
  const auto& [dtype, hex, expected] = GENERATE_COPY(values<Case>({
      {"BOOL", "000100", {0, 1, 0}},
      {"I8", "80ff7f", {-128, -1, 127}},
      {"U8", "80ff7f", {128, 255, 127}},
      {"I16", "00800100", {-32768, 1}},
      {"U16", "00800100", {32768, 1}},
      {"I32", "00000080ffffffff", {-2147483648.0, -1}},
      {"U32", "00000080ffffffff", {2147483648.0, 4294967295.0}},
      {"I64", "0000000000000080feffffffffffffff", {-0x1p63, -2}},
      {"U64", "00000000000000800000000000002000", {0x1p63, 0x1p53}},
      {"F16", "003c0100ff7b007c", {1, 0x1p-24, 65504, inf}},
      {"BF16", "803f01007f7f80ff", {1, 0x1p-133, 0xff * 0x1p120, -inf}},
      {"F32", "0000803f01000000ffff7f7f", {1, 0x1p-149, std::numeric_limits<float>::max()}},
      {"F64", "0100000000000000ffffffffffffef7f", {0x1p-1074, std::numeric_limits<double>::max()}},
  }));
  CAPTURE(dtype);
  const std::string shape = concat({"[", std::to_string(expected.size()), "]"});
  CHECK(read_bytes(file_of(dtype, shape, from_hex(hex))).tensors.at("a").data == expected);
}

TEST_CASE("read_safetensors: empty tensors, blanks behind the header and no tensors are legal",
          "[core]") {
  CHECK(read_bytes(safetensors_bytes("{}", "")).tensors.empty());
  CHECK(read_bytes(safetensors_bytes(R"({"__metadata__":{}} )"
                                     "\t\n",
                                     ""))
            .metadata.empty());
  const Safetensors file = read_bytes(safetensors_bytes(
      R"({"e":)" + entry("F32", "[0,3]", "[0,0]") + R"(,"a":)" + entry("U8", "[1]", "[0,1]") +
          R"(,"f":)" + entry("F64", "[2,0]", "[1,1]") + R"(,"":)" + entry("U8", "[2]", "[1,3]") +
          "}",
      "\x01\x02\x03"));
  CHECK(file.tensors.at("e").shape == std::vector<Index>{0, 3});
  CHECK(file.tensors.at("f").data.empty());
  CHECK(file.tensors.at("a").data == Values{1});
  CHECK(file.tensors.at("").data == Values{2, 3});
}

TEST_CASE("read_safetensors: tensors longer than any buffer", "[core]") {
  const Index n = 20000;
  std::string data;
  for (Index k = 0; k < n; ++k) {
    data += little(static_cast<std::uint64_t>(k * k), 4);
  }
  const Array array = read_bytes(file_of("U32", "[20,1000]", data)).tensors.at("a");
  Index wrong = 0;
  for (Index k = 0; k < n; ++k) {
    wrong += array.data[static_cast<std::size_t>(k)] == static_cast<double>(k * k) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("read_safetensors: refuses a bad file, saying what was expected and found", "[core]") {
  struct Case {
    std::string bytes;
    std::string message;
  };
  const std::string two = R"("b":)" + entry("U8", "[2]", "[2,4]");
  const auto header = [](const std::string& text) { return safetensors_bytes(text, "1234"); };
  const auto offsets = [&](const std::string& a, const std::string& b) {
    return header(R"({"b":)" + entry("U8", "[2]", b) + R"(,"a":)" + entry("U8", "[2]", a) + "}");
  };
  const auto one = [&](const std::string& value) { return header(R"({"a":)" + value + "}"); };
  const std::string half = "9223372036854775807";
  const auto& [bytes, message] = GENERATE_COPY(values<Case>({
      {"", "expected at least the 8 bytes of a header's length, found 0"},
      {"1234567", "expected at least the 8 bytes of a header's length, found 7"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
       "this is a Git LFS pointer, fetch the real file"},
      {concat({little(3, 8), "{}"}), "byte 0: expected a header of 2 to 2 bytes, found 3"},
      {concat({little(0, 8), "{}"}), "expected a header of 2 to 2 bytes, found 0"},
      {concat({little(~std::uint64_t{0}, 8), "{}"}), "found 18446744073709551615"},
      {header(" {}"), "byte 8: expected a header that begins with '{', found \" {}\""},
      {header("[]"), "expected a header that begins with '{', found \"[]\""},
      {header("{} {}"), "header, byte 12: expected JSON, found none"},
      {header(R"({"a":)"), "header, byte 14: expected JSON, found none"},
      {header("{\"\xff\":1}"), "expected JSON, found none"},
      {header("{\"a\":1e999}"), "expected JSON, found none"},
      {header("{/**/}"), "expected JSON, found none"},
      {header("{}"), "expected 0 bytes of tensors after the header, found 4"},
      {header("{" + two + "," + two + "}"), "expected each name once, found \"b\" twice"},
      {header(R"({"b":1,"\u0062":2})"), "expected each name once, found \"b\" twice"},
      {one(R"({"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})"),
       "expected each name once, found \"dtype\" twice"},
      {header(R"({"__metadata__":{"x":"1","x":"2"}})"), "expected each name once, found \"x\""},
      {header(R"({"__metadata__":{"x":1}})"),
       "header, __metadata__: expected a string for \"x\", found 1"},
      {header(R"({"__metadata__":["x"]})"), "expected an object of strings, found [\"x\"]"},
      {one("{}"), "tensor \"a\": expected an object of dtype, shape and data_offsets, found {}"},
      {one("4"), "expected an object of dtype, shape and data_offsets, found 4"},
      {one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"more":1})"),
       "expected an object of dtype, shape and data_offsets, found "},
      {one(R"({"dtype":"U8","shape":[4],"offsets":[0,4]})"),
       "expected an object of dtype, shape and data_offsets, found "},
      {one(entry("F8_E4M3", "[4]", "[0,4]")), "found \"F8_E4M3\""},
      {one(entry("f32", "[1]", "[0,4]")),
       "expected a dtype of BOOL, I8 to I64, U8 to U64, F16, "
       "BF16, F32, F64, found \"f32\""},
      {one(R"({"dtype":5,"shape":[4],"data_offsets":[0,4]})"), "found 5"},
      {one(entry("U8", "4", "[0,4]")), "expected a shape of whole numbers from 0 below 2^63"},
      {one(entry("U8", "[-4]", "[0,4]")), "from 0 below 2^63, found [-4]"},
      {one(entry("U8", "[4.0]", "[0,4]")), "from 0 below 2^63, found [4.0]"},
      {one(entry("U8", "[[4]]", "[0,4]")), "found one nested deeper"},
      {one(entry("U8", R"([{"x":4}])", "[0,4]")), "found one nested deeper"},
      {one(entry("U8", "[9223372036854775808]", "[0,4]")), "from 0 below 2^63"},
      {one(entry("U8", "[1e1]", "[0,4]")), "from 0 below 2^63"},
      {one(entry("U8", "[" + half + "," + half + "," + half + ",0]", "[0,0]")),
       "expected a shape of fewer than 2^63 elements"},
      {one(entry("F64", "[2305843009213693952]", "[0,0]")),
       "expected a shape of fewer than 2^63 elements"},
      {one(entry("F32", "[4611686018427387904,1]", "[0,0]")),
       "expected a shape of fewer than 2^63 elements"},
      {one(entry("U8", "[3]", "[0,4]")), "expected 3 bytes for shape (3,) of \"U8\", found 4"},
      {one(entry("F32", "[]", "[0,3]")), "expected 4 bytes for shape () of \"F32\", found 3"},
      {one(entry("U8", "[4]", "[4,0]")), "the first not above the other, found [4,0]"},
      {one(entry("U8", "[4]", "[0,4,4]")), "expected data_offsets of two whole numbers"},
      {one(entry("U8", "[4]", "[-0.0,4]")), "expected data_offsets of two whole numbers"},
      {one(entry("U8", "[5]", "[0,5]")),
       "tensor \"a\": expected data_offsets within the 4 bytes after the header, found [0,5]: is "
       "the file truncated?"},
      {offsets("[0,2]", "[1,3]"),
       "tensor \"b\": expected it to begin at byte 2 of the tensors, for "
       "they may not overlap, found 1"},
      {offsets("[0,2]", "[0,2]"), "for they may not overlap, found 0"},
      {header(R"({"a":)" + entry("U8", "[1]", "[0,1]") + "," + two + "}"),
       "tensor \"b\": expected it to begin at byte 1 of the tensors, for none may be unused, "
       "found 2"},
      {header("{" + two + "}"), "expected it to begin at byte 0"},
      {one(entry("U8", "[3]", "[0,3]")), "expected 3 bytes of tensors after the header, found 4"},
      {file_of("BOOL", "[2,2]", std::string("\0\1\2\0", 4)),
       "tensor \"a\": element (1, 0): expected 0 or 1, found 2"},
      {file_of("I64", "[1]", from_hex("ffffffffffffdfff")),
       "element (0,): expected an integer that a double holds exactly, found -9007199254740993"},
      {file_of("U64", "[]", from_hex("ffffffffffffffff")), "found 18446744073709551615"},
  }));
  CAPTURE(bytes, message);
  CHECK_THROWS_AS(read_bytes(bytes), std::runtime_error);
  CHECK_THROWS_WITH(read_bytes(bytes), Contains("w.safetensors: ") && Contains(message));
}

TEST_CASE("read_safetensors: a header may have 100 MB, not more", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "w.safetensors";
  const std::uint64_t length = 100'000'001;
  put_bytes(path, little(length, 8) + "{}");
  std::filesystem::resize_file(path, 8 + length);  // a hole on the disk
  CHECK_THROWS_WITH(read_safetensors(path),
                    Contains("byte 0: expected a header of 2 to 100000000 bytes, found 100000001"));
}

TEST_CASE("read_safetensors: every truncation is refused", "[core]") {
  const std::string bytes = file_of("F32", "[3]", "0123456789ab");
  REQUIRE(read_bytes(bytes).tensors.size() == 1);
  std::size_t refused = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    try {
      read_bytes(bytes.substr(0, size));
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  CHECK(refused == bytes.size());
}

TEST_CASE("read_safetensors: NaN passes, and is refused by name where it may not be", "[core]") {
  const Array array =
      read_bytes(file_of("F32", "[1,2]", from_hex("000000000000c07f"))).tensors.at("a");
  CHECK_THROWS_WITH(require_finite(array),
                    Contains("tensor \"a\": row 0, column 1: expected a finite number, found nan"));
}

TEST_CASE("write_safetensors: writes the bytes the format asks for, the widest first", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "w.safetensors";
  write_safetensors(
      path,
      {.tensors = {{"z", to_array(1.0)},
                   {"b",
                    {.shape = {1, 2}, .data = {0.5, -2.0}, .written_as = ElementType::float32}},
                   {"a", {.shape = {3}, .data = {1, 2, 3}, .written_as = ElementType::uint8}}},
       .metadata = {{"step", "7"}}});
  std::string header = R"({"__metadata__":{"step":"7"},"z":)" + entry("F64", "[]", "[0,8]") +
                       R"(,"b":)" + entry("F32", "[1,2]", "[8,16]") + R"(,"a":)" +
                       entry("U8", "[3]", "[16,19]") + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(get_bytes(path) ==
        safetensors_bytes(header, from_hex("000000000000f03f0000003f000000c0010203")));
}

TEST_CASE("write_safetensors: what it writes is read back bit for bit, twice the same bytes",
          "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "w.safetensors";
  Rng rng(1);
  Array bits{.shape = {5, 1, 40}, .data = Values(200)};
  for (double& x : bits.data) {
    x = std::bit_cast<double>(rng.next());  // NaN with payloads among them, and the tiniest
  }
  bits.data[0] = -0.0;
  bits.data[1] = std::bit_cast<double>(std::uint64_t{0x7ff4000000000001});  // a signalling NaN
  const Safetensors file{
      .tensors = {{"bits", bits},
                  {"empty", {.shape = {0, 3}}},
                  {"scalar", to_array(0.1)},
                  {"text", {.shape = {2}, .data = {0, 255}, .written_as = ElementType::uint8}},
                  {"müßig \"\n", to_array(Matrix(normal_matrix(rng, 7, 3)))}},
      .metadata = {{"", ""}, {"characters", std::string("\n \"\\\0é…", 10)}}};
  write_safetensors(path, file);
  const std::string bytes = get_bytes(path);
  const Safetensors back = read_safetensors(path);
  CHECK(back.metadata == file.metadata);
  REQUIRE(back.tensors.size() == file.tensors.size());
  for (const auto& [name, array] : file.tensors) {
    CAPTURE(name);
    const Array& found = back.tensors.at(name);
    REQUIRE(found.shape == array.shape);
    REQUIRE(found.data.size() == array.data.size());
    const auto same_bits = [](double x, double y) {
      return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
    };
    CHECK(std::equal(array.data.begin(), array.data.end(), found.data.begin(), same_bits));
  }
  write_safetensors(path, file);
  CHECK(get_bytes(path) == bytes);
  CHECK(folder.count() == 1);

  write_safetensors(path, {});
  CHECK(get_bytes(path) == safetensors_bytes("{}      ", ""));
  CHECK(read_safetensors(path).tensors.empty());
}

TEST_CASE("write_safetensors: refuses what it cannot write before it touches the disk", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "w.safetensors";
  const auto write = [&](const std::string& name, const Array& array) {
    write_safetensors(path, {.tensors = {{name, array}}});
  };
  CHECK_THROWS_WITH(
      write("W", {.shape = {2}, .data = {1}}),
      "write_safetensors: tensor \"W\": array must have as many elements as its shape "
      "says, got 1 for (2,)");
  CHECK_THROWS_WITH(
      write("W", {.shape = {1}, .data = {0.1}, .written_as = ElementType::float32}),
      "write_safetensors: tensor \"W\": array must hold numbers of single precision to "
      "be written as float32, got 0.1");
  CHECK_THROWS_WITH(write("__metadata__", to_array(1.0)),
                    "write_safetensors: tensors must have names other than __metadata__");
  CHECK_THROWS_WITH(write("a\xff", to_array(1.0)), Contains("must be UTF-8"));
  CHECK_THROWS_AS(write("a\xff", to_array(1.0)), std::invalid_argument);
  CHECK_THROWS_AS(write_safetensors(path, {.metadata = {{"a", "\xc3"}}}), std::invalid_argument);
  CHECK_THROWS_AS(write_safetensors(folder / "missing/w.safetensors", {}), WriteError);
  CHECK(folder.count() == 0);
}

}  // namespace
}  // namespace lipsa
