/// \file
/// .npy, .npz and .safetensors files made byte by byte from their specifications, well-formed or
/// not.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lipsa {

inline std::string concat(std::initializer_list<std::string_view> parts) {
  std::string whole;
  for (const std::string_view part : parts) {
    whole += part;
  }
  return whole;
}

/// The `width` low bytes of `value`, little-endian.
inline std::string little(std::uint64_t value, unsigned width) {
  std::string bytes;
  for (; width > 0; --width, value >>= 8U) {
    bytes += static_cast<char>(value & 255U);
  }
  return bytes;
}

inline std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t k = 0; k + 1 < digits.size(); k += 2) {
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(k, 2)), nullptr, 16));
  }
  return bytes;
}

/// A .npy file of version `major`.0 with this header text.
inline std::string npy_bytes(char major, std::string_view header, std::string_view data) {
  return concat({"\x93NUMPY", little(static_cast<unsigned char>(major), 2),
                 little(header.size(), major == 1 ? 2 : 4), header, data});
}

/// The header text that numpy writes, blanks for alignment apart.
inline std::string npy_header(const std::string& descr, bool fortran_order,
                              const std::string& shape) {
  return concat({"{'descr': '", descr, "', 'fortran_order': ", fortran_order ? "True" : "False",
                 ", 'shape': ", shape, ", }\n"});
}

/// \source PKWARE, .ZIP File Format Specification 6.3, section 4.4.7
inline std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
    }
  }
  return ~crc;
}

/// Deflated, as one block of type 0 that holds the bytes as they are. Fewer than 2^16 bytes.
inline std::string deflate_block(std::string_view bytes) {
  return concat({"\x01", little(bytes.size(), 2), little(~bytes.size(), 2), bytes});
}

/// A .safetensors file with this header text.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return concat({little(header.size(), 8), header, data});
}

struct ZipMember {
  std::string name{};
  std::string packed{};                  ///< the bytes in the archive
  std::optional<std::string> content{};  ///< what they unpack to; by default themselves
  unsigned method = 0;                   ///< 0 stored, 8 deflated
  unsigned flags = 0;                    ///< 1 encrypted
  std::optional<std::uint64_t> size{};   ///< said of `content`, when not its own
  std::optional<std::uint32_t> crc{};    ///< said of `content`, when not its own
  /// Offset of the local header that the directory names; by default a new one is appended.
  std::optional<std::uint64_t> at{};
};

/// The local header and the bytes of a member, or its entry in the directory.
inline std::string zip_record(const ZipMember& member, bool zip64,
                              std::optional<std::uint64_t> directory_offset) {
  const std::string& content = member.content ? *member.content : member.packed;
  const std::uint64_t size = member.size.value_or(content.size());
  const auto here = [&](std::uint64_t value) { return zip64 ? 0xffffffffU : value; };
  const std::string offset = directory_offset ? little(*directory_offset, 8) : "";
  std::string extra;
  if (zip64) {
    extra = concat({little(1, 2), little(16 + offset.size(), 2), little(size, 8),
                    little(member.packed.size(), 8), offset});
  }
  const std::string common =
      concat({little(45, 2), little(member.flags, 2), little(member.method, 2), little(0, 2),
              little(33, 2), little(member.crc.value_or(crc32(content)), 4),
              little(here(member.packed.size()), 4), little(here(size), 4),
              little(member.name.size(), 2), little(extra.size(), 2)});
  if (directory_offset) {
    return concat({"PK\x01\x02", little(45, 2), common, little(0, 10),
                   little(here(*directory_offset), 4), member.name, extra});
  }
  return concat({"PK\x03\x04", common, member.name, extra, member.packed});
}

inline std::string zip_bytes(const std::vector<ZipMember>& members, bool zip64 = false) {
  std::string bytes;
  std::string directory;
  for (const ZipMember& member : members) {
    directory += zip_record(member, zip64, member.at.value_or(bytes.size()));
    bytes += member.at ? "" : zip_record(member, zip64, std::nullopt);
  }
  const std::uint64_t start = bytes.size();
  const std::uint64_t end = start + directory.size();
  const std::uint64_t count = members.size();
  bytes += directory;
  if (zip64) {
    bytes += concat({"PK\x06\x06", little(44, 8), little(45, 2), little(45, 2), little(0, 8),
                     little(count, 8), little(count, 8), little(directory.size(), 8),
                     little(start, 8), "PK\x06\x07", little(0, 4), little(end, 8), little(1, 4)});
  }
  const auto here = [&](std::uint64_t value) { return zip64 ? 0xffffffffU : value; };
  return concat({bytes, "PK\x05\x06", little(0, 4), little(here(count), 2), little(here(count), 2),
                 little(here(directory.size()), 4), little(here(start), 4), little(0, 2)});
}

/// What numpy 1.24.2 wrote for
///     np.savez_compressed(file, W_Q=np.arange(6.).reshape(2, 3), n=np.array([1, -2], '>i2'))
inline std::string numpy_npz() {
  return from_hex(
      "504b030414000000080000002100f0cd3b4657000000b000000007001400575f512e6e707901001000b00000"
      "000000000057000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a1aea3a09e965f"
      "54529498179f5f94920a12774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e0614f0c11eca"
      "7080501c505a004a8b380000504b03041400000008000000210039d8e08e4800000084000000050014006e2e"
      "6e707901001000840000000000000048000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a0"
      "6e9769a4aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a463a9a3a0ab50a14"
      "002e06c6ffff00504b0102140314000000080000002100f0cd3b4657000000b0000000070000000000000000"
      "000000800100000000575f512e6e7079504b010214031400000008000000210039d8e08e4800000084000000"
      "0500000000000000000000008001900000006e2e6e7079504b05060000000002000200680000000f01000000"
      "00");
}

}  // namespace lipsa
