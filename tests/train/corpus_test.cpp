#include "lipsa/train/corpus.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "files.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

using Catch::Contains;
using Ids = std::vector<CharacterId>;
using Indices = std::vector<Index>;

TEST_CASE("Vocabulary: the characters of a text, each once, in ascending order", "[train]") {
  const Vocabulary vocabulary("zeé\naab€z𣎴 \n");
  CHECK(vocabulary.size() == 9);
  CHECK(vocabulary.characters() == "\n abezé€𣎴");
  CHECK(Vocabulary(vocabulary.characters()) == vocabulary);
  CHECK(in_words(vocabulary) == "9 characters: U+000A U+0020 a b e z é € 𣎴");
  CHECK(Vocabulary("").size() == 0);
  CHECK(Vocabulary(std::string_view("\0", 1)).size() == 1);
}

TEST_CASE("Vocabulary: what is encoded is decoded", "[train]") {
  const std::string text = "Große Œuvre – 日本\tA\nA";
  const Vocabulary vocabulary(text);
  const Ids ids = vocabulary.encode(text);
  CHECK(ids.size() == 20);
  CHECK(vocabulary.decode(ids) == text);
  CHECK(Vocabulary("abc").encode("cab") == Ids{2, 0, 1});
  CHECK(vocabulary.encode("").empty());
  CHECK_THROWS_WITH(Vocabulary("ab").decode(Ids{0, 2}),
                    "decode: ids must be from 0 below 2, got 2");
  CHECK_THROWS_AS(Vocabulary("ab").decode(Ids{-1}), std::invalid_argument);
}

TEST_CASE("Vocabulary: an unknown character is named, with its place", "[train]") {
  const Vocabulary vocabulary("abé");
  CHECK_THROWS_WITH(
      vocabulary.encode("aéñb"),
      "encode: text must have only characters of the vocabulary, got U+00F1 'ñ' at byte 3");
  CHECK_THROWS_WITH(
      vocabulary.encode("a\n"),
      "encode: text must have only characters of the vocabulary, got U+000A at byte 1");
  CHECK_THROWS_AS(Vocabulary().encode("a"), std::invalid_argument);
}

TEST_CASE("Vocabulary: what is not UTF-8 is refused with its place", "[train]") {
  CHECK_THROWS_WITH(Vocabulary("aé\xff"),
                    "Vocabulary: text must be UTF-8, got the byte 0xff at byte 3");
  CHECK_THROWS_WITH(Vocabulary("aé").encode("a\xc3"),
                    "encode: text must be UTF-8, got the byte 0xc3 at byte 1");
}

TEST_CASE("make_corpus: cuts by position, and loses nothing", "[train]") {
  const std::string text = "abcdefghijklmnopqrstuvwxyzäöü";  // 29 characters
  const Corpus corpus = make_corpus(text, {.valid = 0.25, .test = 0.125});
  CHECK(corpus.valid.size() == 7);
  CHECK(corpus.test.size() == 3);
  const auto text_of = [&](const Ids& ids) { return corpus.vocabulary.decode(ids); };
  CHECK(text_of(corpus.train) + text_of(corpus.valid) + text_of(corpus.test) == text);
  CHECK(text_of(corpus.test) == "äöü");

  const Corpus whole = make_corpus("x", {.valid = 0.0, .test = 0.0});
  CHECK(whole.train.size() == 1);
  CHECK(make_corpus("x").train.size() == 1);  // the parts are rounded down
}

TEST_CASE("make_corpus: refuses an empty text and fractions that leave nothing", "[train]") {
  CHECK_THROWS_WITH(make_corpus(""), "make_corpus: text must not be empty, got no characters");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const SplitOptions& split :
       {SplitOptions{0.5, 0.5}, SplitOptions{-0.1, 0.1}, SplitOptions{nan, 0.0},
        SplitOptions{0.0, nan}, SplitOptions{2.0, 0.0}}) {
    CHECK_THROWS_WITH(make_corpus("text", split),
                      Contains("split must have fractions from 0 with a sum below 1"));
  }
}

