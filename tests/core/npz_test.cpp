#include "lipsa/core/npz.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

#include "array_bytes.hpp"
#include "files.hpp"
#include "lipsa/core/atomic_file.hpp"

namespace lipsa {
namespace {

using Catch::Contains;
using Values = std::vector<double>;

Npz read_bytes(std::string_view bytes) {
  const TemporaryFolder folder;
  put_bytes(folder / "w.npz", bytes);
  return read_npz(folder / "w.npz");
}

/// An array of bytes as a .npy file.
std::string array_of(const std::string& data) {
  return npy_bytes(1, npy_header("|u1", false, concat({"(", std::to_string(data.size()), ",)"})),
                   data);
}

ZipMember stored(const std::string& name, const std::string& data) {
  return {.name = name, .packed = array_of(data)};
}

ZipMember deflated(const std::string& name, const std::string& data) {
  return {.name = name,
          .packed = deflate_block(array_of(data)),
          .content = array_of(data),
          .method = 8};
}

TEST_CASE("read_npz: reads what numpy wrote compressed", "[core]") {
  const Npz arrays = read_bytes(numpy_npz());
  REQUIRE(arrays.size() == 2);
  CHECK(arrays.at("W_Q").shape == std::vector<Index>{2, 3});
  CHECK(arrays.at("W_Q").data == Values{0, 1, 2, 3, 4, 5});
  CHECK(arrays.at("n").data == Values{1, -2});
}

TEST_CASE("read_npz: reads stored and deflated members, with and without Zip64", "[core]") {
  const bool zip64 = GENERATE(false, true);
  const Npz arrays = read_bytes(zip_bytes(
      {stored("a.npy", "\x01\x02"), deflated("b.npy", "\x03"), stored("c.npy", "")}, zip64));
  REQUIRE(arrays.size() == 3);
  CHECK(arrays.at("a").data == Values{1, 2});
  CHECK(arrays.at("b").data == Values{3});
  CHECK(arrays.at("c").data.empty());
}

TEST_CASE("read_npz: an archive of nothing has no arrays", "[core]") {
  CHECK(read_bytes(zip_bytes({})).empty());
}

TEST_CASE("read_npz: an array knows the file and the member it is from", "[core]") {
  CHECK_THAT(read_bytes(numpy_npz()).at("n").origin, Catch::EndsWith("w.npz: member \"n.npy\""));
}

TEST_CASE("read_npz: refuses a bad archive, saying what was expected and found", "[core]") {
  struct Case {
    std::string bytes;
    std::string message;
  };
  const auto changed = [](ZipMember member, auto change) {
    change(member);
    return zip_bytes({member});
  };
  const ZipMember a = stored("a.npy", "\x01\x02");
  const ZipMember b = deflated("b.npy", "\x03\x04");
  const std::string archive = zip_bytes({a, b});
  // One name in two encodings: 0x84 is ä in code page 437, the default of zip.
  const ZipMember latin = stored("\x84.npy", "");
  ZipMember utf8 = stored("ä.npy", "");
  utf8.flags = 1U << 11U;
  // b lies inside the data of a: together they are more than the file holds.
  const ZipMember inner = stored("b.npy", std::string(1000, 'x'));
  const ZipMember outer = stored("a.npy", zip_record(inner, false, std::nullopt));
  ZipMember inside = inner;
  inside.at = 30 + outer.name.size() + array_of("").size() + 3;  // (1xxx,): three digits more

  const auto& [bytes, message] = GENERATE_COPY(values<Case>({
      {"", "expected a zip archive, found an empty file"},
      {array_of("\x01"), "expected a zip archive of .npy files, found: Not a zip archive"},
      {archive.substr(0, archive.size() - 30), "expected a zip archive of .npy files"},
      {archive.substr(40), "expected a zip archive of .npy files"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
       "this is a Git LFS pointer, fetch the real file"},
      {zip_bytes({a, b, a}), "two members of one name"},
      {zip_bytes({a, latin, utf8}), "two members of one name"},
      {zip_bytes({a, stored("notes.txt", "")}),
       "member \"notes.txt\": expected a name that ends in .npy"},
      {zip_bytes({stored("folder/", "")}), "member \"folder/\": expected a name that ends in .npy"},
      {changed(a, [](ZipMember& m) { m.flags = 1; }),
       "member \"a.npy\": expected plain data, found an encrypted member"},
      {changed(a, [](ZipMember& m) { m.method = 12; }), "found compression method 12"},
      {changed(a, [](ZipMember& m) { m.crc = 1; }), "member \"a.npy\": cannot unpack: CRC error"},
      {changed(b, [](ZipMember& m) { m.crc = 1; }), "member \"b.npy\": cannot unpack: CRC error"},
      {changed(b, [](ZipMember& m) { m.packed[0] = 7; }), "member \"b.npy\": cannot unpack"},
      {changed(a, [](ZipMember& m) { m.size = 1000; }),
       "expected a size that 70 packed bytes can have, found 1000"},
      {changed(b, [](ZipMember& m) { m.size = *m.size + 1; }), "member \"b.npy\": "},
      {changed(b, [](ZipMember& m) { m.size = 2000000; }), "packed bytes can have, found 2000000"},
      {zip_bytes({{.name = "a.npy", .packed = "text"}}),
       "member \"a.npy\": truncated: expected 8 bytes at byte 0, found 4"},
      {zip_bytes({{.name = "a.npy", .packed = array_of("12").append("3")}}),
       "member \"a.npy\": byte 68: expected 2 bytes of data for shape (2,) of \"|u1\", found 3"},
      {zip_bytes({outer, inside}), "packed bytes up to here"},
  }));
  CAPTURE(message);
  CHECK_THROWS_AS(read_bytes(bytes), std::runtime_error);
  CHECK_THROWS_WITH(read_bytes(bytes), Contains("w.npz: ") && Contains(message));
}

TEST_CASE("read_npz: a size between what is packed and what is unpacked is caught", "[core]") {
  // The directory says one byte more, or less, than the stream has; the header agrees with it.
  const int off = GENERATE(-1, 1);
  const std::string said = array_of(std::string(static_cast<std::size_t>(50 + off), 'x'));
  std::string content = said;
  content.resize(static_cast<std::size_t>(static_cast<int>(said.size()) - off), 'x');
  CHECK_THROWS_AS(read_bytes(zip_bytes({{.name = "a.npy",
                                         .packed = deflate_block(content),
                                         .content = content,
                                         .method = 8,
                                         .size = said.size()}})),
                  std::runtime_error);
}

TEST_CASE("read_npz: refuses to unpack more than 32 GiB, before it unpacks any", "[core]") {
  std::vector<ZipMember> members;
  for (int k = 0; k < 40; ++k) {  // each says 1 GiB, which a megabyte may
    ZipMember member = stored(concat({"m", std::to_string(k), ".npy"}), "");
    member.packed.resize(1100000);
    member.method = 8;
    member.crc = 0;
    member.size = std::uint64_t{1} << 30U;
    members.push_back(member);
  }
  CHECK_THROWS_WITH(
      read_bytes(zip_bytes(members)),
      Contains("member \"m32.npy\": expected at most 34359738368 unpacked bytes up to here"));
}

TEST_CASE("write_npz: what it writes is read back, twice the same bytes in any time zone",
          "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "w.npz";
  const Npz arrays{{"W_Q", {.shape = {2, 3}, .data = {1, 2, 3, 4, 5, 6}}},
                   {"heads", to_array(4.0)},
                   {"folder/ä", {.shape = {0, 3}}},
                   {"X", to_array(Matrix(Matrix::Constant(40, 50, 1.0 / 3.0)))}};
  write_npz(path, arrays);
  const std::string bytes = get_bytes(path);
  const Npz back = read_npz(path);
  REQUIRE(back.size() == arrays.size());
  for (const auto& [name, array] : arrays) {
    CAPTURE(name);
    CHECK(back.at(name).shape == array.shape);
    CHECK(back.at(name).data == array.data);
  }

  setenv("TZ", "Pacific/Auckland", 1);
  tzset();
  write_npz(path, back);
  unsetenv("TZ");
  tzset();
  CHECK(get_bytes(path) == bytes);
  CHECK(folder.count() == 1);
}

TEST_CASE("write_npz: refuses what it cannot write before it touches the disk", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "w.npz";
  CHECK_THROWS_AS(write_npz(path, {}), std::invalid_argument);
  CHECK_THROWS_WITH(
      write_npz(path, {{"a", {.shape = {2}, .data = {1}}}}),
      "write_npz: array must have as many elements as its shape says, got 1 for (2,)");
  const std::string name =
      GENERATE(std::string("a\xff"), std::string("a\0b", 3), std::string(70000, 'a'));
  CHECK_THROWS_WITH(write_npz(path, {{name, to_array(1.0)}}),
                    Contains("write_npz: name must be UTF-8"));
  CHECK_THROWS_AS(write_npz(folder / "missing/w.npz", {{"a", to_array(1.0)}}), WriteError);
  CHECK(folder.count() == 0);
}

}  // namespace
}  // namespace lipsa
