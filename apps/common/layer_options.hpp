/// \file
/// The options by which commands choose a layer: --weights, --attention, --mask, --dim, --heads,
/// --seed.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/parallel.hpp"

namespace lipsa::cli {

struct LayerOptions {
  std::string attention = "l2";
  std::string weights = "identity";
  std::string mask = "none";
  Index dim = 1;
  Index heads = 1;
  std::string seed = "0";
};

void describe_layer(LayerOptions& o, boost::program_options::options_description& options);

struct ChosenLayer {
  MultiHead layer{};
  Mask mask = Mask::none();
  std::uint64_t seed = 0;
  std::vector<std::string> notes{};
};

/// \param width  D where --dim is not typed and there are tokens; 0: none
/// \throws std::invalid_argument  an option out of range, or that contradicts another
/// \throws std::runtime_error     a file is at fault
ChosenLayer read_layer(const LayerOptions& o, const boost::program_options::variables_map& values,
                       Index width);

/// \throws std::invalid_argument  not none, causal
Mask::Kind parse_mask(std::string_view text);

/// \throws std::invalid_argument  no whole number from 0 to 2^63 − 1
std::uint64_t parse_seed(const std::string& text);

/// None for 0: all.
/// \throws std::invalid_argument  negative or absurd
std::unique_ptr<ThreadLimit> thread_limit(Index threads);

}  // namespace lipsa::cli
