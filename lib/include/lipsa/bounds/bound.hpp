/// \file
/// A bound of a Lipschitz constant, with what it rests on.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "lipsa/linalg/norms.hpp"

namespace lipsa {

/// Where a formula comes from. Whether it may be trusted, `Bound::holds` says.
enum class BoundKind {
  as_printed,  ///< what the source's text says, letter by letter, true or not
  corrected,   ///< what the source's argument gives when worked out again: where the text differs,
               ///< or could not be compared
  ours,
  misapplied,  ///< a theorem carried beyond its hypotheses, as programs in use do: false
};

std::string_view to_string(BoundKind kind);  ///< "as printed", "corrected", "ours", "misapplied"

/// The map whose Lipschitz constant a theorem bounds.
enum class Subject {
  attention,      ///< X ↦ attend(layer, X, mask)
  softmax,        ///< scores of a row ↦ weights of the row
  normalisation,  ///< a token ↦ the token normalised, see normalisation.hpp
};

std::string_view to_string(Subject subject);  ///< "attention", "softmax", "normalisation"

/// The set of X a theorem speaks of.
enum class Domain {
  everywhere,    ///< all X
  token_ball,    ///< |x_i|_2 ≤ R for every token
  around_point,  ///< |X' − X|_F ≤ ε
  from_point,  ///< pairs of X and an X' with |X' − X|_F ≤ ε: |F(X') − F(X)|_F ≤ L |X' − X|_F
  point,       ///< X alone: a bound of |J(X)|
};

/// "all X", "|x_i|_2 <= R", "|X' - X|_F <= eps", "from X to
/// |X' - X|_F <= eps", "at X"
std::string_view to_string(Domain domain);

/// What one theorem says about one layer.
///
/// | the theorem                          | holds | value                    | reason          |
/// |--------------------------------------|-------|--------------------------|-----------------|
/// | gives a constant                     | true  | an upper bound of it     | empty           |
/// | says that no finite constant exists  | true  | +inf, as log10_value     | why             |
/// | does not speak of this layer         | false | NaN                      | what fails      |
/// | is known to be false                 | false | the formula's            | "refuted: …"    |
///
/// When it holds, value is at or above the theorem's constant, rounding covered, hence above the
/// Lipschitz constant on its domain: on the ball around X for around_point, but for from_point only
/// that of pairs with X, which includes |J(X)| and not |J| elsewhere in the ball. A constant beyond
/// double has value +inf and a finite log10_value.
struct [[nodiscard]] Bound {
  std::string name{};
  double value = std::numeric_limits<double>::quiet_NaN();
  double log10_value = std::numeric_limits<double>::quiet_NaN();
  Subject subject = Subject::attention;
  Norm norm = Norm::inf;
  Domain domain = Domain::everywhere;
  bool holds = false;
  bool refuted = false;  ///< it is known to be false, for this layer or another
  std::string reason{};
  std::string source{};
  std::string proof{};  ///< what it, or its refutation, rests on, see CatalogEntry::proof
  BoundKind kind = BoundKind::ours;
  std::string statement{};  ///< the formula, in one line
};

}  // namespace lipsa
