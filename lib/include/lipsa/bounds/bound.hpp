/// \file
/// A bound of a Lipschitz constant, with what it rests on.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "lipsa/linalg/norms.hpp"

namespace lipsa {

enum class BoundKind {
  as_printed,  ///< what the source's text says, letter by letter, true or not
  corrected,   ///< what the source's proof gives
  ours,
};

std::string_view to_string(BoundKind kind);  ///< "as printed", "corrected", "ours"

/// What one theorem says about one layer.
///
/// | the theorem                          | holds | value                    | reason          |
/// |--------------------------------------|-------|--------------------------|-----------------|
/// | gives a constant                     | true  | an upper bound of it     | empty           |
/// | says that no finite constant exists  | true  | +inf, as log10_value     | why             |
/// | does not speak of this layer         | false | NaN                      | what fails      |
/// | is false as printed                  | false | the printed formula's    | "refuted: …"    |
///
/// When it holds, value is at or above the theorem's constant, rounding covered, hence above the
/// Lipschitz constant. A constant beyond double has value +inf and a finite log10_value.
struct [[nodiscard]] Bound {
  std::string name{};
  double value = std::numeric_limits<double>::quiet_NaN();
  double log10_value = std::numeric_limits<double>::quiet_NaN();
  Norm norm = Norm::inf;
  std::string domain{};  ///< the set of X it speaks of
  bool holds = false;
  std::string reason{};
  std::string source{};
  BoundKind kind = BoundKind::ours;
  std::string statement{};  ///< the formula, in one line
};

}  // namespace lipsa
