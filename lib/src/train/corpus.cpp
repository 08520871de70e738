#include "lipsa/train/corpus.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "core/check.hpp"
#include "core/input_file.hpp"
#include "core/utf8.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

constexpr std::uint64_t batch_stream = 0x6261746368657300U;  // "batches": apart from other streams
constexpr char32_t code_points = 0x110000;

/// Calls body(code point, offset) for each character, and returns the offset of the first byte that
/// is not UTF-8, if there is one.
template <class Body>
std::optional<std::size_t> for_each_character(std::string_view text, const Body& body) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = first_character(text.substr(at, 4));
    if (character.size == 0) {
      return at;
    }
    body(character.code_point, at);
    at += character.size;
  }
  return std::nullopt;
}

unsigned byte_at(std::string_view text, std::size_t offset) {
  return offset < text.size() ? static_cast<unsigned char>(text[offset]) : 0;
}

std::string read_text(const std::filesystem::path& path) {
  InputFile file = open_input(path);
  if (file.size == 0) {
    malformed(path.string(), "expected a text, found an empty file");
  }
  std::string text(file.size, '\0');
  file.stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.stream) {
    malformed(path.string(), "truncated: expected {} bytes, found {}", text.size(),
              file.stream.gcount());
  }
  if (const auto bad = for_each_character(text, [](char32_t, std::size_t) {})) {
    malformed(path.string(), "byte {}: expected UTF-8, found the byte 0x{:02x}", *bad,
              byte_at(text, *bad));
  }
  return text;
}

void require_split(const SplitOptions& split) {
  require(split.valid >= 0.0 && split.test >= 0.0 && split.valid + split.test < 1.0,
          "make_corpus: split must have fractions from 0 with a sum below 1, got valid {} and test "
          "{}",
          split.valid, split.test);
}

void require_within(std::string_view function, std::span<const CharacterId> text,
                    std::span<const Example> examples) {
  const auto size = static_cast<Index>(text.size());
  for (const Example& example : examples) {
    require(example.first >= 0 && example.length >= 1 && example.first < size &&
                example.length < size - example.first,
            "{}: examples must lie within a text of {} characters with one after them, got {} "
            "characters from {}",
            function, size, example.length, example.first);
  }
}

/// Appends the characters from `first` to before `end`, in pieces of at most `context`.
void append_pieces(std::vector<Example>& examples, Index first, Index end, Index context) {
  while (first < end) {
    const Index length = std::min(context, end - first);
    examples.push_back({first, length});
    first += length;
  }
}

}  // namespace

Vocabulary::Vocabulary(std::string_view text) {
  std::vector<bool> seen(code_points);
  const auto bad = for_each_character(text, [&](char32_t c, std::size_t) { seen[c] = true; });
  require(!bad, "Vocabulary: text must be UTF-8, got the byte 0x{:02x} at byte {}",
          byte_at(text, bad.value_or(0)), bad.value_or(0));
  for (char32_t c = 0; c < code_points; ++c) {
    if (seen[c]) {
      code_points_.push_back(c);
    }
  }
}

std::string Vocabulary::characters() const {
  std::string text;
  for (const char32_t c : code_points_) {
    append_utf8(text, c);
  }
  return text;
}

std::vector<CharacterId> Vocabulary::encode(std::string_view text) const {
  std::vector<CharacterId> ids;
  ids.reserve(text.size());
  const auto bad = for_each_character(text, [&](char32_t c, std::size_t offset) {
    const auto found = std::lower_bound(code_points_.begin(), code_points_.end(), c);
    require(found != code_points_.end() && *found == c,
            "encode: text must have only characters of the vocabulary, got {} at byte {}",
            character_name(c), offset);
    ids.push_back(static_cast<CharacterId>(found - code_points_.begin()));
  });
  require(!bad, "encode: text must be UTF-8, got the byte 0x{:02x} at byte {}",
          byte_at(text, bad.value_or(0)), bad.value_or(0));
  return ids;
}

std::string Vocabulary::decode(std::span<const CharacterId> ids) const {
  std::string text;
  text.reserve(ids.size());
  for (const CharacterId id : ids) {
    require(id >= 0 && id < size(), "decode: ids must be from 0 below {}, got {}", size(), id);
    append_utf8(text, code_points_[static_cast<std::size_t>(id)]);
  }
  return text;
}

std::string in_words(const Vocabulary& vocabulary) {
  std::string text = fmt::format("{} characters:", vocabulary.size());
  for_each_character(vocabulary.characters(), [&](char32_t c, std::size_t) {
    const std::string name = character_name(c);  // U+0041 'A', or without the quotes
    const std::size_t quote = name.find('\'');
    text += ' ';
    text += quote == std::string::npos ? name : name.substr(quote + 1, name.size() - quote - 2);
  });
  return text;
}

Corpus make_corpus(std::string_view text, const SplitOptions& split) {
  require_split(split);
  require(!text.empty(), "make_corpus: text must not be empty, got no characters");
  Corpus corpus{.vocabulary = Vocabulary(text)};
  corpus.train = corpus.vocabulary.encode(text);
  const auto characters = static_cast<double>(corpus.train.size());
  const auto cut = [&](std::vector<CharacterId>& part, double fraction) {
    const auto count = static_cast<std::ptrdiff_t>(std::floor(fraction * characters));
    part.assign(corpus.train.end() - count, corpus.train.end());
    corpus.train.erase(corpus.train.end() - count, corpus.train.end());
  };
  cut(corpus.test, split.test);
  cut(corpus.valid, split.valid);
  return corpus;
}

