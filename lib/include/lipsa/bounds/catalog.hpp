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
#include "lipsa/bounds/normalisation.hpp"
#include "lipsa/bounds/up_rounded.hpp"

namespace lipsa {

/// The map X ↦ attend(layer, X, mask), and where its Lipschitz constant is asked for: on all X, on
/// a ball of tokens, at one X or around it. Borrows what it names.
///
/// What is given narrows the question, and every theorem of a domain that contains it answers:
/// with `x` alone the question is |J(x)|, which bounds for all X bound too. `radius` must hold for
/// the tokens of `x`, and for all within `around` of it.
struct BoundSetting {
  const MultiHead& layer;
  const Mask& mask;
  Index tokens = 1;  ///< n ≥ 1
  /// The domain is |x_i|₂ ≤ radius for every token; infinite: all X. > 0.
  double radius = std::numeric_limits<double>::infinity();
  const Matrix* x = nullptr;  ///< n × D, finite, or none
  /// With x: the domain is |X' − x|_F ≤ around, 0 for x alone. ≥ 0, finite.
  double around = 0.0;
  /// Of a normalisation beside the layer, which theorems about such maps speak of; or none.
  const Normalisation* normalisation = nullptr;
};

/// What a theorem's formula comes to: the part of a Bound that depends on the layer.
struct Evaluation {
  bool holds = false;
  std::optional<UpRounded> value{};  ///< none: NaN
  std::string reason{};
};

/// A setting with the norms of weights and tokens that several theorems ask for.
class BoundContext;

/// A theorem about one kind of attention, or another map in a layer, in one norm.
struct CatalogEntry {
  std::string_view name{};       ///< unique; the column of a table
  std::string_view statement{};  ///< the formula, in one line
  std::string_view source{};     ///< author, venue, year, theorem
  /// What it, or its refutation, rests on, as proofs/README.md says it: theorems that Coq has
  /// checked, as File.theorem; "derivation N", on that page; "published", the source's own proof.
  /// Empty: a refutation that is a sentence.
  std::string_view proof{};
  Domain domain = Domain::everywhere;
  Subject subject = Subject::attention;
  AttentionKind attention = AttentionKind::l2;  ///< of the subject attention
  Norm norm = Norm::inf;
  BoundKind kind = BoundKind::ours;
  std::string_view refutation{};  ///< not empty: it is known to be false, and this is why
  /// Of a valid setting of its kind whose domain lies within that of the entry.
  Evaluation (*formula)(const BoundContext&) = nullptr;

  /// The theorem at this layer: hypotheses checked, value rounded upwards. A layer of another kind,
  /// or a domain it does not contain, fails a hypothesis.
  ///
  /// \throws std::invalid_argument  the layer is invalid, tokens < 1, the mask is made for another
  ///         number of tokens, radius is not positive, x does not fit or leaves the radius
  Bound evaluate(const BoundSetting& setting) const;
};

/// All entries, ordered by the names of the files in lib/src/bounds/entries, then as they stand
/// there.
///
/// \test tests/bounds/catalog_test.cpp
std::span<const CatalogEntry> catalog();

/// \throws std::invalid_argument  no entry has that name; the message lists those there are
const CatalogEntry& find_entry(std::string_view name);

/// Every entry that speaks of this kind of attention, or of the softmax or the normalisation in it,
/// in this norm, evaluated, in the catalogue's order. Of the softmax at X: the largest of all rows
/// and heads.
///
/// \throws std::invalid_argument  as CatalogEntry::evaluate
std::vector<Bound> bounds_for(const BoundSetting& setting, Norm norm,
                              Subject subject = Subject::attention);

/// Those of the entries that speak of the layer's kind of attention and of exactly this domain,
/// each at its place; what they have in common is computed once.
///
/// \throws std::invalid_argument  as CatalogEntry::evaluate
std::vector<std::optional<Bound>> evaluate_entries(const BoundSetting& setting,
                                                   std::span<const CatalogEntry* const> entries,
                                                   Domain domain);

/// The smallest of those about attention that holds, the first among equals; not of those
/// from_point when the question is a ball around x. When there is none, a Bound that does not hold,
/// whose reason lists theirs.
///
/// \throws std::invalid_argument  as CatalogEntry::evaluate
Bound best_bound(const BoundSetting& setting, Norm norm);

}  // namespace lipsa
