#include "common/layer_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "lipsa/model/initial_weights.hpp"
#include "lipsa/model/layer_file.hpp"

namespace lipsa::cli {
namespace {

namespace po = boost::program_options;

constexpr Index most_threads = 1024;

}  // namespace

void describe_layer(LayerOptions& o, po::options_description& options) {
  // clang-format off
  options.add_options()
      ("attention", po::value(&o.attention)->default_value(o.attention), "l2 (tied), dot, l2-untied, cosine, sigmoid")
      ("weights", po::value(&o.weights)->default_value(o.weights), "identity, glorot, gaussian:SIGMA or a file .npz with W_Q, W_K, W_V, W_O, heads")
      ("mask", po::value(&o.mask)->default_value(o.mask), "none, causal")
      ("dim", po::value(&o.dim)->default_value(o.dim), "number of features D")
      ("heads", po::value(&o.heads)->default_value(o.heads), "number of heads H")
      ("seed", po::value(&o.seed)->default_value(o.seed), "seed of weights and searches");
  // clang-format on
}

Mask::Kind parse_mask(std::string_view text) {
  for (const auto kind : {Mask::Kind::none, Mask::Kind::causal}) {
    if (text == to_string(kind)) {
      return kind;
    }
  }
  throw std::invalid_argument(fmt::format("--mask must be none or causal, got '{}'", text));
}

std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size() || seed > INT64_MAX) {
    throw std::invalid_argument(
        fmt::format("--seed must be a whole number from 0 to 2^63 - 1, got '{}'", text));
  }
  return seed;
}

std::unique_ptr<ThreadLimit> thread_limit(Index threads) {
  if (threads < 0 || threads > most_threads) {
    throw std::invalid_argument(
        fmt::format("--threads must be from 0 (all) to {}, got {}", most_threads, threads));
  }
  return threads == 0 ? nullptr : std::make_unique<ThreadLimit>(threads);
}

ChosenLayer read_layer(const LayerOptions& o, const po::variables_map& values, Index width) {
  ChosenLayer chosen;
  const AttentionKind kind = parse_attention_kind(o.attention);
  chosen.mask = parse_mask(o.mask) == Mask::Kind::causal ? Mask::causal() : Mask::none();
  chosen.seed = parse_seed(o.seed);
  if (o.weights.ends_with(".npz")) {
    for (const char* name : {"dim", "heads"}) {
      if (!values[name].defaulted()) {
        throw std::invalid_argument(fmt::format(
            "--{} must not be given with --weights {}, which has its own", name, o.weights));
      }
    }
    LayerFile file = read_layer_file(o.weights, kind);
    chosen.layer = std::move(file.layer);
    chosen.notes = std::move(file.notes);
    return chosen;
  }
  if (o.dim < 1 || o.heads < 1) {
    throw std::invalid_argument("--dim and --heads must be at least 1");
  }
  const Index D = values["dim"].defaulted() && width > 0 ? width : o.dim;
  chosen.layer = initial_layer(parse_initialiser(o.weights), kind, D, o.heads, chosen.seed);
  return chosen;
}

}  // namespace lipsa::cli
