#include "core/input_file.hpp"

#include <cerrno>
#include <string>
#include <system_error>

namespace lipsa {

InputFile open_input(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error) {
    malformed(name, "cannot read: {}", error.message());
  }
  if (!std::filesystem::is_regular_file(status)) {
    malformed(name, "expected a file, found a directory or a device");
  }
  InputFile file{std::ifstream(path, std::ios::binary), std::filesystem::file_size(path)};
  if (!file.stream) {
    malformed(name, "cannot read: {}", std::generic_category().message(errno));
  }
  constexpr std::string_view pointer = "version https://git-lfs.github.com/spec/";
  std::string start(pointer.size(), '\0');
  file.stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (start == pointer) {
    malformed(name, "this is a Git LFS pointer, fetch the real file (git lfs pull)");
  }
  file.stream.clear();
  file.stream.seekg(0);
  return file;
}

}  // namespace lipsa
