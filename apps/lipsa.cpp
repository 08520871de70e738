#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "commands.hpp"
#include "lipsa/core/version.hpp"

namespace {

using lipsa::cli::Command;

const std::array commands{&lipsa::cli::bound_sweep,    &lipsa::cli::bounds,
                          &lipsa::cli::counterexample, &lipsa::cli::falsify,
                          &lipsa::cli::invert,         &lipsa::cli::lm,
                          &lipsa::cli::paper_tables,   &lipsa::cli::verify};

int help() {
  fmt::print(
      "lipsa: Lipschitz analysis and verification of self-attention\n\n"
      "Usage: lipsa COMMAND [options]\n\nCommands\n");
  for (const Command* command : commands) {
    fmt::print("  {:<14} {}\n", command->name, command->summary);
  }
  fmt::print(
      "\n'lipsa COMMAND --help' shows its options. Exit codes: 0 done, 1 claim refuted, 2 wrong\n"
      "command line, 3 bad input file, 4 some result did not settle, 5 output not written.\n");
  return lipsa::cli::success;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    help();
    return lipsa::cli::usage;
  }
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h" || name == "help") {
    return help();
  }
  if (name == "--version") {
    const auto commit = lipsa::commit();
    fmt::print("lipsa {}{}\n", lipsa::version(),
               commit.empty() ? "" : fmt::format(" ({})", commit));
    return lipsa::cli::success;
  }
  for (const Command* command : commands) {
    if (command->name == name) {
      return lipsa::cli::guarded(
          name, [&] { return command->run(lipsa::cli::Arguments(arguments).subspan(1)); });
    }
  }
  fmt::print(stderr, "lipsa: there is no command '{}'\nTry 'lipsa --help'.\n", name);
  return lipsa::cli::usage;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a write that fails
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const int code = lipsa::cli::guarded("", [&] { return run(arguments); });
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "lipsa: standard output cannot be written\n");
    return lipsa::cli::not_written;
  }
  return code;
}