TEST_CASE("read_corpus_file: takes any text, and refuses what is none", "[train]") {
  const TemporaryFolder folder;
  const auto path = folder / "text.txt";
  put_bytes(path, "\xef\xbb\xbfnaïve\r\n");
  const Corpus corpus = read_corpus_file(path, {.valid = 0.0, .test = 0.0});
  CHECK(corpus.vocabulary.decode(corpus.train) == get_bytes(path));
  CHECK(corpus.train.size() == 8);

  put_bytes(path, "");
  CHECK_THROWS_WITH(read_corpus_file(path),
                    Contains("text.txt: expected a text, found an empty file"));
  put_bytes(path, "aé\xc0\xaf");
  CHECK_THROWS_WITH(read_corpus_file(path),
                    Contains("text.txt: byte 3: expected UTF-8, found the byte 0xc0"));
  put_bytes(path, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
  CHECK_THROWS_WITH(read_corpus_file(path), Contains("this is a Git LFS pointer"));
  CHECK_THROWS_AS(read_corpus_file(folder / "missing.txt"), std::runtime_error);
  CHECK_THROWS_AS(read_corpus_file(path, {.valid = 1.0}), std::invalid_argument);
}

TEST_CASE("read_corpus_folder: reads the three files of the Penn Treebank's layout", "[train]") {
  const TemporaryFolder folder;
  put_bytes(folder / "ptb.train.txt", " no it was n't \n");
  put_bytes(folder / "ptb.valid.txt", "zé\n");
  put_bytes(folder / "ptb.test.txt", "q\n");
  put_bytes(folder / "README", "\xff");
  const Corpus corpus = read_corpus_folder(folder / "");
  const auto text_of = [&](const Ids& ids) { return corpus.vocabulary.decode(ids); };
  CHECK(text_of(corpus.train) == " no it was n't \n");
  CHECK(text_of(corpus.valid) == "zé\n");
  CHECK(text_of(corpus.test) == "q\n");
  CHECK(corpus.vocabulary.characters() == "\n 'ainoqstwzé");
}

TEST_CASE("windows: a context beyond all measure is one window", "[train]") {
  const auto some = windows(100, std::numeric_limits<Index>::max());
  REQUIRE(some.size() == 1);
  CHECK(some[0].length == 99);
}

TEST_CASE("read_corpus_folder: says which file is missing, empty or one too many", "[train]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_corpus_folder(folder / ""),
                    Contains("expected one file NAME.train.txt, found none"));
  put_bytes(folder / "a.train.txt", "a");
  put_bytes(folder / "a.valid.txt", "");
  CHECK_THROWS_WITH(read_corpus_folder(folder / ""),
                    Contains("a.valid.txt: expected a text, found an empty file"));
  put_bytes(folder / "a.valid.txt", "a");
  CHECK_THROWS_WITH(read_corpus_folder(folder / ""), Contains("a.test.txt: cannot read"));
  put_bytes(folder / "b.train.txt", "a");
  CHECK_THROWS_WITH(
      read_corpus_folder(folder / ""),
      Contains("expected one file NAME.train.txt, found a.train.txt and b.train.txt"));
  CHECK_THROWS_WITH(read_corpus_folder(folder / "missing"), Contains("cannot read the folder"));
  CHECK_THROWS_AS(read_corpus_folder(folder / "a.train.txt"), std::runtime_error);
}

/// How often the examples predict each character.
std::vector<int> predictions(Index characters, const std::vector<Example>& examples) {
  std::vector<int> count(static_cast<std::size_t>(characters));
  for (const Example& example : examples) {
    for (Index k = 0; k < example.length; ++k) {
      ++count.at(static_cast<std::size_t>(example.first + k + 1));
    }
  }
  return count;
}

std::vector<int> all_but_the_first(Index characters) {
  std::vector<int> count(static_cast<std::size_t>(characters), 1);
  count[0] = 0;
  return count;
}

