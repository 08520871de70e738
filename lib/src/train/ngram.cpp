#include "lipsa/train/ngram.hpp"

#include <cmath>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/check.hpp"

namespace lipsa {
namespace {

void require_texts(std::string_view function, std::span<const CharacterId> train,
                   std::span<const CharacterId> text, Index vocabulary) {
  for (const auto part : {train, text}) {
    for (const CharacterId id : part) {
      require(id >= 0 && id < vocabulary, "{}: ids must be from 0 below {}, got {}", function,
              vocabulary, id);
    }
  }
  require(text.size() >= 2, "{}: text must have at least 2 characters, got {}", function,
          text.size());
}

}  // namespace

double bigram_nll(std::span<const CharacterId> train, std::span<const CharacterId> text,
                  Index vocabulary) {
  require_texts("bigram_nll", train, text, vocabulary);
  const auto pair = [&](CharacterId a, CharacterId b) { return Index{a} * vocabulary + b; };
  std::unordered_map<Index, double> pairs;  // few of the V² occur
  std::vector<double> firsts(static_cast<std::size_t>(vocabulary));
  for (std::size_t k = 0; k + 1 < train.size(); ++k) {
    pairs[pair(train[k], train[k + 1])] += 1.0;
    firsts[static_cast<std::size_t>(train[k])] += 1.0;
  }
  double sum = 0.0;
  for (std::size_t k = 0; k + 1 < text.size(); ++k) {
    const auto found = pairs.find(pair(text[k], text[k + 1]));
    const double count = found == pairs.end() ? 0.0 : found->second;
    sum += std::log((firsts[static_cast<std::size_t>(text[k])] + static_cast<double>(vocabulary)) /
                    (count + 1.0));
  }
  return sum / static_cast<double>(text.size() - 1);
}

double unigram_nll(std::span<const CharacterId> train, std::span<const CharacterId> text,
                   Index vocabulary) {
  require_texts("unigram_nll", train, text, vocabulary);
  std::vector<double> counts(static_cast<std::size_t>(vocabulary));
  for (const CharacterId id : train) {
    counts[static_cast<std::size_t>(id)] += 1.0;
  }
  const auto all = static_cast<double>(train.size()) + static_cast<double>(vocabulary);
  double sum = 0.0;
  for (const CharacterId id : text.subspan(1)) {
    sum += std::log(all / (counts[static_cast<std::size_t>(id)] + 1.0));
  }
  return sum / static_cast<double>(text.size() - 1);
}

}  // namespace lipsa
