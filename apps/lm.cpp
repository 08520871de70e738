#include <fmt/format.h>

#include <array>
#include <string>

#include "commands.hpp"
#include "lipsa/core/memory.hpp"

namespace lipsa::cli {
namespace {

const std::array tasks{&lm_train, &lm_eval, &lm_sample, &lm_lipschitz, &lm_depth_study};

int run(Arguments arguments) {
  const std::string name = arguments.empty() ? "" : arguments.front();
  for (const Command* task : tasks) {
    if (task->name == "lm " + name) {
      keep_freed_memory();
      return guarded(task->name, [&] { return task->run(arguments.subspan(1)); });
    }
  }
  if (!name.empty() && name != "--help" && name != "-h") {
    throw std::invalid_argument(fmt::format("there is no task '{}'", name));
  }
  fmt::print("lipsa lm: {}\n\nUsage: lipsa lm TASK [options]\n\nTasks\n", lm.summary);
  for (const Command* task : tasks) {
    fmt::print("  {:<14} {}\n", task->name.substr(3), task->summary);
  }
  fmt::print("\n'lipsa lm TASK --help' shows its options.\n");
  return name.empty() ? usage : success;
}

}  // namespace

const Command lm{"lm", "Language models of characters: training, text, Lipschitz constants.", &run};

}  // namespace lipsa::cli
