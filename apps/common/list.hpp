/// \file
/// Lists on the command line: 8,16,32 or 8:256:2x (geometric) or 0:100:10 (arithmetic).
#pragma once

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

}  // namespace lipsa::cli
