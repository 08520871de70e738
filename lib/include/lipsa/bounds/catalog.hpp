/// \file
/// Every bound this library knows, evaluated for a layer with its hypotheses checked.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/bounds/bound.hpp"
#include "lipsa/bounds/up_rounded.hpp"

namespace lipsa {

/// The map X ↦ attend(layer, X, mask) whose Lipschitz constant is asked for. Borrows both.
struct BoundSetting {
  const MultiHead& layer;
  const Mask& mask;
  Index tokens = 1;  ///< n ≥ 1
  /// The domain is |x_i|₂ ≤ radius for every token; infinite: all X. > 0.
  double radius = std::numeric_limits<double>::infinity();
};

/// What a theorem's formula comes to: the part of a Bound that depends on the layer.
struct Evaluation {
  bool holds = false;
  std::optional<UpRounded> value{};  ///< none: NaN
  std::string reason{};
};

/// A theorem about one kind of attention in one norm.
struct CatalogEntry {
  std::string_view name{};       ///< unique; the column of a table
  std::string_view statement{};  ///< the formula, in one line
  std::string_view source{};     ///< author, venue, year, theorem
  std::string_view domain{};     ///< the set of X it speaks of
  AttentionKind attention = AttentionKind::l2;
  Norm norm = Norm::inf;
  BoundKind kind = BoundKind::ours;
  Evaluation (*formula)(const BoundSetting&) = nullptr;  ///< of a valid setting of its kind

  /// The theorem at this layer: hypotheses checked, value rounded upwards. A layer of another
  /// kind fails a hypothesis.
  ///
  /// \throws std::invalid_argument  the layer is invalid, tokens < 1, the mask is made for another
  ///         number of tokens, radius is not positive
  Bound evaluate(const BoundSetting& setting) const;
};

/// All entries, ordered by the names of the files in lib/src/bounds/entries, then as they stand
/// there.
///
/// \test tests/bounds/catalog_test.cpp
std::span<const CatalogEntry> catalog();

/// \throws std::invalid_argument  no entry has that name; the message lists those there are
const CatalogEntry& find_entry(std::string_view name);

/// Every entry that speaks of this kind of attention in this norm, evaluated, in the catalogue's
/// order.
///
/// \throws std::invalid_argument  as CatalogEntry::evaluate
std::vector<Bound> bounds_for(const BoundSetting& setting, Norm norm);

/// The smallest of them that holds and is not as printed, the first among equals. When there is
/// none, a Bound that does not hold, whose reason lists theirs.
///
/// \throws std::invalid_argument  as CatalogEntry::evaluate
Bound best_bound(const BoundSetting& setting, Norm norm);

}  // namespace lipsa
