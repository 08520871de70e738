/// \file
/// Proofs of witnesses in ball arithmetic.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "lipsa/core/types.hpp"
#include "lipsa/model/witness.hpp"

namespace lipsa {

struct VerifyOptions {
  Index min_bits = 64;    ///< precision of the first attempt; ≥ 32
  Index max_bits = 4096;  ///< it is doubled as long as this allows; ≥ min_bits, at most 10⁶
};

enum class Outcome {
  proved,
  refuted,
  undecided,  ///< the balls overlap at the highest precision
};

std::string_view to_string(Outcome outcome);  ///< "proved", "refuted", "undecided"

/// What is known of a claim. The ratio is |F(X) − F(Y)|_p / |X − Y|_p, |J(X) V|_p / |V|_p or
/// |M(p) v|_p / |v|_p.
struct [[nodiscard]] Verdict {
  Outcome outcome = Outcome::undecided;
  std::string reason{};                  ///< why it is refuted or undecided
  std::string ratio_lower_text = "0";    ///< certified, at most 17 digits, rounded downwards
  std::string ratio_upper_text = "inf";  ///< certified, at most 17 digits, rounded upwards
  double ratio_lower_bound = 0.0;        ///< the same as doubles
  double ratio_upper_bound = std::numeric_limits<double>::infinity();
  Index bits = 0;  ///< the precision that decided, or the highest tried
};

/// Decides a claim in ball arithmetic (Arb), with none of the code that computes Jacobians and
/// lower bounds elsewhere: the map, its derivative and the norms are evaluated from their
/// definitions in numbers with rigorous error bounds, whose precision is doubled until they tell
/// both sides apart. Doubles are exact, and so is the scale 1/√d of a layer that names none. The
/// claimed radius is compared exactly.
///
/// Proved means: the inequality is strict in real numbers, every token lies within the radius, and
/// the named bound, if any, is an entry of the catalogue for this norm, this kind of attention,
/// this mask and this number of tokens, whose value (rounded upwards) is at most K. Trusted are
/// FLINT, the layer's definition in search/ball_attention.cpp, and for the named bound the
/// catalogue.
///
/// A direction with |J(X) V|_p > K |V|_p shows that K is no Lipschitz constant of any set in whose
/// interior X lies; a pair, of any convex set that holds both.
///
/// Equality is not decided unless the numbers in it are exact binary fractions.
///
/// \throws std::invalid_argument  an option out of range, an invalid witness, a bound of no entry's
///         name
/// \test   tests/search/certificate_test.cpp
Verdict verify(const Witness& witness, const VerifyOptions& options = {});

}  // namespace lipsa
