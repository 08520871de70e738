#include "lipsa/search/certificate.hpp"

#include <cmath>

#include "core/check.hpp"
#include "core/rounding.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/linalg/norms.hpp"
#include "search/arb.hpp"
#include "search/ball_attention.hpp"

namespace lipsa {
namespace {

constexpr Index most_bits = 1000000;
constexpr slong enough_digits = 60;  // bits that 17 decimal digits want, with some to spare

/// The power of |x|_p that needs no root, and so is exact when the entries are few-bit numbers.
unsigned power_of(Norm p) {
  return p == Norm::two || p == Norm::max_token ? 2 : 1;
}

/// |x|_p to that power, for a token matrix.
Real norm_power(const Reals& x, Norm p, Index bits) {
  Real result;
  Real entry;
  for (Index i = 0; i < x.rows(); ++i) {
    Real row;
    for (Index a = 0; a < x.cols(); ++a) {
      if (p == Norm::two || p == Norm::max_token) {
        arb_sqr(entry, x(i, a), bits);
      } else {
        arb_abs(entry, x(i, a));
      }
      if (p == Norm::inf) {
        arb_max(row, row, entry, bits);
      } else {
        arb_add(row, row, entry, bits);
      }
    }
    if (p == Norm::one || p == Norm::two) {
      arb_add(result, result, row, bits);
    } else {
      arb_max(result, result, row, bits);
    }
  }
  return result;
}

/// X − Y without any rounding.
Reals exact_difference(const Matrix& x, const Matrix& y) {
  Reals difference(x);
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index a = 0; a < x.cols(); ++a) {
      const Real other(y(i, a));
      arb_sub(difference(i, a), difference(i, a), other, ARF_PREC_EXACT);
    }
  }
  return difference;
}

/// The first token of x outside the radius, by exact comparison; -1 when there is none.
Index outside(const Matrix& x, double radius) {
  if (std::isinf(radius)) {
    return -1;
  }
  Real limit(radius);
  arb_mul(limit, limit, limit, ARF_PREC_EXACT);
  for (Index i = 0; i < x.rows(); ++i) {
    Real sum;
    for (Index a = 0; a < x.cols(); ++a) {
      const Real entry(x(i, a));
      arb_addmul(sum, entry, entry, ARF_PREC_EXACT);
    }
    if (arb_le(sum, limit) == 0) {
      return i;
    }
  }
  return -1;
}

/// Why the witness does not refute the bound that it names; empty when it does, or names none.
std::string bound_not_reached(const Witness& w) {
  if (w.bound.empty()) {
    return {};
  }
  const CatalogEntry& entry = find_entry(w.bound);
  const bool softmax = w.form == WitnessForm::softmax;
  if ((entry.subject == Subject::softmax) != softmax || entry.subject == Subject::normalisation) {
    return fmt::format("the bound {} speaks of {}, the witness of {}", w.bound,
                       to_string(entry.subject), softmax ? "the softmax alone" : "attention");
  }
  if (entry.norm != w.norm) {
    return fmt::format("the bound {} speaks of the norm {}, the witness of {}", w.bound,
                       to_string(entry.norm), to_string(w.norm));
  }
  if (softmax && entry.domain != Domain::everywhere) {
    return fmt::format("the bound {} speaks of attention at X, the witness of scores alone",
                       w.bound);
  }
  const Matrix unit = Matrix::Ones(1, 1);
  const MultiHead any{.W_Q = unit, .W_K = unit, .W_V = unit};  // where only the softmax matters
  BoundSetting setting{
      .layer = softmax ? any : w.layer, .mask = w.mask, .tokens = w.x.rows(), .radius = w.radius};
  const bool pairs = entry.domain == Domain::around_point || entry.domain == Domain::from_point;
  if (entry.domain == Domain::point || pairs) {  // what it speaks of is said by X, and Y
    if ((w.form == WitnessForm::pair) != pairs) {
      return fmt::format("the bound {} speaks of {}, which a witness of form {} does not refute",
                         w.bound, to_string(entry.domain), to_string(w.form));
    }
    setting.radius = std::numeric_limits<double>::infinity();
    setting.x = &w.x;
    setting.around = pairs ? mul_up(upper_bound_norm_frobenius(w.y - w.x), 1.0 + 0x1p-50) : 0.0;
  }
  const Bound bound = entry.evaluate(setting);
  if (std::isnan(bound.value)) {
    return fmt::format("the bound {} does not speak of this layer: {}", w.bound, bound.reason);
  }
  if (!(w.exceeds >= bound.value)) {
    return fmt::format("K = {} lies below the bound {}, which is {} here", w.exceeds, w.bound,
                       bound.value);
  }
  return {};
}

