/// \file
/// Searching for a layer and tokens that violate a bound, and making what was found small.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lipsa/model/witness.hpp"

namespace lipsa {

struct RefuteOptions {
  std::int64_t trials = 20000;  ///< of each of the searches by sampling; ≥ 0
  std::uint64_t seed = 0;
};

struct [[nodiscard]] Refutation {
  std::optional<Witness> witness{};  ///< proved by verify(); none: not refuted
  std::string found_by{};            ///< "small layers", "random layers", "scaling"
  double ratio_lower_bound = 0.0;    ///< certified, of the witness
  double worst_ratio = 0.0;  ///< largest norm/bound seen, an estimate; where none was refuted
  std::int64_t tried = 0;    ///< settings in which the bound gave a number to compare
};

/// The claims that may be refuted: the names of the catalogue, and "softmax_quarter", which says
/// that the softmax is ¼-Lipschitz.
std::vector<std::string> claims();

/// Tries to violate the claim, in the order
///
/// 1. small layers: one head, D ≤ 2, n ≤ 3, entries that are zero, small integers or simple
/// fractions;
/// 2. random layers: the trials of falsify(), short ascents among them;
/// 3. scaling: from the worst of both, each weight, the scale and X times powers of two, uphill:
/// where a
///    formula has another degree of homogeneity than the map, this finds it.
///
/// What violates is then simplified as long as it does: tokens are left out, entries rounded to
/// zero, to whole numbers, to one digit. The same options give the same witness.
///
/// \throws std::invalid_argument  no claim has that name; trials < 0
/// \test   tests/search/refute_test.cpp
Refutation refute(const std::string& claim, const RefuteOptions& options = {});

}  // namespace lipsa
