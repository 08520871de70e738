/// \file
/// The weights of a layer as members of a .npz file. Private to lib/.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/npz.hpp"

namespace lipsa {

/// Throws std::runtime_error "path: message", the message formatted.
template <class... Args>
[[noreturn]] void refuse(const std::filesystem::path& path, fmt::format_string<Args...> message,
                         Args&&... args) {
  throw std::runtime_error(
      fmt::format("{}: {}", path.string(), fmt::format(message, std::forward<Args>(args)...)));
}

/// The members of one file, none unknown, all finite.
class Members {
 public:
  /// \param beside  members the file may have besides those of a layer
  /// \throws std::runtime_error  what read_npz refuses, an unknown member, NaN or an infinity
  Members(const std::filesystem::path& path, const std::vector<std::string_view>& beside);

  bool has(std::string_view name) const { return arrays_.contains(name); }
  const Array& required(std::string_view name) const;
  Matrix matrix(std::string_view name) const { return to_matrix(required(name)); }

  /// Whether it has a member of a layer.
  bool has_layer() const;

  /// The layer, valid. As l2 the keys are left out when the file has them.
  /// \throws std::runtime_error  a member is missing or of a shape that does not fit the others
  MultiHead layer(AttentionKind kind) const;

  const Npz& arrays() const { return arrays_; }

 private:
  std::filesystem::path path_;
  Npz arrays_;
};

/// The members from which Members::layer makes this layer again, bit for bit.
Npz layer_members(const MultiHead& layer);

}  // namespace lipsa