Corpus read_corpus_file(const std::filesystem::path& path, const SplitOptions& split) {
  require_split(split);
  return make_corpus(read_text(path), split);
}

Corpus read_corpus_folder(const std::filesystem::path& path) {
  constexpr std::string_view suffix = ".train.txt";
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (std::string name = entry->path().filename().string(); name.ends_with(suffix)) {
      names.push_back(std::move(name));
    }
  }
  if (error) {
    malformed(path.string(), "cannot read the folder: {}", error.message());
  }
  std::sort(names.begin(), names.end());
  if (names.size() != 1) {
    malformed(path.string(), "expected one file NAME.train.txt, found {}",
              names.empty() ? "none" : names[0] + " and " + names[1]);
  }
  const std::string name = names[0].substr(0, names[0].size() - suffix.size());
  const auto text = [&](std::string_view part) {
    return read_text(path / fmt::format("{}.{}.txt", name, part));
  };
  const std::string train = text("train");
  const std::string valid = text("valid");
  const std::string test = text("test");
  Corpus corpus{.vocabulary = Vocabulary(train + valid + test)};
  corpus.train = corpus.vocabulary.encode(train);
  corpus.valid = corpus.vocabulary.encode(valid);
  corpus.test = corpus.vocabulary.encode(test);
  return corpus;
}

std::vector<Example> windows(Index characters, Index context) {
  require(context >= 1, "windows: context must be at least 1, got {}", context);
  std::vector<Example> examples;
  append_pieces(examples, 0, characters - 1, context);
  return examples;
}

Sentences sentences(std::span<const CharacterId> text, CharacterId newline, Index context) {
  require(context >= 1, "sentences: context must be at least 1, got {}", context);
  Sentences result;
  const auto size = static_cast<Index>(text.size());
  Index line = 0;   // where the line begins
  Index first = 0;  // the character that its first one is predicted at
  for (Index at = 0; at < size; ++at) {
    if (text[static_cast<std::size_t>(at)] != newline && at + 1 < size) {
      continue;
    }
    const Index length = at + 1 - line;
    result.lines += 1;
    result.longest = std::max(result.longest, length);
    result.cut += at - first > context ? 1 : 0;
    append_pieces(result.examples, first, at, context);
    line = at + 1;
    first = at;
  }
  return result;
}

Batch make_batch(std::span<const CharacterId> text, std::span<const Example> examples) {
  require(!examples.empty(), "make_batch: examples must not be empty, got none");
  require_within("make_batch", text, examples);
  Batch batch{.sequences = static_cast<Index>(examples.size())};
  for (const Example& example : examples) {
    batch.length = std::max(batch.length, example.length);
    batch.predicted += example.length;
  }
  const auto length = static_cast<std::size_t>(batch.length);
  batch.inputs.assign(examples.size() * length, 0);
  batch.targets.assign(examples.size() * length, Batch::no_target);
  for (std::size_t k = 0; k < examples.size(); ++k) {
    const auto from = text.begin() + examples[k].first;
    const auto place = static_cast<std::ptrdiff_t>(k * length);
    std::copy_n(from, examples[k].length, batch.inputs.begin() + place);
    std::copy_n(from + 1, examples[k].length, batch.targets.begin() + place);
  }
  return batch;
}

TrainingBatches::TrainingBatches(std::span<const CharacterId> text, std::vector<Example> examples,
                                 Index size, std::uint64_t seed)
    : text_(text), examples_(std::move(examples)), size_(size), seed_(seed) {
  require(size >= 1, "TrainingBatches: size must be at least 1, got {}", size);
  require(static_cast<Index>(examples_.size()) >= size,
          "TrainingBatches: text must be at least one batch of {} examples, got {} characters that "
          "make {}: take a longer text, a smaller batch or a shorter context",
          size, text.size(), examples_.size());
  require_within("TrainingBatches", text, examples_);
}

void TrainingBatches::shuffle(Index round) {
  order_ = examples_;
  Rng rng(seed_, batch_stream, static_cast<std::uint64_t>(round));
  for (std::size_t left = order_.size(); left > 1; --left) {
    std::swap(order_[left - 1], order_[static_cast<std::size_t>(rng.next() % left)]);
  }
  round_ = round;
}

Batch TrainingBatches::at(Index step) {
  require(step >= 0 && step <= std::numeric_limits<Index>::max() / size_ - 1,
          "TrainingBatches: step must be from 0 to {}, got {}",
          std::numeric_limits<Index>::max() / size_ - 1, step);
  const auto count = static_cast<Index>(examples_.size());
  std::vector<Example> chosen;
  chosen.reserve(static_cast<std::size_t>(size_));
  for (Index place = step * size_; place < (step + 1) * size_; ++place) {
    if (place / count != round_) {
      shuffle(place / count);
    }
    chosen.push_back(order_[static_cast<std::size_t>(place % count)]);
  }
  return make_batch(text_, chosen);
}

}  // namespace lipsa