TEST_CASE("windows: every character but the first is predicted once", "[train]") {
  const auto characters = GENERATE(Index{1}, Index{2}, Index{9}, Index{10}, Index{11}, Index{30});
  const auto context = GENERATE(Index{1}, Index{3}, Index{10}, Index{100});
  CAPTURE(characters, context);
  const std::vector<Example> examples = windows(characters, context);
  CHECK(predictions(characters, examples) == all_but_the_first(characters));
  for (std::size_t k = 0; k + 1 < examples.size(); ++k) {
    CHECK(examples[k].length == context);
  }
  CHECK(std::all_of(examples.begin(), examples.end(),
                    [&](const Example& e) { return e.length >= 1 && e.length <= context; }));
  CHECK(windows(0, context).empty());
  CHECK_THROWS_AS(windows(5, 0), std::invalid_argument);
}

TEST_CASE("sentences: an example is a line, from the line end before it to its own", "[train]") {
  const std::string text = "ab\n\ncdefg\nhi";
  const Vocabulary vocabulary(text);
  const Ids ids = vocabulary.encode(text);
  const Sentences found = sentences(ids, 0, 100);
  CHECK(found.lines == 4);
  CHECK(found.longest == 6);
  CHECK(found.cut == 0);
  std::vector<std::string> inputs;
  std::vector<std::string> targets;
  for (const Example& e : found.examples) {
    const auto piece = [&](Index first) {
      return vocabulary.decode(std::span(ids).subspan(static_cast<std::size_t>(first),
                                                      static_cast<std::size_t>(e.length)));
    };
    inputs.push_back(piece(e.first));
    targets.push_back(piece(e.first + 1));
  }
  CHECK(inputs == std::vector<std::string>{"ab", "\n", "\ncdefg", "\nh"});
  CHECK(targets == std::vector<std::string>{"b\n", "\n", "cdefg\n", "hi"});
}

TEST_CASE("sentences: a line as long as the context is whole, a longer one cut and counted",
          "[train]") {
  const Ids ids = Vocabulary("\nabcde").encode("\nabcd\nabcde\nabcd");  // 5, 6 and 4 characters
  const Sentences found = sentences(ids, 0, 5);
  CHECK(found.lines == 4);
  CHECK(found.longest == 6);
  CHECK(found.cut == 1);
  std::vector<std::pair<Index, Index>> ranges;
  for (const Example& e : found.examples) {
    ranges.emplace_back(e.first, e.length);
  }
  CHECK(ranges == std::vector<std::pair<Index, Index>>{{0, 5}, {5, 5}, {10, 1}, {11, 4}});
}

TEST_CASE("sentences: every character but the first is predicted once", "[train]") {
  const auto seed = GENERATE(range(0U, 20U));
  const auto context = GENERATE(Index{1}, Index{4}, Index{50});
  CAPTURE(seed, context);
  Rng rng(seed);
  Ids ids(1 + rng.next() % 60);
  for (CharacterId& id : ids) {
    id = static_cast<CharacterId>(rng.next() % 6);
  }
  const auto size = static_cast<Index>(ids.size());
  const Sentences found = sentences(ids, 2, context);
  CHECK(predictions(size, found.examples) == all_but_the_first(size));
  CHECK(found.lines == std::count(ids.begin(), ids.end(), 2) + (ids.back() == 2 ? 0 : 1));
  const Sentences one_line = sentences(ids, -1, 1000);  // a text without line ends
  CHECK(one_line.lines == 1);
  CHECK(one_line.examples.size() == (size > 1 ? 1 : 0));
  CHECK(sentences({}, 2, context).lines == 0);
  CHECK_THROWS_AS(sentences(ids, 2, 0), std::invalid_argument);
}

