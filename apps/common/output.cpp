#include "common/output.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <ctime>
#include <thread>

#include "lipsa/core/atomic_file.hpp"
#include "lipsa/core/version.hpp"
#include "lipsa/experiment/table.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX asks for it

namespace lipsa::cli {

namespace fs = std::filesystem;

namespace {

/// Runs gnuplot on the script in its folder; false when there is no gnuplot or it fails.
bool run_gnuplot(const fs::path& folder, const std::string& script) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::string program = "gnuplot";
  std::string argument = script;
  const std::array<char*, 3> arguments{program.data(), argument.data(), nullptr};
  pid_t process = 0;
  const int error =
      posix_spawnp(&process, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return error == 0 && waitpid(process, &status, 0) == process && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace

void prepare_folder(const fs::path& folder, const std::initializer_list<std::string_view>& names) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw WriteError(fmt::format("{}: {}", folder.string(), error.message()));
  }
  for (const std::string_view name : names) {
    const fs::file_status status = fs::status(folder / name, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      throw WriteError(fmt::format("{}: is no regular file", (folder / name).string()));
    }
  }
}

std::string draw(const fs::path& folder, const std::string& stem, const std::string& script,
                 bool quiet) {
  for (const char* kind : {".svg", ".png", ".gp"}) {  // never those of other rows
    std::error_code ignored;
    fs::remove(folder / (stem + kind), ignored);
  }
  if (script.empty()) {
    return "";
  }
  const std::string name = stem + ".gp";
  write_file_atomically(folder / name, script);
  if (!run_gnuplot(folder, name)) {
    note(quiet, fmt::format("No picture: gnuplot is missing or failed. The script is {}.",
                            (folder / name).string()));
    return ", " + name;
  }
  return fmt::format(", {0}.svg, {0}.png, {0}.gp", stem);
}

std::string meta_json(std::string_view command, Arguments arguments, double seconds,
                      Index threads) {
  std::string line = fmt::format("lipsa {}", command);
  for (const std::string& argument : arguments) {
    line += " " + argument;
  }
  const Table table{
      {"version", "commit", "compiler", "command_line", "date", "seconds", "threads"},
      {{std::string(version()), std::string(commit()), std::string(compiler()), line,
        fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))), seconds,
        static_cast<std::int64_t>(threads > 0 ? threads : std::thread::hardware_concurrency())}}};
  return format_table(table, TableFormat::json);
}

}  // namespace lipsa::cli
