/// \file
/// Texts as sequences of characters, cut into training, validation and test, and into batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipsa/core/types.hpp"

namespace lipsa {

/// The number of a character in its vocabulary, from 0.
using CharacterId = std::int32_t;

/// The characters that a model knows: code points of Unicode, in ascending order.
///
/// \test tests/train/corpus_test.cpp
class Vocabulary {
 public:
  Vocabulary() = default;

  /// The characters of a text. `Vocabulary(v.characters())` is v again.
  /// \throws std::invalid_argument  the text is not UTF-8: the offset of the first bad byte
  explicit Vocabulary(std::string_view text);

  Index size() const { return static_cast<Index>(code_points_.size()); }

  /// Each character once, ascending, in UTF-8.
  std::string characters() const;

  /// \throws std::invalid_argument  the text is not UTF-8, or has a character that is not in the
  ///         vocabulary: which one, and at what byte
  std::vector<CharacterId> encode(std::string_view text) const;

  /// \throws std::invalid_argument  an id outside [0, size)
  std::string decode(std::span<const CharacterId> ids) const;

  bool operator==(const Vocabulary&) const = default;

 private:
  std::vector<char32_t> code_points_{};
};

/// "4 characters: U+000A U+0020 a é": for people. What is not graphic is named by its number.
std::string in_words(const Vocabulary& vocabulary);

/// What fractions of a text, by position, are for validation, and after that, up to the end, for
/// test. The beginning is for training.
struct SplitOptions {
  double valid = 0.05;  ///< ≥ 0
  double test = 0.05;   ///< ≥ 0; valid + test < 1
};

struct Corpus {
  Vocabulary vocabulary{};  ///< of all three parts: a model gives each of them a probability
  std::vector<CharacterId> train{};
  std::vector<CharacterId> valid{};
  std::vector<CharacterId> test{};
};

/// Of N characters the last ⌊test N⌋ are for test and the ⌊valid N⌋ before them for validation.
///
/// \throws std::invalid_argument  the text is empty or not UTF-8; a fraction is out of range
/// \test   tests/train/corpus_test.cpp
Corpus make_corpus(std::string_view text, const SplitOptions& split = {});

/// The same of a text file, whatever its language; every character of it counts, line ends and a
/// byte order mark too.
///
/// \throws std::runtime_error     the file cannot be read, is empty or not UTF-8: path, offset
/// \throws std::invalid_argument  a fraction is out of range
Corpus read_corpus_file(const std::filesystem::path& path, const SplitOptions& split = {});

/// Reads the three files NAME.train.txt, NAME.valid.txt and NAME.test.txt of a folder, where NAME
/// is any: the layout of the Penn Treebank (ptb.train.txt, …), one sentence a line.
///
/// \throws std::runtime_error  what read_corpus_file refuses, in any of them; the folder has none
///         or several NAME.train.txt
/// \test   tests/train/corpus_test.cpp
Corpus read_corpus_folder(const std::filesystem::path& path);

/// A stretch of a text to learn from: at each of the characters [first, first + length) the next
/// one is to be predicted.
struct Example {
  Index first = 0;
  Index length = 0;
};

/// Consecutive stretches of `context` characters, the last one perhaps shorter: every character but
/// the first of the text is predicted once, from at most `context` before it.
///
/// \param characters  of the text
/// \throws std::invalid_argument  context < 1
/// \test   tests/train/corpus_test.cpp
std::vector<Example> windows(Index characters, Index context);

struct Sentences {
  std::vector<Example> examples{};
  Index lines = 0;
  Index longest = 0;  ///< characters of the longest line, its end included
  Index cut = 0;      ///< lines longer than the context, each of which became several examples
};

/// Stretches that are lines: each begins at the line end before the line and predicts the line and
/// its end. The first of the text, with no line end before it, begins at its first character, which
/// is given. Nothing is left out: a line of more than `context` characters, its end included, is
/// cut into pieces, each but the first beginning at the last character of the one before it.
///
/// \param newline  the id of the line end, which the text need not have
/// \throws std::invalid_argument  context < 1
/// \test   tests/train/corpus_test.cpp
Sentences sentences(std::span<const CharacterId> text, CharacterId newline, Index context);

/// Examples side by side, sequence after sequence, each filled up to the length of the longest with
/// inputs of no meaning and no target. In a causal model they have no effect on the rest.
struct Batch {
  static constexpr Index no_target = -1;

  Index sequences = 0;
  Index length = 0;              ///< of each sequence
  std::vector<Index> inputs{};   ///< ids, sequences × length
  std::vector<Index> targets{};  ///< sequences × length; no_target: nothing to predict
  Index predicted = 0;           ///< targets that are characters
};

/// \throws std::invalid_argument  no examples, or one that reaches beyond the text
/// \test   tests/train/corpus_test.cpp
Batch make_batch(std::span<const CharacterId> text, std::span<const Example> examples);

/// Training batches without end: all examples in a random order, then all of them in another, and
/// so on, cut into batches of one size. A batch may lie across two rounds. Which examples it has is
/// a function of the seed and its number alone, so training goes on anywhere without a replay.
///
/// \test tests/train/corpus_test.cpp
class TrainingBatches {
 public:
  /// \param text      borrowed
  /// \param size      examples a batch, ≥ 1
  /// \throws std::invalid_argument  fewer examples than `size`; one reaches beyond the text
  TrainingBatches(std::span<const CharacterId> text, std::vector<Example> examples, Index size,
                  std::uint64_t seed);

  /// The batch of a step, from 0.
  /// \throws std::invalid_argument  step < 0 or beyond any training
  Batch at(Index step);

 private:
  void shuffle(Index round);

  std::span<const CharacterId> text_;
  std::vector<Example> examples_;
  Index size_;
  std::uint64_t seed_;
  Index round_ = -1;  ///< whose order is that of:
  std::vector<Example> order_{};
};

}  // namespace lipsa
