#include "common/text_options.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace lipsa::cli {

namespace po = boost::program_options;

po::typed_value<double>* real(double& x) {
  return po::value(&x)->default_value(x, fmt::format("{}", x));
}

void describe_text(TextOptions& o, po::options_description& options) {
  // clang-format off
  options.add_options()
      ("text", po::value(&o.text), "a text file, UTF-8: its beginning is for training, what follows for validation, its end for test")
      ("corpus", po::value(&o.corpus), "a folder with NAME.train.txt, NAME.valid.txt and NAME.test.txt, one sentence a line")
      ("valid-fraction", real(o.valid), "of the text for validation")
      ("test-fraction", real(o.test), "of the text for test");
  // clang-format on
}

Corpus read_corpus(const TextOptions& o, const po::variables_map& values) {
  if (o.text.empty() == o.corpus.empty()) {
    throw std::invalid_argument("give --text or --corpus, one of them");
  }
  if (!o.text.empty()) {
    return read_corpus_file(o.text, {.valid = o.valid, .test = o.test});
  }
  for (const char* name : {"valid-fraction", "test-fraction"}) {
    if (!values[name].defaulted()) {
      throw std::invalid_argument(
          fmt::format("--{} must not be given with --corpus, which has its own parts", name));
    }
  }
  return read_corpus_folder(o.corpus);
}

const std::string& name_of(const TextOptions& o) {
  return o.text.empty() ? o.corpus : o.text;
}

std::vector<CharacterId> part_of(const Corpus& corpus, const std::string& part,
                                 const Vocabulary& vocabulary, const TextOptions& o) {
  for (const auto& [name, ids] :
       {std::pair{"train", &corpus.train}, std::pair{"valid", &corpus.valid},
        std::pair{"test", &corpus.test}}) {
    if (part != name) {
      continue;
    }
    if (ids->size() < 2) {
      throw std::invalid_argument(
          fmt::format("{}: the part '{}' must have at least 2 characters, it has {}", name_of(o),
                      part, ids->size()));
    }
    try {
      return vocabulary.encode(corpus.vocabulary.decode(*ids));
    } catch (const std::invalid_argument& e) {  // the file's fault
      throw std::runtime_error(fmt::format("{}, part '{}': {}", name_of(o), part, e.what()));
    }
  }
  throw std::invalid_argument(fmt::format("--part must be train, valid or test, got '{}'", part));
}

void require_apart(
    std::string_view option, const std::filesystem::path& file,
    std::initializer_list<std::pair<std::string_view, std::filesystem::path>> others) {
  const auto plain = [](const std::filesystem::path& path) {
    std::error_code error;  // a name that leads nowhere is refused where it is used
    const auto found = std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
    return error ? path : found;
  };
  for (const auto& [name, other] : others) {
    if (!other.empty() && plain(file) == plain(other)) {
      throw std::invalid_argument(
          fmt::format("{} {} must be another file than {}", option, file.string(), name));
    }
  }
}

void describe_output(Index& threads, std::string& format, bool& quiet,
                     po::options_description& options) {
  // clang-format off
  options.add_options()
      ("threads", po::value(&threads)->default_value(threads), "threads to use, 0 for all; results are the same")
      ("format", po::value(&format)->default_value(format), "text, csv, json, markdown, latex")
      ("quiet", po::bool_switch(&quiet), "no notes and no progress on stderr");
  // clang-format on
}

void for_option(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(fmt::format("--{}", e.what()));
  }
}

void require_at_least_1(std::initializer_list<std::pair<const char*, Index>> options) {
  for (const auto& [name, value] : options) {
    if (value < 1) {
      throw std::invalid_argument(fmt::format("--{} must be at least 1, got {}", name, value));
    }
  }
}

}  // namespace lipsa::cli
