/// \file
/// The presets of apps/presets, built into the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lipsa::cli {

struct Preset {
  std::string_view name;
  /// Lines "option = value", without the hyphens; # begins a comment. The first line is "# lipsa "
  /// and the command it is for.
  std::string_view text;
};

std::span<const Preset> presets();

/// Those for a command.
std::vector<Preset> presets_of(std::string_view command);

/// Their names, as "a, b, c".
std::string preset_names(std::string_view command);

}  // namespace lipsa::cli
