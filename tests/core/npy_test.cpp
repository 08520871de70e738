#include "lipsa/core/npy.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "array_bytes.hpp"
#include "files.hpp"
#include "lipsa/core/atomic_file.hpp"

namespace lipsa {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Values = std::vector<double>;

Array read_bytes(std::string_view bytes) {
  const TemporaryFolder folder;
  put_bytes(folder / "a.npy", bytes);
  return read_npy(folder / "a.npy");
}

/// Each element of `size` bytes turned round.
std::string swapped(std::string data, std::size_t size) {
  for (auto at = data.begin(); at != data.end(); at += static_cast<std::ptrdiff_t>(size)) {
    std::reverse(at, at + static_cast<std::ptrdiff_t>(size));
  }
  return data;
}

TEST_CASE("read_npy: widens every dtype, in every version and byte order", "[core]") {
  struct Case {
    std::string dtype;
    std::string little_endian;  // hex
    Values values;
  };
  const auto& [dtype, hex, expected] = GENERATE(values<Case>({
      {"b1", "000100", {0, 1, 0}},
      {"i1", "007f80ff", {0, 127, -128, -1}},
      {"u1", "007f80ff", {0, 127, 128, 255}},
      {"i2", "0100ff7f0080", {1, 32767, -32768}},
      {"u2", "0100ff7f0080", {1, 32767, 32768}},
      {"i4", "01000000ffffff7f00000080", {1, 2147483647.0, -2147483648.0}},
      {"u4", "01000000ffffffff", {1, 4294967295.0}},
      {"i8", "feffffffffffffff0000000000000080", {-2, -0x1p63}},
      {"u8", "00000000000020000000000000000080", {0x1p53, 0x1p63}},
      {"f2", "003c010000ccff7b007c", {1, 0x1p-24, -16, 65504, INFINITY}},
      {"f4", "0000c03f01000000ffff7fff", {1.5, 0x1p-149, -0x1.fffffep127}},
      {"f8", "9a9999999999b93f0100000000000000", {0.1, 0x0.0000000000001p-1022}},
  }));
  const char version = GENERATE(char{1}, char{2}, char{3});
  const char order = GENERATE('<', '>', '=', '|');
  const auto size = static_cast<std::size_t>(dtype[1] - '0');
  CAPTURE(dtype, static_cast<int>(version), order);

  const std::string data = from_hex(hex);
  const std::string header =
      npy_header(order + dtype, false, concat({"(", std::to_string(expected.size()), ",)"}));
  const std::string file = npy_bytes(version, header, order == '>' ? swapped(data, size) : data);
  if (order == '|' && size > 1) {  // no order where one is needed
    CHECK_THROWS_WITH(read_bytes(file), Contains(concat({"found \"|", dtype})));
    return;
  }
  const Array array = read_bytes(file);
  CHECK(array.shape == std::vector<Index>{static_cast<Index>(expected.size())});
  CHECK(array.data == expected);
}

TEST_CASE("read_npy: NaN and the sign of zero survive", "[core]") {
  const std::string file =
      npy_bytes(1, npy_header("<f4", false, "(2,)"), from_hex("0000c07f00000080"));
  const Array array = read_bytes(file);
  CHECK(std::isnan(array.data[0]));
  CHECK(array.data[1] == 0.0);
  CHECK(std::signbit(array.data[1]));
}

TEST_CASE("read_npy: Fortran order is turned into C order", "[core]") {
  const auto read = [](const std::string& shape, const std::string& data) {
    return read_bytes(npy_bytes(1, npy_header("|i1", true, shape), from_hex(data))).data;
  };
  CHECK(read("(2, 3)", "010203040506") == Values{1, 3, 5, 2, 4, 6});
  // element (i, j, k) of shape (2, 1, 3) lies at i + 2 j + 2 k of the file
  CHECK(read("(2, 1, 3)", "010203040506") == Values{1, 3, 5, 2, 4, 6});
  CHECK(read("(2, 2, 2)", "0102030405060708") == Values{1, 5, 3, 7, 2, 6, 4, 8});
  CHECK(read("(3,)", "010203") == Values{1, 2, 3});
  CHECK(read("()", "09") == Values{9});
  CHECK(read("(0, 3)", "").empty());
}

TEST_CASE("read_npy: an array larger than the reading buffer is read whole, in both orders",
          "[core]") {
  const Index rows = 129;
  const Index cols = 700;  // 8 · 129 · 700 bytes: eleven buffers and a bit
  const bool fortran = GENERATE(false, true);
  Matrix matrix(rows, cols);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) {
      matrix(i, j) = static_cast<double>(1000 * i + j);
    }
  }
  const Matrix in_file =
      fortran ? Matrix(matrix.transpose().reshaped<Eigen::RowMajor>(rows, cols)) : matrix;
  std::string data(static_cast<std::size_t>(8 * matrix.size()), '\0');
  std::memcpy(data.data(), in_file.data(), data.size());
  const Array array = read_bytes(npy_bytes(1, npy_header("<f8", fortran, "(129, 700)"), data));
  CHECK(to_matrix(array) == matrix);
}

