/// Mutates well-formed .npy, .npz and .safetensors files. Whatever the bytes, reading ends with a
/// consistent array or std::runtime_error and never claims memory out of proportion to the file; an
/// archive that is still accepted holds the arrays it held. LIPSA_FUZZ_FILES sets the number of
/// files.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "array_bytes.hpp"
#include "files.hpp"
#include "lipsa/core/npy.hpp"
#include "lipsa/core/npz.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/core/safetensors.hpp"

namespace {
std::atomic<std::size_t> largest_claim = 0;
}

void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  largest_claim = std::max(largest_claim.load(), size);
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  return memory != nullptr ? memory : throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace lipsa {
namespace {

std::string mutate(std::string bytes, Rng& rng) {
  const auto below = [&](std::size_t count) {
    return static_cast<std::size_t>(rng.next() % count);
  };
  for (std::size_t left = 1 + below(4); left > 0 && !bytes.empty(); --left) {
    const std::size_t at = below(bytes.size());
    const std::size_t length = 1 + below(std::min<std::size_t>(bytes.size() - at, 16));
    switch (below(7)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.replace(at, length, length, below(2) == 0 ? '\xff' : '\0');
        break;
      case 3:
        bytes[at] = "0123456789()[]{},:'<>|-L \n"[below(26)];
        break;
      case 4:
        bytes.erase(at, length);
        break;
      case 5:
        bytes.insert(below(bytes.size()), bytes.substr(at, length));
        break;
      default:
        bytes.resize(below(8) == 0 ? at : bytes.size());
        break;
    }
  }
  return bytes;
}

bool same(const Array& a, const Array& b) {
  return a.shape == b.shape && a.data.size() == b.data.size() &&
         (a.data.empty() ||
          std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(double)) == 0);
}

void check_consistent(const Array& array) {
  Index count = 1;
  for (const Index extent : array.shape) {
    count *= extent;
  }
  REQUIRE(count == static_cast<Index>(array.data.size()));
}

/// Calls `read` on mutants of each of `files`; it throws for those it refuses.
template <class Read>
void fuzz(const std::vector<std::string>& files, Read read) {
  const char* const wanted = std::getenv("LIPSA_FUZZ_FILES");
  const int count = wanted != nullptr ? std::atoi(wanted) : 3000;
  const TemporaryFolder folder;
  const auto path = folder / "mutant";
  int accepted = 0;
  int refused = 0;
  for (std::size_t which = 0; which < files.size(); ++which) {
    put_bytes(path, files[which]);
    REQUIRE_NOTHROW(read(path, which));
    for (int restart = 0; restart < count; ++restart) {
      Rng rng(1, which, static_cast<std::uint64_t>(restart));
      const std::string mutant = mutate(files[which], rng);
      std::filesystem::remove(path);  // some systems write a truncated file to the disk at once
      put_bytes(path, mutant);
      largest_claim = 0;
      try {
        read(path, which);
        ++accepted;
      } catch (const std::runtime_error&) {
        ++refused;
      }
      CAPTURE(which, restart);
      // Deflate at most 1032 times, a byte at most eight; 64 KiB buffers.
      REQUIRE(largest_claim <= std::size_t{8} * 1032 * mutant.size() + 100000);
    }
  }
  CHECK(accepted > 0);
  CHECK(refused > accepted);
}

std::string npy(char version, const std::string& descr, bool fortran, const std::string& shape,
                std::size_t bytes) {
  return npy_bytes(version, npy_header(descr, fortran, shape), std::string(bytes, '\x01'));
}

TEST_CASE("read_npy: survives mutated files", "[fuzz]") {
  fuzz({npy(1, "<f8", false, "(3, 4)", 96), npy(2, ">i4", true, "(2, 3, 1)", 24),
        npy(3, "|b1", false, "()", 1), npy(1, "<u8", true, "(0, 7)", 0)},
       [](const auto& path, std::size_t /*which*/) { check_consistent(read_npy(path)); });
}

TEST_CASE("read_npz: survives mutated files, and never returns a changed array", "[fuzz]") {
  const std::string x = npy(1, ">f4", true, "(3, 2)", 24);
  const std::string y = npy(1, "|i1", false, "(5,)", 5);
  const std::vector<ZipMember> members{
      {.name = "x.npy", .packed = x},
      {.name = "y.npy", .packed = deflate_block(y), .content = y, .method = 8}};
  const std::vector<std::string> files{numpy_npz(), zip_bytes(members), zip_bytes(members, true)};

  const TemporaryFolder folder;
  std::vector<Npz> originals;
  for (const std::string& bytes : files) {
    put_bytes(folder / "original", bytes);
    originals.push_back(read_npz(folder / "original"));
  }
  fuzz(files, [&](const auto& path, std::size_t which) {
    for (const auto& [name, array] : read_npz(path)) {
      check_consistent(array);
      CAPTURE(which, name);
      const Npz& original = originals[which];
      REQUIRE(std::any_of(
          original.begin(), original.end(), [&, &key = name, &value = array](const auto& known) {
            return same(known.second, value) && (known.first == key || !original.contains(key));
          }));
    }
  });
}

TEST_CASE("read_safetensors: survives mutated files, and can write what it read", "[fuzz]") {
  const auto entry = [](const std::string& name, const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return concat({"\"", name, R"(":{"dtype":")", dtype, R"(","shape":)", shape,
                   R"(,"data_offsets":)", offsets, "}"});
  };
  const std::string data(24, '\x01');
  const std::vector<std::string> files{
      safetensors_bytes(concat({"{", entry("a", "F64", "[1,2]", "[0,16]"), ",",
                                entry("b", "F32", "[]", "[16,20]"), ",",
                                entry("c", "BOOL", "[4]", "[20,24]"), "}  "}),
                        data),
      safetensors_bytes(concat({R"({"__metadata__":{"step":"12","\u00e4":"x"},)",
                                entry("n", "I32", "[6]", "[0,24]"), ",",
                                entry("e", "BF16", "[0,7]", "[24,24]"), "}"}),
                        data),
      safetensors_bytes(concat({"{", entry("h", "F16", "[2,3,2]", "[0,24]"), "}"}), data)};
  const TemporaryFolder folder;
  int copies = 0;
  fuzz(files, [&](const auto& path, std::size_t /*which*/) {
    const Safetensors file = read_safetensors(path);
    for (const auto& [name, array] : file.tensors) {
      check_consistent(array);
    }
    if (++copies > 300) {
      return;  // a copy waits for the disk
    }
    const auto copy = folder / "copy";
    write_safetensors(copy, file);
    const Safetensors back = read_safetensors(copy);
    REQUIRE(back.metadata == file.metadata);
    REQUIRE(back.tensors.size() == file.tensors.size());
    for (const auto& [name, array] : file.tensors) {
      REQUIRE(same(back.tensors.at(name), array));
    }
  });
}

}  // namespace
}  // namespace lipsa
