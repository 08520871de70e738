/// \file
/// What every command does alike: help, exit codes, notes, progress.
#pragma once

#include <boost/program_options.hpp>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace lipsa::cli {

enum ExitCode : int {
  success = 0,
  refuted = 1,      ///< the claim under test is false
  usage = 2,        ///< the command line is wrong, or asks for what is not defined
  bad_file = 3,     ///< an input file is missing or malformed
  unsettled = 4,    ///< some result did not settle; its row says how it ended
  not_written = 5,  ///< an output could not be written
};

using Arguments = std::span<const std::string>;

struct Command {
  std::string_view name;
  std::string_view summary;  ///< one line
  int (*run)(Arguments arguments);
};

/// Runs `body`, and turns what it throws into one line on stderr and an exit code.
int guarded(std::string_view command, const std::function<int()>& body);

/// Parses arguments against the options, --help among them; no abbreviations. Stores nothing when
/// help was asked for and printed: then it returns false.
///
/// \param positional  the options that arguments without a name stand for
/// \throws boost::program_options::error  guarded() names it and exits with `usage`
bool parse(const Command& command, std::string_view examples, Arguments arguments,
           boost::program_options::options_description options,
           boost::program_options::variables_map& values,
           const boost::program_options::positional_options_description& positional = {});

/// Options from the text of a preset of this command, for those not in `values` yet: what is typed
/// wins.
///
/// \throws std::invalid_argument  no such preset; the message lists those there are
void apply_preset(const Command& command, const std::string& name,
                  const boost::program_options::options_description& options,
                  boost::program_options::variables_map& values);

/// A line on stderr, unless --quiet.
void note(bool quiet, std::string_view text);

/// A bar with the time left on stderr, when that is a terminal and not --quiet.
class Progress {
 public:
  Progress(bool quiet, std::string label);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;

  /// \param fraction  of the work that is done, in [0, 1]
  /// \param more      what else there is to say, behind the time left
  void show(double fraction, std::string_view more = "");

  bool on() const { return on_; }

 private:
  bool on_;
  std::string label_;
  double first_ = -1.0;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace lipsa::cli