TEST_CASE("make_batch: sequence after sequence, filled up without targets", "[train]") {
  const Ids text{5, 6, 7, 8, 9};
  const Batch batch = make_batch(text, std::vector<Example>{{1, 1}, {0, 3}, {3, 1}});
  CHECK(batch.sequences == 3);
  CHECK(batch.length == 3);
  CHECK(batch.predicted == 5);
  CHECK(batch.inputs == Indices{6, 0, 0, 5, 6, 7, 8, 0, 0});
  CHECK(batch.targets == Indices{7, -1, -1, 6, 7, 8, 9, -1, -1});
  CHECK_THROWS_WITH(make_batch(text, {}), "make_batch: examples must not be empty, got none");
  const Index huge = std::numeric_limits<Index>::max();
  for (const Example& bad : {Example{0, 5}, Example{4, 1}, Example{-1, 2}, Example{0, 0},
                             Example{5, 1}, Example{3, huge}, Example{huge, 1}}) {
    CHECK_THROWS_WITH(make_batch(text, std::vector<Example>{bad}),
                      Contains("examples must lie within a text of 5 characters"));
  }
}

/// A text whose character k is k, so that inputs say which examples a batch has.
Ids numbers(Index count) {
  Ids ids(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < ids.size(); ++k) {
    ids[k] = static_cast<CharacterId>(k);
  }
  return ids;
}

TEST_CASE("TrainingBatches: each round has each example once, in an order of its own", "[train]") {
  const Ids text = numbers(23);  // 11 windows of 2
  const auto size = GENERATE(Index{1}, Index{3}, Index{11});
  TrainingBatches batches(text, windows(23, 2), size, 7);
  std::vector<Indices> rounds(5);
  for (Index step = 0; step < 5 * 11 / size; ++step) {
    const Batch batch = batches.at(step);
    CHECK(batch.sequences == size);
    for (Index k = 0; k < size; ++k) {
      rounds[static_cast<std::size_t>((step * size + k) / 11)].push_back(
          batch.inputs[static_cast<std::size_t>(k * batch.length)]);
    }
  }
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(rounds[k] != rounds[k + 1]);
    std::sort(rounds[k].begin(), rounds[k].end());
    CHECK(rounds[k] == Indices{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20});
  }
}

TEST_CASE("TrainingBatches: a batch depends on the seed and its number alone", "[train]") {
  const Ids text = numbers(101);
  const std::vector<Example> examples = windows(101, 4);
  TrainingBatches forwards(text, examples, 4, 1);
  std::vector<Indices> expected;
  for (Index step = 0; step < 30; ++step) {
    expected.push_back(forwards.at(step).inputs);
  }
  TrainingBatches backwards(text, examples, 4, 1);
  for (Index step = 29; step >= 0; --step) {
    CHECK(backwards.at(step).inputs == expected[static_cast<std::size_t>(step)]);
  }
  TrainingBatches other(text, examples, 4, 2);
  CHECK(other.at(0).inputs != expected[0]);
  CHECK(other.at(std::numeric_limits<Index>::max() / 8).sequences == 4);
  CHECK_THROWS_AS(other.at(-1), std::invalid_argument);
  CHECK_THROWS_AS(other.at(std::numeric_limits<Index>::max() / 4), std::invalid_argument);
}

TEST_CASE("TrainingBatches: the same order on every machine", "[train]") {
  const Ids text = numbers(9);
  TrainingBatches batches(text, windows(9, 1), 8, 42);
  CHECK(batches.at(0).inputs == Indices{6, 7, 5, 3, 1, 2, 4, 0});
}

TEST_CASE("TrainingBatches: refuses a text shorter than one batch, saying what to change",
          "[train]") {
  const Ids text = numbers(20);
  CHECK_THROWS_WITH(
      TrainingBatches(text, windows(20, 5), 5, 1),
      "TrainingBatches: text must be at least one batch of 5 examples, got 20 "
      "characters that make 4: take a longer text, a smaller batch or a shorter context");
  CHECK_THROWS_AS(TrainingBatches(text, {}, 1, 1), std::invalid_argument);
  CHECK_THROWS_AS(TrainingBatches(text, windows(20, 5), 0, 1), std::invalid_argument);
  CHECK_THROWS_AS(TrainingBatches(text, windows(21, 5), 1, 1), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
