/// \file
/// How input files are opened and refused. Private to lib/.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace lipsa {

/// Throws std::runtime_error "origin: message", the message formatted.
template <class... Args>
[[noreturn]] void malformed(std::string_view origin, fmt::format_string<Args...> message,
                            Args&&... args) {
  throw std::runtime_error(
      fmt::format("{}: {}", origin, fmt::format(message, std::forward<Args>(args)...)));
}

struct InputFile {
  std::ifstream stream;
  std::uint64_t size;
};

/// Opens a file for reading.
/// \throws std::runtime_error  missing, not a regular file, or a Git LFS pointer (case E3)
InputFile open_input(const std::filesystem::path& path);

}  // namespace lipsa
