/// \file
/// What the tasks of `lipsa lm` have in common: the text they read, and options.
#pragma once

#include <boost/program_options.hpp>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lipsa/train/corpus.hpp"

namespace lipsa::cli {

/// The checkpoint that all tasks read and write unless told otherwise.
constexpr const char* default_checkpoint = "lm.safetensors";

struct TextOptions {
  std::string text{};
  std::string corpus{};
  double valid = SplitOptions{}.valid;
  double test = SplitOptions{}.test;
};

void describe_text(TextOptions& o, boost::program_options::options_description& options);

/// \throws std::invalid_argument  neither or both of --text and --corpus, fractions out of range
/// \throws std::runtime_error     a file is at fault
Corpus read_corpus(const TextOptions& o, const boost::program_options::variables_map& values);

/// "train", "valid" or "test" of a corpus in the numbers that a model has for its characters.
///
/// \throws std::invalid_argument  there is no such part, or it is shorter than two characters
/// \throws std::runtime_error     a character that the model does not know
std::vector<CharacterId> part_of(const Corpus& corpus, const std::string& part,
                                 const Vocabulary& vocabulary, const TextOptions& o);

/// The name of the file or folder.
const std::string& name_of(const TextOptions& o);

/// \throws std::invalid_argument  a file, there or not, is one of the others by another name
void require_apart(
    std::string_view option, const std::filesystem::path& file,
    std::initializer_list<std::pair<std::string_view, std::filesystem::path>> others);

/// --threads, --format and --quiet.
void describe_output(Index& threads, std::string& format, bool& quiet,
                     boost::program_options::options_description& options);

/// A number as an option, its default as short as it can be written.
boost::program_options::typed_value<double>* real(double& x);

/// Runs `body`, whose messages begin with the name of an option.
/// \throws std::invalid_argument  what `body` throws, with two hyphens in front
void for_option(const std::function<void()>& body);

/// \throws std::invalid_argument  naming the option that is not
void require_at_least_1(std::initializer_list<std::pair<const char*, Index>> options);

}  // namespace lipsa::cli
