#include "lipsa/core/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>

namespace lipsa {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view reason) {
  throw WriteError(fmt::format("{}: cannot write: {}", path.string(), reason));
}

std::error_code last_error() {
  return {errno, std::generic_category()};
}

/// The file that a write to `path` changes. Anything but a file is refused, for the rename would
/// put a file in the place of the device or the pipe.
fs::path target_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_regular_file(status)) {
    fs::path target = fs::canonical(path, error);
    if (error) {
      fail(path, error.message());
    }
    return target;
  }
  if (status.type() != fs::file_type::not_found) {
    fail(path, fs::status_known(status) ? "not a regular file" : error.message());
  }
  if (fs::is_symlink(fs::symlink_status(path, error))) {
    fail(path, "a symbolic link to nothing");
  }
  return path;
}

bool write_and_sync(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return fsync(descriptor) == 0;
}

}  // namespace

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  static std::atomic<unsigned> serial = 0;
  const fs::path target = target_of(path);
  fs::path temporary;
  int descriptor = -1;
  do {  // a name may be left over from a killed process that had our number
    temporary = target.parent_path() / fmt::format(".lipsa-{}-{}.tmp", getpid(), serial++);
    descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  if (descriptor < 0) {
    fail(path, last_error().message());
  }

  // Nothing throws before the temporary is gone, one way or the other.
  std::error_code error;
  if (!write_and_sync(descriptor, bytes)) {
    error = last_error();
  }
  if (close(descriptor) != 0 && !error) {
    error = last_error();
  }
  if (!error) {
    fs::rename(temporary, target, error);
  }
  if (error) {
    unlink(temporary.c_str());
    fail(path, error.message());
  }
}

}  // namespace lipsa