TEST_CASE("read_npy: takes any spelling of the header that is the same Python", "[core]") {
  const std::string header =
      GENERATE("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }          \n",
               "{'shape': (1, 2), 'descr': '|u1', 'fortran_order': False}",
               "{\"fortran_order\":False,\"descr\":\"|u1\",\"shape\":(1,2,)}\n",
               " { 'shape' : ( 1 , 2 ) , 'descr' : '|u1' , 'fortran_order' : False , } ",
               "{'descr': '|u1', 'fortran_order': False, 'shape': (1L, 2L), }\n");
  CAPTURE(header);
  const Array array = read_bytes(npy_bytes(1, header, "\x05\x06"));
  CHECK(array.shape == std::vector<Index>{1, 2});
  CHECK(array.data == Values{5, 6});
}

TEST_CASE("read_npy: rank 0 and empty arrays are arrays", "[core]") {
  CHECK(to_scalar(read_bytes(npy_bytes(1, npy_header("|u1", false, "()"), "\x07"))) == 7.0);
  const Array empty = read_bytes(npy_bytes(1, npy_header("<f8", false, "(3, 0)"), ""));
  CHECK(empty.shape == std::vector<Index>{3, 0});
  CHECK(empty.data.empty());
}

TEST_CASE("read_npy: an integer is read exactly or refused, by element and value", "[core]") {
  const auto read = [](const std::string& descr, std::uint64_t bits) {
    return read_bytes(
               npy_bytes(1, npy_header(descr, false, "(1, 2)"), little(0, 8) + little(bits, 8)))
        .data[1];
  };
  const std::uint64_t edge = std::uint64_t{1} << 53U;
  const std::uint64_t top = std::uint64_t{1} << 63U;
  CHECK(read("<u8", edge) == 0x1p53);
  CHECK(read("<u8", edge + 2) == 0x1p53 + 2);
  CHECK(read("<i8", 0 - edge) == -0x1p53);
  CHECK(read("<i8", top) == -0x1p63);
  CHECK(read("<i8", top - 1024) == 0x1p63 - 1024);
  CHECK(read("<u8", 0 - std::uint64_t{2048}) == 0x1p64 - 2048);
  const std::string expected =
      "element (0, 1): expected an integer that a double holds exactly, found ";
  CHECK_THROWS_WITH(read("<u8", edge + 1), EndsWith(expected + "9007199254740993"));
  CHECK_THROWS_WITH(read("<i8", edge + 1), EndsWith(expected + "9007199254740993"));
  CHECK_THROWS_WITH(read("<i8", 0 - edge - 1), EndsWith(expected + "-9007199254740993"));
  CHECK_THROWS_WITH(read("<i8", top - 1), EndsWith(expected + "9223372036854775807"));
  CHECK_THROWS_WITH(read("<i8", top + 1), EndsWith(expected + "-9223372036854775807"));
  CHECK_THROWS_WITH(read("<u8", ~std::uint64_t{0}), EndsWith(expected + "18446744073709551615"));
}

TEST_CASE("read_npy: an element refused in Fortran order is named by its indices", "[core]") {
  CHECK_THROWS_WITH(
      read_bytes(npy_bytes(1, npy_header("|b1", true, "(2, 3)"), {"\0\0\0\2\0\0", 6})),
      EndsWith("element (1, 1): expected 0 or 1, found 2"));
}

