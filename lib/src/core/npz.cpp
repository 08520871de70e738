#include "lipsa/core/npz.hpp"

#include <zip.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "core/input_file.hpp"
#include "core/npy.hpp"
#include "lipsa/core/atomic_file.hpp"

namespace lipsa {
namespace {

constexpr std::string_view suffix = ".npy";
constexpr std::uint64_t deflate_limit = 1032;
constexpr std::uint64_t unpacked_limit = std::uint64_t{1} << 35U;
constexpr zip_uint16_t january_1980 = (1U << 5U) | 1U;  // year 0, month 1, day 1

struct Close {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* member) const { zip_fclose(member); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
template <class T>
using Handle = std::unique_ptr<T, Close>;

std::string text_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

std::string origin_of(const std::filesystem::path& path, const zip_stat_t& member) {
  return fmt::format("{}: member {:?}", path.string(), std::string_view(member.name));
}

void check_member(const std::string& origin, const zip_stat_t& member) {
  if (!std::string_view(member.name).ends_with(suffix)) {
    malformed(origin, "expected a name that ends in .npy");
  }
  if (member.encryption_method != ZIP_EM_NONE) {
    malformed(origin, "expected plain data, found an encrypted member");
  }
  const bool stored = member.comp_method == ZIP_CM_STORE;
  if (!stored && member.comp_method != ZIP_CM_DEFLATE) {
    malformed(origin, "expected a stored or deflated member, found compression method {}",
              member.comp_method);
  }
  if (stored ? member.size != member.comp_size : member.size / deflate_limit > member.comp_size) {
    malformed(origin, "expected a size that {} packed bytes can have, found {}", member.comp_size,
              member.size);
  }
}

/// What the archive says about its members, all of it checked before any is unpacked.
std::vector<zip_stat_t> list_members(const std::filesystem::path& path, zip_t* archive,
                                     std::uint64_t file_size) {
  std::vector<zip_stat_t> members(static_cast<std::size_t>(zip_get_num_entries(archive, 0)));
  std::uint64_t packed = 0;
  std::uint64_t unpacked = 0;
  for (std::size_t index = 0; index < members.size(); ++index) {
    zip_stat_t& member = members[index];
    if (zip_stat_index(archive, index, 0, &member) != 0) {
      malformed(path.string(), "member {}: {}", index, zip_strerror(archive));
    }
    const std::string origin = origin_of(path, member);
    check_member(origin, member);
    packed += member.comp_size;
    unpacked += member.size;
    if (packed > file_size) {
      malformed(origin, "expected at most the file's {} packed bytes up to here, found {}",
                file_size, packed);
    }
    if (unpacked > unpacked_limit) {
      malformed(origin, "expected at most {} unpacked bytes up to here, found {}", unpacked_limit,
                unpacked);
    }
  }
  return members;
}

}  // namespace

Npz read_npz(const std::filesystem::path& path) {
  const std::uint64_t file_size = open_input(path).size;
  if (file_size == 0) {  // to libzip an archive of nothing
    malformed(path.string(), "expected a zip archive, found an empty file");
  }
  int code = ZIP_ER_OK;
  const Handle<zip_t> archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (!archive) {
    malformed(path.string(), "expected a zip archive of .npy files, found: {}",
              code == ZIP_ER_EXISTS ? "two members of one name" : text_of(code));
  }

  Npz arrays;
  for (const zip_stat_t& member : list_members(path, archive.get(), file_size)) {
    const std::string origin = origin_of(path, member);
    std::string name = member.name;
    name.resize(name.size() - suffix.size());
    if (arrays.contains(name)) {
      malformed(origin, "expected a name of its own, found two members of one name");
    }
    const Handle<zip_file_t> file(zip_fopen_index(archive.get(), member.index, 0));
    if (!file) {
      malformed(origin, "cannot read: {}", zip_strerror(archive.get()));
    }
    const auto read = [&](char* bytes, std::size_t wanted) {
      const zip_int64_t got = zip_fread(file.get(), bytes, wanted);
      if (got < 0) {
        malformed(origin, "cannot unpack: {}", zip_file_strerror(file.get()));
      }
      return static_cast<std::size_t>(got);
    };
    arrays.emplace(std::move(name), decode_npy({origin, member.size, read}));
  }
  return arrays;
}

void write_npz(const std::filesystem::path& path, const Npz& arrays) {
  require(!arrays.empty(), "write_npz: arrays must not be empty, got none");
  const auto check = [&](bool holds, zip_error_t* error) {
    if (!holds) {
      throw WriteError(
          fmt::format("{}: cannot pack: {}", path.string(), zip_error_strerror(error)));
    }
  };
  zip_error_t error;
  zip_error_init(&error);
  const Handle<zip_source_t> packed(zip_source_buffer_create(nullptr, 0, 0, &error));
  check(packed != nullptr, &error);
  Handle<zip_t> archive(zip_open_from_source(packed.get(), ZIP_TRUNCATE, &error));
  check(archive != nullptr, &error);
  zip_source_keep(packed.get());  // the archive owns one reference, `packed` the other

  std::vector<std::string> contents;  // the archive points into them until it is closed
  contents.reserve(arrays.size());
  for (const auto& [name, array] : arrays) {
    const std::string& bytes = contents.emplace_back(encode_npy("write_npz", array));
    Handle<zip_source_t> source(zip_source_buffer(archive.get(), bytes.data(), bytes.size(), 0));
    check(source != nullptr, zip_get_error(archive.get()));
    const std::string member = name + std::string(suffix);
    // libzip would cut a name at its NUL, or to its length modulo 2^16.
    const bool fits = name.find('\0') == std::string::npos && member.size() <= 65535;
    const zip_int64_t added =
        fits ? zip_file_add(archive.get(), member.c_str(), source.get(), ZIP_FL_ENC_UTF_8) : -1;
    require(added >= 0, "write_npz: name must be UTF-8 that a zip archive can hold, got {:?}",
            name);
    static_cast<void>(source.release());  // now the archive's
    const auto index = static_cast<std::uint64_t>(added);
    check(zip_set_file_compression(archive.get(), index, ZIP_CM_STORE, 0) == 0 &&
              zip_file_set_dostime(archive.get(), index, 0, january_1980, 0) == 0,
          zip_get_error(archive.get()));
  }
  check(zip_close(archive.get()) == 0, zip_get_error(archive.get()));
  static_cast<void>(archive.release());  // closed, and gone

  zip_stat_t stat;
  check(zip_source_stat(packed.get(), &stat) == 0 && zip_source_open(packed.get()) == 0,
        zip_source_error(packed.get()));
  std::string bytes(stat.size, '\0');
  const zip_int64_t got = zip_source_read(packed.get(), bytes.data(), bytes.size());
  zip_source_close(packed.get());
  check(got == static_cast<zip_int64_t>(bytes.size()), zip_source_error(packed.get()));
  write_file_atomically(path, bytes);
}

}  // namespace lipsa
