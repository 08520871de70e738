/// \file
/// What commands that fill a folder do alike: the folder, pictures, the record of a run.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "common/cli.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa::cli {

/// Makes the folder, and refuses names in it that are taken by something else than files.
/// \throws WriteError
void prepare_folder(const std::filesystem::path& folder,
                    const std::initializer_list<std::string_view>& names);

/// Writes STEM.gp into the folder and lets gnuplot draw STEM.svg and STEM.png there; pictures of
/// before are removed. An empty script draws nothing.
///
/// \return the names of the files written, each after ", "
/// \throws WriteError
std::string draw(const std::filesystem::path& folder, const std::string& stem,
                 const std::string& script, bool quiet);

/// Who computed this, when, how long and by what command line, as JSON.
/// \param threads  0: all
std::string meta_json(std::string_view command, Arguments arguments, double seconds, Index threads);

}  // namespace lipsa::cli