TEST_CASE("read_npy: refuses a malformed file, saying what was expected and found", "[core]") {
  struct Case {
    std::string bytes;
    std::string message;
  };
  const auto header = [](const std::string& text) { return npy_bytes(1, text, "\x05"); };
  const auto dtype = [](const std::string& descr) {
    return npy_bytes(1, npy_header(descr, false, "(1,)"), "12345678");
  };
  const auto shape = [](const std::string& text) {
    return npy_bytes(1, npy_header("<f8", false, text), "12345678");
  };
  const std::string good = shape("(1,)");
  const auto& [bytes, message] = GENERATE_COPY(values<Case>({
      {"", "truncated: expected 8 bytes at byte 0, found 0"},
      {good.substr(0, 5), "truncated: expected 8 bytes at byte 0, found 5"},
      {good.substr(0, 9), "truncated: expected 2 bytes at byte 8, found 1"},
      {good.substr(0, 30), "byte 8: expected a header of at most 20 bytes"},
      {good.substr(0, good.size() - 1),
       "expected 8 bytes of data for shape (1,) of \"<f8\", found 7"},
      {good + "x", "expected 8 bytes of data for shape (1,) of \"<f8\", found 9"},
      {"PK\x03\x04 not an array", "byte 0: expected the magic string"},
      {npy_bytes(4, npy_header("<f8", false, "()"), ""),
       "expected format 1.0, 2.0 or 3.0, found 4.0"},
      {npy_bytes(2, std::string(70000, ' '), ""), "a header of at most 65535 bytes, found 70000"},
      {dtype("|O"), "found \"|O\", Python objects"},
      {dtype("<c16"), "found \"<c16\", complex numbers"},
      {dtype("|V8"), "found \"|V8\", structures"},
      {dtype("<U2"), "found \"<U2\", text"},
      {dtype("|S8"), "found \"|S8\", text"},
      {dtype("<M8[s]"), "found \"<M8[s]\", times"},
      {dtype("<f16"), "found \"<f16\""},
      {dtype("<i3"), "found \"<i3\""},
      {dtype("f8"), "found \"f8\""},
      {dtype(""), "found \"\""},
      {header("{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (1,), }"), "structured"},
      {header("{'descr': '|u1', 'fortran_order': False, 'descr': '|i1', 'shape': (1,)}"),
       "each of descr, fortran_order, shape once, found \"descr\""},
      {header("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}"),
       "shape once, found \"shape\""},
      {header("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'more': 1}"),
       "found \"more\""},
      {header("{'fortran_order': False, 'shape': (1,)}"), "expected the key descr, found none"},
      {header("{'descr': '|u1', 'shape': (1,)}"), "expected the key fortran_order, found none"},
      {header("{'descr': '|u1', 'fortran_order': False}"), "expected the key shape, found none"},
      {header("{'descr': '|u1', 'fortran_order': 0, 'shape': (1,)}"), "expected True or False"},
      {header("{'descr': '|u1', 'fortran_order': False 'shape': (1,)}"), "byte 50: expected }"},
      {header("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)"), "expected }, found \"\""},
      {header("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x"),
       "expected nothing after"},
      {header("{'descr': '|\\x751'}"), "expected a plain string"},
      {header("{'descr"), "expected a plain string"},
      {header("{descr: 1}"), "byte 11: expected a key, found \"descr: 1}\""},
      {header(""), "byte 10: expected {, found \"\""},
      {shape("(1)"), "expected ',', found \")"},
      {shape("[1]"), "expected (, found \"[1]"},
      {shape("(1 2)"), "expected ',' or ')', found \"2)"},
      {shape("(,)"), "expected a size of at least 0"},
      {shape("(-1, -1)"), "expected a size of at least 0 and below 2^63, found \"-1, -1)"},
      {shape("(01,)"), "expected a size of at least 0"},
      {shape("(1.0,)"), "expected ',' or ')'"},
      {shape("(9223372036854775808,)"), "expected a size of at least 0 and below 2^63"},
      {shape("(9223372036854775807,)"), "fewer than 2^63 bytes, found (9223372036854775807,)"},
      {shape("(1152921504606846976,)"), "expected a shape of fewer than 2^63 bytes"},
      {shape("(4294967296, 4294967296)"), "expected a shape of fewer than 2^63 bytes"},
      {shape("(4294967296, 4294967297, 0)"), "expected a shape of fewer than 2^63 bytes"},
      {shape("(1152921504606846975,)"), "expected 9223372036854775800 bytes of data"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
       "this is a Git LFS pointer, fetch the real file"},
  }));
  CAPTURE(message);
  CHECK_THROWS_AS(read_bytes(bytes), std::runtime_error);
  CHECK_THROWS_WITH(read_bytes(bytes), Contains("a.npy: ") && Contains(message));
}

