#include "common/cli.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <new>
#include <sstream>
#include <system_error>

#include "common/presets.hpp"
#include "lipsa/core/atomic_file.hpp"

namespace lipsa::cli {

namespace po = boost::program_options;

int guarded(std::string_view command, const std::function<int()>& body) {
  const auto fail = [&](std::string_view what, ExitCode code) {
    fmt::print(stderr, "lipsa {}: {}\n", command, what);
    if (code == usage) {
      fmt::print(stderr, "Try 'lipsa {} --help'.\n", command);
    }
    return static_cast<int>(code);
  };
  try {
    return body();
  } catch (const po::error& e) {
    return fail(e.what(), usage);
  } catch (const std::invalid_argument& e) {
    return fail(e.what(), usage);
  } catch (const WriteError& e) {
    return fail(e.what(), not_written);
  } catch (const std::system_error& e) {  // fmt::print, when the system refuses
    return fail(e.what(), not_written);
  } catch (const std::bad_alloc&) {
    return fail("not enough memory for sizes like these", bad_file);
  } catch (const std::exception& e) {
    return fail(e.what(), bad_file);
  }
}

bool parse(const Command& command, std::string_view examples, Arguments arguments,
           po::options_description options, po::variables_map& values,
           const po::positional_options_description& positional) {
  options.add_options()("help,h", "print this text and exit");
  namespace style = po::command_line_style;
  constexpr int no_guessing = style::unix_style ^ style::allow_guessing;
  po::store(po::command_line_parser({arguments.begin(), arguments.end()})
                .options(options)
                .positional(positional)
                .style(no_guessing)
                .run(),
            values);
  if (values.count("help") != 0) {
    fmt::print("lipsa {}: {}\n\n{}\nExamples\n{}", command.name, command.summary,
               fmt::streamed(options), examples);
    return false;
  }
  return true;
}

void apply_preset(const Command& command, const std::string& name,
                  const po::options_description& options, po::variables_map& values) {
  for (const Preset& preset : presets_of(command.name)) {
    if (preset.name == name) {
      std::istringstream text{std::string(preset.text)};
      po::store(po::parse_config_file(text, options), values);
      return;
    }
  }
  throw std::invalid_argument(
      fmt::format("--preset must be one of {}, got '{}'", preset_names(command.name), name));
}

void note(bool quiet, std::string_view text) {
  if (!quiet) {
    fmt::print(stderr, "{}\n", text);
  }
}

Progress::Progress(bool quiet, std::string label)
    : on_(!quiet && ::isatty(STDERR_FILENO) != 0),
      label_(std::move(label)),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (on_) {
    fmt::print(stderr, "\r\x1b[K");
  }
}

void Progress::show(double fraction, std::string_view more) {
  if (!on_) {
    return;
  }
  if (first_ < 0.0) {  // what was resumed took no time now
    first_ = fraction;
  }
  constexpr int width = 30;
  const auto filled = static_cast<int>(fraction * width);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  std::string left;
  if (fraction > first_) {
    const double seconds = passed.count() * (1.0 - fraction) / (fraction - first_);
    left = seconds < 60.0 ? fmt::format(", {:.0f} s left", seconds)
                          : fmt::format(", {:.0f} min left", seconds / 60.0);
  }
  fmt::print(stderr, "\r\x1b[K{} [{:#<{}}{:.<{}}] {:3.0f} %{}{}", label_, "", filled, "",
             width - filled, 100.0 * fraction, left, more);
}

}  // namespace lipsa::cli