std::string refuted_at_sight(const Witness& w) {
  if (w.form == WitnessForm::pair && w.x == w.y) {
    return "X = Y";
  }
  if (w.form != WitnessForm::pair && w.y.isZero(0.0)) {
    return w.form == WitnessForm::direction ? "V = 0" : "v = 0";
  }
  for (const Matrix* tokens : {&w.x, &w.y}) {
    if (tokens == &w.y && w.form != WitnessForm::pair) {
      continue;
    }
    const Index i = outside(*tokens, w.radius);
    if (i >= 0) {
      return fmt::format("token {} of {} lies outside the radius {}", i, tokens == &w.y ? "Y" : "X",
                         w.radius);
    }
  }
  return bound_not_reached(w);
}

Reals numerator(const Witness& w, Index bits) {
  switch (w.form) {
    case WitnessForm::pair:
      return ball_difference(w.layer, w.mask, w.x, w.y, bits);
    case WitnessForm::direction:
      return ball_derivative(w.layer, w.mask, w.x, w.y, bits);
    case WitnessForm::softmax:
      break;
  }
  return ball_softmax_derivative(w.x, w.y, bits);
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::proved:
      return "proved";
    case Outcome::refuted:
      return "refuted";
    case Outcome::undecided:
      return "undecided";
  }
  return "unknown";
}

Verdict verify(const Witness& w, const VerifyOptions& options) {
  require(options.min_bits >= 32, "verify: min_bits must be at least 32, got {}", options.min_bits);
  require(options.max_bits >= options.min_bits && options.max_bits <= most_bits,
          "verify: max_bits must be from min_bits = {} to {}, got {}", options.min_bits, most_bits,
          options.max_bits);
  require_valid(w);
  use_flint_on_this_thread();
  Verdict verdict;
  verdict.reason = refuted_at_sight(w);
  if (!verdict.reason.empty()) {
    verdict.outcome = Outcome::refuted;
    return verdict;
  }

  const Reals step = w.form == WitnessForm::pair ? exact_difference(w.x, w.y) : Reals(w.y);
  const unsigned power = power_of(w.norm);
  for (Index bits = options.min_bits; bits <= options.max_bits; bits *= 2) {
    const bool decided = verdict.outcome != Outcome::undecided;
    const Real above = norm_power(numerator(w, bits), w.norm, bits);
    const Real below = norm_power(step, w.norm, bits);
    Real limit(w.exceeds);
    arb_pow_ui(limit, limit, power, bits);
    arb_mul(limit, limit, below, bits);
    // Comparisons hold for all numbers in the balls, and never for NaN.
    if (arb_gt(above, limit) != 0) {
      verdict.outcome = Outcome::proved;
    } else if (arb_le(above, limit) != 0) {
      verdict.outcome = Outcome::refuted;
    }
    Real ratio;
    arb_div(ratio, above, below, bits);
    if (power == 2) {
      arb_sqrtpos(ratio, ratio, bits);
    }
    verdict.ratio_lower_text = ratio.lower_text();
    verdict.ratio_upper_text = ratio.upper_text();
    verdict.ratio_lower_bound = std::max(ratio.lower(), 0.0);
    verdict.ratio_upper_bound = ratio.upper();
    if (!decided) {
      verdict.bits = bits;
    }
    // One more attempt, for the digits of the ratio, is all that a decided claim gets.
    if (decided ||
        (verdict.outcome != Outcome::undecided && arb_rel_accuracy_bits(ratio) >= enough_digits)) {
      break;
    }
  }
  if (verdict.outcome == Outcome::refuted) {
    verdict.reason = fmt::format("the ratio is at most {}", verdict.ratio_upper_text);
  } else if (verdict.outcome == Outcome::undecided) {
    verdict.reason = fmt::format("the ratio lies in [{}, {}] for all that {} bits tell",
                                 verdict.ratio_lower_text, verdict.ratio_upper_text, verdict.bits);
  }
  return verdict;
}

}  // namespace lipsa
