/// \file
/// The program, run in a folder of its own.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "files.hpp"

namespace lipsa {

struct Outcome {
  int code = -1;
  std::string out{};
  std::string err{};
};

class CliTest {
 protected:
  /// Runs `lipsa` + arguments in the folder of the test.
  Outcome lipsa(const std::string& arguments, const std::string& before = "") {
    const std::string command = "cd '" + (folder / ".").string() + "' || exit 99; { " + before +
                                " '" LIPSA_PROGRAM "' " + arguments +
                                "; } >out.txt 2>err.txt </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, get_bytes(folder / "out.txt"),
            get_bytes(folder / "err.txt")};
  }

  TemporaryFolder folder;
};

}  // namespace lipsa
