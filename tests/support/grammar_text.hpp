/// \file
/// Texts for language models to learn, from a small grammar and a seed.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "lipsa/core/rng.hpp"

namespace lipsa::test {

/// Sentences, one a line, up to `size` bytes: which letter follows takes more than the last one to
/// know.
inline std::string grammar_text(std::uint64_t seed, std::size_t size) {
  constexpr std::array articles{"the ", "a ", "every "};
  constexpr std::array nouns{"cat", "dog", "bird", "stone", "river", "tree"};
  constexpr std::array verbs{" sees ", " hears ", " follows ", " finds "};
  Rng rng(seed);
  std::string text;
  const auto add = [&](const auto& words) { text += words[rng.next() % words.size()]; };
  while (text.size() < size) {
    add(articles);
    add(nouns);
    add(verbs);
    add(articles);
    add(nouns);
    text += ".\n";
  }
  text.resize(size);
  return text;
}

}  // namespace lipsa::test
