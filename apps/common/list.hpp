/// \file
/// Lists on the command line: 8,16,32 or 8:256:2x (geometric) or 0:100:10 (arithmetic).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lipsa/core/types.hpp"

namespace lipsa::cli {

/// \throws std::invalid_argument  naming the option and the part at fault
std::vector<double> parse_reals(std::string_view option, std::string_view text);

/// The same for whole numbers; a range must hit whole numbers only.
std::vector<Index> parse_indices(std::string_view option, std::string_view text);

/// Words between commas, none of them empty.
std::vector<std::string_view> parse_words(std::string_view option, std::string_view text);

/// Words between commas, each read by `parse_one`, whose std::invalid_argument gets the option's
/// name.
template <class T, class F>
std::vector<T> parse_list(std::string_view option, std::string_view text, const F& parse_one) {
  std::vector<T> list;
  for (const std::string_view word : parse_words(option, text)) {
    try {
      list.push_back(parse_one(word));
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument("--" + std::string(option) + ": " + e.what());
    }
  }
  return list;
}

}  // namespace lipsa::cli
