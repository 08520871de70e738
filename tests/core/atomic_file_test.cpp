#include "lipsa/core/atomic_file.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "files.hpp"

namespace lipsa {
namespace {

/// While it lives, no file of this process can grow beyond `bytes`: a disk that is full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    static_cast<void>(std::signal(SIGXFSZ, handler_));
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  FileSizeLimit(FileSizeLimit&&) = delete;
  FileSizeLimit& operator=(FileSizeLimit&&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_CASE("write_file_atomically: creates, and replaces longer by shorter", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "out.csv";
  const std::string binary("a\0\r\n\xff", 5);
  for (const std::string& bytes : {std::string(100000, 'x'), binary, std::string()}) {
    write_file_atomically(path, bytes);
    CHECK(get_bytes(path) == bytes);
  }
  CHECK(folder.count() == 1);
}

TEST_CASE("write_file_atomically: when the disk is full the old file stands, alone", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "out.csv";
  write_file_atomically(path, "old");
  std::string message;
  {
    const FileSizeLimit limit(1000);
    try {
      write_file_atomically(path, std::string(100000, 'x'));
    } catch (const WriteError& error) {
      message = error.what();
    }
  }
  CHECK(message == path.string() + ": cannot write: File too large");
  CHECK(get_bytes(path) == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("write_file_atomically: follows a link and leaves it a link", "[core]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  put_bytes(folder / "real/out.csv", "old");
  std::filesystem::create_symlink("real/out.csv", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(get_bytes(folder / "real/out.csv") == "new");

  std::filesystem::create_symlink("nowhere", folder / "dangling");
  CHECK_THROWS_AS(write_file_atomically(folder / "dangling", "new"), WriteError);
}

TEST_CASE("write_file_atomically: puts no file in the place of a device or a folder", "[core]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(write_file_atomically("/dev/full", "x"),
                    "/dev/full: cannot write: not a regular file");
  CHECK_THROWS_AS(write_file_atomically("/dev/stdout", "x"), WriteError);
  CHECK_THROWS_AS(write_file_atomically(folder / ".", "x"), WriteError);
  CHECK(folder.count() == 0);
}

TEST_CASE("write_file_atomically: says which folder is missing", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "missing/out.csv";
  CHECK_THROWS_WITH(write_file_atomically(path, "x"),
                    path.string() + ": cannot write: No such file or directory");
  put_bytes(folder / "file", "x");
  CHECK_THROWS_AS(write_file_atomically(folder / "file/out.csv", "x"), WriteError);
}

}  // namespace
}  // namespace lipsa
