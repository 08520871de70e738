#include "lipsa/bounds/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/ball.hpp"
#include "core/check.hpp"
#include "core/rounding.hpp"

namespace lipsa {
namespace {

void require_weights(std::string_view function, const ConstVectorRef& lower,
                     const ConstVectorRef& upper) {
  require(lower.size() == upper.size() && lower.size() >= 1,
          "{}: lower and upper must have one length, got {} and {}", function, lower.size(),
          upper.size());
  require((lower.array() >= 0.0).all() && (lower.array() <= upper.array()).all() &&
              (upper.array() <= 1.0).all(),
          "{}: entries must satisfy 0 <= lower <= upper <= 1", function);
}

/// The two largest entries; the second is zero for one entry.
std::pair<double, double> two_largest(const ConstVectorRef& p) {
  double first = 0.0;
  double second = 0.0;
  for (const double x : p) {
    if (x > first) {
      second = first;
      first = x;
    } else {
      second = std::max(second, x);
    }
  }
  return {first, second};
}

/// max of p (1 − p) over [lower, upper].
double largest_variance(double lower, double upper) {
  const double p = std::clamp(0.5, lower, upper);
  return mul_up(p, next_up(1.0 - p));
}

/// Whether λ I − diag(p) + p pᵀ is positive semidefinite for the doubles p, at most one of which
/// exceeds λ: one negative diagonal entry, lifted by p pᵀ when 1 + Σ p²/(λ − p) ≤ 0.
bool covers(double lambda, const ConstVectorRef& p) {
  Ball sum(1.0);
  bool lifted = false;
  for (const double x : p) {
    if (x == lambda) {
      return false;
    }
    lifted = lifted || x > lambda;
    sum += Ball(x) * Ball(x) / -(Ball(x) - Ball(lambda));
  }
  return !lifted || sum.upper() <= 0.0;
}

}  // namespace

double softmax_norm_2(const ConstVectorRef& p) {
  require_weights("softmax_norm_2", p, p);
  const auto [first, second] = two_largest(p);
  double low = second;
  double high = first;
  while (true) {  // Σ p/(p − λ) falls from +inf at p_(1)⁻ … to −inf at p_(2)⁺ as λ falls
    const double middle = low + 0.5 * (high - low);
    if (!(middle > low && middle < high)) {
      return high;
    }
    double sum = 0.0;
    for (const double x : p) {
      sum += x / (x - middle);
    }
    (sum > 0.0 ? high : low) = middle;
  }
}

double softmax_norm_inf(const ConstVectorRef& p) {
  require_weights("softmax_norm_inf", p, p);
  double largest = 0.0;
  for (const double x : p) {
    largest = std::max(largest, 2.0 * x * (1.0 - x));
  }
  return largest;
}

double upper_bound_softmax_norm_2(const ConstVectorRef& lower, const ConstVectorRef& upper) {
  require_weights("upper_bound_softmax_norm_2", lower, upper);
  const Vector p = lower + 0.5 * (upper - lower);
  // |M(p + δ) − M(p)|_2 ≤ |δ|_inf + 2 |p|_2 |δ|_2 + |δ|_2², |p|_2 ≤ |p|_1 ≤ 1 + |δ|_1 …: with every
  // |δ_i| ≤ upper_i − lower_i.
  double one = 0.0;
  for (Index i = 0; i < p.size(); ++i) {
    one = add_up(one, next_up(upper(i) - lower(i)));
  }
  const double shift = one == 0.0 ? 0.0 : mul_up(one, add_up(3.0, mul_up(3.0, one)));
  const double first = two_largest(p).first;
  double bound = first;  // M(p) ≤ diag(p)
  double lambda = softmax_norm_2(p);
  for (int step = 0; step < 8 && lambda < first; ++step) {
    if (covers(lambda, p)) {
      bound = lambda;
      break;
    }
    lambda *= 1.0 + std::ldexp(1.0, -50 + 4 * step);
  }
  return std::min({add_up(bound, shift), upper_bound_softmax_g1(lower, upper), softmax_lipschitz});
}

double upper_bound_softmax_g1(const ConstVectorRef& lower, const ConstVectorRef& upper) {
  require_weights("upper_bound_softmax_g1", lower, upper);
  const auto [first, second] = two_largest(upper);
  const double least = two_largest(lower).first;
  // f(x) = x (1 + p_(2) − x) grows up to x = (1 + p_(2))/2; as p_(1) ≤ 1 − p_(2), it is at most
  // ¼ (1 + p_(2))² there.
  const double top = std::clamp(0.5 * (1.0 + second), least, first);
  const double value = mul_up(top, add_up(next_up(1.0 - top), second));
  return std::min(add_up(value, 0x1p-52), softmax_lipschitz);
}

double upper_bound_softmax_norm_inf(const ConstVectorRef& lower, const ConstVectorRef& upper) {
  require_weights("upper_bound_softmax_norm_inf", lower, upper);
  double largest = 0.0;
  for (Index i = 0; i < lower.size(); ++i) {
    largest = std::max(largest, 2.0 * largest_variance(lower(i), upper(i)));
  }
  return std::min(largest, softmax_lipschitz);
}

double upper_bound_softmax_trace(const ConstVectorRef& lower, const ConstVectorRef& upper) {
  require_weights("upper_bound_softmax_trace", lower, upper);
  Ball squares;
  for (const double x : lower) {
    squares += Ball(x) * Ball(x);
  }
  return std::min(1.0, next_up(1.0 - std::max(0.0, squares.lower())));
}

double upper_bound_softmax_norm_inf_1(const ConstVectorRef& lower, const ConstVectorRef& upper) {
  require_weights("upper_bound_softmax_norm_inf_1", lower, upper);
  const double least = two_largest(lower).first;
  return least >= 0.5 ? std::min(1.0, 4.0 * largest_variance(least, two_largest(upper).first))
                      : 1.0;
}

}  // namespace lipsa
