/// \file
/// What the entries of the catalogue are written with. Private to lib/.
///
/// A file `entries/NAME.cpp` defines `std::span<const CatalogEntry> NAME_entries()`; lib/CMakeLists
/// finds it and writes the list of all.
#pragma once

#include <string>
#include <vector>

#include "lipsa/bounds/catalog.hpp"

namespace lipsa {

/// The theorem gives this constant.
inline Evaluation gives(const UpRounded& value) {
  return {.holds = true, .value = value};
}

/// The theorem does not speak of this layer.
inline Evaluation fails(std::string reason) {
  return {.reason = std::move(reason)};
}

/// Of a mask at n tokens: what theorems ask of it.
struct MaskFacts {
  Index most_seen = 0;            ///< the most tokens that any token sees
  Index most_seeing = 0;          ///< the most tokens that see any token
  Index most_others = 0;          ///< the most tokens other than itself that see any token
  Index hidden_from_itself = -1;  ///< the first token that sees others and not itself; −1: none
  bool mixes = false;             ///< some token sees itself and another
};

MaskFacts mask_facts(const Mask& mask, Index tokens);

/// Why theorems of tied L2 attention do not speak of this mask; empty when they do.
std::string hidden_token(const BoundContext& context);

/// Why theorems of attention without masks do not speak of it; empty when they do.
std::string masked(const BoundContext& context);

/// Why theorems about scores x_iᵀ A x_j do not speak of a layer with biases; empty when they do.
std::string biased(const BoundContext& context);

/// The first that is not empty, as a failure, or what the formula gives.
template <class F>
Evaluation unless(std::initializer_list<std::string> reasons, const F& formula) {
  for (const std::string& reason : reasons) {
    if (!reason.empty()) {
      return fails(reason);
    }
  }
  return gives(formula());
}

/// The entries of all files, in the order of catalog(); generated.
std::vector<CatalogEntry> all_entries();

}  // namespace lipsa