TEST_CASE("read_npy: names a file that is missing or no file", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "missing.npy";
  CHECK_THROWS_WITH(read_npy(path), path.string() + ": cannot read: No such file or directory");
  CHECK_THROWS_WITH(read_npy(folder / "."), Contains("expected a file, found a directory"));
}

TEST_CASE("write_npy: writes the bytes the format asks for, data at a multiple of 64", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.npy";
  write_npy(path, {.shape = {2, 1}, .data = {1.0, -2.0}});
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }";
  header.resize(128 - 10 - 1, ' ');
  CHECK(get_bytes(path) ==
        npy_bytes(1, header + "\n", from_hex("000000000000f03f00000000000000c0")));
}

TEST_CASE("write_npy: what it writes is read back bit for bit", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.npy";
  const auto shape = GENERATE(std::vector<Index>{}, std::vector<Index>{5}, std::vector<Index>{0},
                              std::vector<Index>{7, 3}, std::vector<Index>{2, 0, 4},
                              std::vector<Index>(32, 1), std::vector<Index>{3, 1, 2, 5});
  Index count = 1;
  for (const Index extent : shape) {
    count *= extent;
  }
  Array array{.shape = shape, .data = Values(static_cast<std::size_t>(count))};
  for (std::size_t k = 0; k < array.data.size(); ++k) {
    array.data[k] = k % 7 == 3 ? -std::numeric_limits<double>::infinity()
                               : std::exp(static_cast<double>(k)) * 0x1p-1040;
  }
  write_npy(path, array);
  CHECK(get_bytes(path).find('\n') % 64 == 63);
  const Array back = read_npy(path);
  CHECK(back.shape == array.shape);
  CHECK(back.data == array.data);
  CHECK(back.origin == path.string());
  CHECK(folder.count() == 1);
}

TEST_CASE("write_npy: text and truth values take a byte an element", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.npy";
  Array array{.shape = {3}, .data = {0, 1, 255}, .written_as = ElementType::uint8};
  write_npy(path, array);
  const std::string bytes = get_bytes(path);
  CHECK(bytes.size() % 64 == 3);
  CHECK_THAT(bytes, Catch::Contains("'descr': '|u1'"));
  CHECK(read_npy(path).data == array.data);
  for (const double bad : {-1.0, 256.0, 0.5, std::numeric_limits<double>::quiet_NaN()}) {
    array.data[1] = bad;
    CHECK_THROWS_WITH(write_npy(path, array), Catch::Contains("whole numbers from 0 to 255"));
  }
  CHECK(get_bytes(path) == bytes);
}

TEST_CASE("write_npy: single precision takes four bytes an element, and never rounds", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.npy";
  const double inf = std::numeric_limits<double>::infinity();
  const double tiny = std::numeric_limits<float>::denorm_min();
  Array array{.shape = {5},
              .data = {0.5, -tiny, inf, -0.0, std::numeric_limits<float>::max()},
              .written_as = ElementType::float32};
  write_npy(path, array);
  const std::string bytes = get_bytes(path);
  CHECK(bytes.size() % 64 == 20);
  CHECK_THAT(bytes, Catch::Contains("'descr': '<f4'"));
  const Array back = read_npy(path);
  CHECK(back.data == array.data);
  CHECK(std::signbit(back.data[3]));
  for (const double bad : {0.1, tiny / 2.0, 1e300, -1e39}) {
    array.data[1] = bad;
    CHECK_THROWS_WITH(write_npy(path, array), Catch::Contains("numbers of single precision"));
  }
  CHECK(get_bytes(path) == bytes);
}

TEST_CASE("write_npy: refuses what it cannot write before it touches the disk", "[core]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(
      write_npy(folder / "a.npy", {.shape = {2, 2}, .data = {1, 2, 3}}),
      "write_npy: array must have as many elements as its shape says, got 3 for (2, 2)");
  CHECK_THROWS_AS(write_npy(folder / "a.npy", {.shape = std::vector<Index>(30000, 1), .data = {1}}),
                  std::invalid_argument);
  CHECK_THROWS_AS(write_npy(folder / "missing/a.npy", to_array(1.0)), WriteError);
  CHECK(folder.count() == 0);
}

}  // namespace
}  // namespace lipsa
