/// \file
/// The presets of apps/presets, built into the program.
#pragma once

#include <span>
#include <string_view>

namespace lipsa::cli {

struct Preset {
  std::string_view name;
  std::string_view text;  ///< lines "option = value", without the hyphens; # begins a comment
};

std::span<const Preset> presets();

}  // namespace lipsa::cli
