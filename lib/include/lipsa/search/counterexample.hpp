/// \file
/// Pairs of inputs that show a layer not to be Lipschitz with a given constant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/model/witness.hpp"

namespace lipsa {

struct CounterexampleOptions {
  Norm norm = Norm::two;
  double exceed = 1.0;  ///< K, > 0 and at most 1e100
  Index restarts = 20;  ///< of the ascent, for layers whose norm does not grow
  std::uint64_t seed = 0;
};

/// What was found about "F is Lipschitz with constant K".
struct [[nodiscard]] Counterexample {
  enum class Outcome {
    found,         ///< the claim is false: witness is proved by verify()
    impossible,    ///< the claim is true: reason names the bound or the affine map
    inconclusive,  ///< neither was shown
  };
  Outcome outcome = Outcome::inconclusive;
  std::string reason{};
  std::optional<Witness> witness{};
  double ratio_lower_bound =
      0.0;  ///< certified; of the witness, or of the best pair when none suffices
};

/// A pair with |F(X) − F(Y)|_p > K |X − Y|_p, each entry a double, proved in ball arithmetic.
///
/// For dot and l2_untied, whose J grows with the square of the token radius: token i sees itself
/// and a token j, x_j = x_i + t e_b, and all others lie at x_i, where x_i makes head h indifferent
/// between them. With κ the row b of W_K,
///
///     dot        a·x_i + b_Q·κ = 0,                       a = W_Q κ
///     l2_untied  a·x_i + (b_Q − b_K)·κ − ½ t |κ|² = 0,    a = (W_Q − W_K) κ
///
/// is solved coordinate by coordinate with residuals in ball arithmetic: each double takes sixteen
/// digits off the residual, which must fall below the reciprocal of t. Then moving x_i by
/// h ∼ 1/(s t |a|) changes attention by a fixed fraction, and the output by t times that. t is the
/// smallest that suffices, within a percent. D = 1 with values that have no common binary fraction
/// leaves no room for it beyond some t; then the outcome is inconclusive and says what was reached.
///
/// For the other kinds the ascent's best point is tried, and bounds of the catalogue decide when K
/// is at or above one.
///
/// \throws std::invalid_argument  an option out of range, an invalid layer
/// \test   tests/search/counterexample_test.cpp
Counterexample find_counterexample(const MultiHead& layer, const Mask& mask, Index tokens,
                                   const CounterexampleOptions& options);

}  // namespace lipsa
