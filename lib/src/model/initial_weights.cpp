#include "lipsa/model/initial_weights.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/check.hpp"
#include "lipsa/attention/cosine.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {

std::string to_string(const Initialiser& initialiser) {
  switch (initialiser.kind) {
    case Initialiser::Kind::identity:
      return "identity";
    case Initialiser::Kind::glorot:
      return "glorot";
    case Initialiser::Kind::gaussian:
      return fmt::format("gaussian:{}", initialiser.sigma);
  }
  return "unknown";
}

Initialiser parse_initialiser(std::string_view text) {
  if (text == "identity") {
    return {Initialiser::Kind::identity};
  }
  if (text == "glorot") {
    return {Initialiser::Kind::glorot};
  }
  constexpr std::string_view prefix = "gaussian:";
  Initialiser gaussian{Initialiser::Kind::gaussian, 0.0};
  if (text.starts_with(prefix)) {
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + prefix.size(), last, gaussian.sigma);
    if (error == std::errc() && end == last && std::isfinite(gaussian.sigma) &&
        gaussian.sigma > 0.0) {
      return gaussian;
    }
  }
  throw std::invalid_argument(fmt::format(
      "weights must be identity, glorot or gaussian:SIGMA with SIGMA > 0, got '{}'", text));
}

MultiHead initial_layer(const Initialiser& initialiser, AttentionKind kind, Index D, Index H,
                        std::uint64_t seed) {
  require(D >= 1 && H >= 1, "initial_layer: D and H must be at least 1, got {} and {}", D, H);
  require(D % H == 0, "initial_layer: H must divide D = {}, got {}", D, H);
  // One stream a matrix, so that kinds without W_K have the other matrices of those with one.
  const auto weight = [&](std::uint64_t stream) -> Matrix {
    Rng rng(seed, 0x7765696768747300U, stream);  // "weights": apart from the streams of searches
    switch (initialiser.kind) {
      case Initialiser::Kind::identity:
        break;
      case Initialiser::Kind::glorot: {
        const double limit = std::sqrt(6.0 / static_cast<double>(D + D));
        return uniform_matrix(rng, D, D, -limit, limit);
      }
      case Initialiser::Kind::gaussian:
        return initialiser.sigma * normal_matrix(rng, D, D);
    }
    return Matrix::Identity(D, D);
  };
  return {.kind = kind,
          .heads = H,
          .W_Q = weight(0),
          .W_K = kind == AttentionKind::l2 ? Matrix() : weight(1),
          .W_V = weight(2),
          .W_O = weight(3),
          .epsilon = kind == AttentionKind::cosine ? default_epsilon : 0.0};
}

}  // namespace lipsa
