/// \file
/// The .npy format apart from where its bytes are. Private to lib/.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "lipsa/core/array_file.hpp"

namespace lipsa {

struct ByteSource {
  std::string origin;  ///< for messages
  std::uint64_t size;  ///< bytes it says it has
  /// Reads up to so many bytes, fewer only at the end; throws std::runtime_error.
  std::function<std::size_t(char*, std::size_t)> read;
};

/// See `read_npy`. Reads `source` to its end.
Array decode_npy(const ByteSource& source);

/// See `write_npy`. `function` is the caller's name, for the message.
std::string encode_npy(std::string_view function, const Array& array);

}  // namespace lipsa
