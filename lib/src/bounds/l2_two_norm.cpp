#include "lipsa/bounds/l2_two_norm.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "bounds/l2_factors.hpp"
#include "core/ball.hpp"
#include "core/check.hpp"
#include "core/rounding.hpp"
#include "lipsa/bounds/lambert.hpp"

namespace lipsa {
namespace {

/// min over 0 < e < 1 of n^((1+e)/2)/(e exp 1), from above. The exponent that minimises it is
/// e = 2/ln n; any other is a bound too.
UpRounded kernel_moment(double n) {
  const double e = std::min(0.999, 2.0 / std::log(n));
  if (!(e > 0.0)) {
    return std::numeric_limits<double>::infinity();
  }
  const Ball log_n(std::log(n), 8.0 * Ball::u * std::log(n));
  const Ball power = exp(Ball(0.5) * (Ball(1.0) + Ball(e)) * log_n);
  const Ball euler(std::numbers::e, 0x1p-51);
  return (power / (Ball(e) * euler)).upper();
}

}  // namespace

L2Core l2_core(Index tokens, Index seen, Index seeing, Index others, ColumnRule rule) {
  require(tokens >= 1, "l2_core: tokens must be at least 1, got {}", tokens);
  require(seen >= 1 && seen <= tokens && seeing >= 1 && seeing <= tokens,
          "l2_core: seen and seeing must be in [1, {}], got {} and {}", tokens, seen, seeing);
  require(others >= seeing - 1 && others <= std::min(seeing, tokens - 1),
          "l2_core: others must be in [{}, {}], got {}", seeing - 1, std::min(seeing, tokens - 1),
          others);
  const UpRounded n = count_up(tokens);
  L2Core core{.c = upper_bound_phi_inverse(count_up(seen - 1)),
              .columns = count_up(seeing),
              .moment = count_up(others) * UpRounded(upper_bound_phi_inverse(1.0)),
              .tokens = n};
  if (rule != ColumnRule::counted) {
    const UpRounded factor = rule == ColumnRule::causal ? 2.0 : 1.0;
    core.columns = std::min(core.columns, sqrt(factor * n));
    if (tokens > 2) {
      core.moment = std::min(core.moment, sqrt(factor) * kernel_moment(count_up(tokens)));
    }
  }
  const UpRounded t = upper_bound_phi_inverse(count_up(others));
  core.moment = std::min(core.moment, t * (core.columns + 1.0));
  return core;
}

UpRounded l2_core_2(const L2Core& core) {
  const UpRounded plain = sqrt(core.tokens) * (4.0 * core.c + 1.0);
  const UpRounded split = sqrt(core.columns) + 2.0 * core.c + 2.0 * sqrt(core.c * core.moment);
  return std::min(plain, split);
}

UpRounded l2_core_rows(const L2Core& core) {
  return 1.0 + 4.0 * core.c;
}

UpRounded l2_core_columns(const L2Core& core) {
  return core.columns + 2.0 * core.c + 2.0 * core.moment +
         2.0 * sqrt(core.c * core.moment * core.columns);
}

UpRounded l2_core_interpolated(const L2Core& core, double p) {
  require(p >= 1.0, "l2_core_interpolated: p must be at least 1, got {}", p);
  const UpRounded rows = l2_core_rows(core);
  const UpRounded columns = l2_core_columns(core);
  if (p == 2.0) {
    return sqrt(rows * columns);
  }
  const Ball share = std::isinf(p) ? Ball(0.0) : Ball(1.0) / Ball(p);
  const auto log_of = [](const UpRounded& x) {  // x ≥ 1
    const double log = std::log(x.value());
    return Ball(log, 8.0 * Ball::u * (log + 1.0));
  };
  const Ball power = (Ball(1.0) - share) * log_of(rows) + share * log_of(columns);
  return std::min(std::max(rows, columns), UpRounded(exp(power).upper()));
}

}  // namespace lipsa
