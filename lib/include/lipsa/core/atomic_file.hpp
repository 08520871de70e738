/// \file
/// Output files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string_view>

namespace lipsa {

/// The output cannot be written. The message names the path and what the system said. A type of
/// its own, so that a full disk is told from a malformed input.
class WriteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Makes `path` hold exactly `bytes`, replacing what was there, in one step: whoever reads the
/// path, also after a crash, finds the old content or the new, whole. A symbolic link is followed.
///
/// Writes a temporary file beside the target, forces it to the disk, and renames it. A process
/// that is killed meanwhile leaves the temporary behind, named .lipsa-PID-N.tmp.
///
/// \throws WriteError  the target exists and is no regular file, the folder is missing, the disk
///                     is full, …; then the old content stands and no temporary is left
///
/// \test tests/core/atomic_file_test.cpp
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace lipsa
