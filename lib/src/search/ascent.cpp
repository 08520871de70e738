#include "lipsa/search/ascent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/check.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/attention/local_norm.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "lipsa/search/starts.hpp"
#include "search/token_gain.hpp"

namespace lipsa {
namespace {

constexpr Index reductions = 7;  // of the step, each to a quarter
constexpr double reduction = 0.25;
constexpr double default_range = 10.0;

/// |J(X)|_p with a pair (u, v) that attains it, and what of J was looked at.
struct Gain {
  double value = 0.0;
  Vector u{};
  Vector v{};
};

bool usable(const Vector& v) {
  return v.allFinite() && !v.isZero(0.0);
}

class Objective {
 public:
  Objective(const MultiHead& layer, const Mask& mask, Index n, Norm p)
      : layer_(layer), mask_(mask), p_(p) {
    const Index probe = probe_token(layer.kind, mask, n);
    if ((p == Norm::inf || p == Norm::max_token) && probe >= 0) {
      outputs_ = {probe, 1};
    } else {
      outputs_ = {0, n};
    }
  }

  Jacobian at(const Matrix& x) const { return {layer_, x, mask_, outputs_}; }
  TokenRange outputs() const { return outputs_; }

  /// The largest gain; for p = 2 that of v after two power steps, or to the end when `final`.
  Gain gain(const Jacobian& j, const Vector& start, bool final) const {
    Gain g{.u = Vector::Zero(j.rows()), .v = Vector::Zero(j.cols())};
    switch (p_) {
      case Norm::inf: {
        const Index row = outputs_.count == 1 ? -1 : j.norm_inf().index;
        const Index D_out = layer_.output_width();
        const Matrix block = j.row_block(row < 0 ? 0 : row / D_out);
        Index best = row < 0 ? -1 : row % D_out;
        const Vector sums = block.cwiseAbs().rowwise().sum();
        g.value = best < 0 ? sums.maxCoeff<Eigen::PropagateNaN>(&best) : sums(best);
        g.u(row < 0 ? best : row) = 1.0;
        g.v = block.row(best).unaryExpr([](double e) { return e < 0.0 ? -1.0 : 1.0; }).transpose();
        break;
      }
      case Norm::max_token: {
        const Index D_out = layer_.output_width();
        const TokenGain largest = largest_token_gain(j, layer_);
        g.value = largest.gain.value;
        g.v = largest.gain.v;
        g.u.segment(largest.token * D_out, D_out) = largest.gain.u;
        break;
      }
      case Norm::one: {
        const AttainedNorm norm = j.norm_1();
        g.value = norm.value;
        g.v(norm.index) = 1.0;
        j.apply(g.v, g.u);
        g.u = g.u.unaryExpr([](double e) { return e < 0.0 ? -1.0 : 1.0; });
        break;
      }
      case Norm::two:
        if (final) {
          const SpectralNorm norm = spectral_norm(j, {.start = start});
          g.value = norm.value;
          g.v = norm.right_vector;
          break;
        }
        g.v = start;
        for (int step = 0; step < 2; ++step) {
          j.apply(g.v, g.u);
          g.u.stableNormalize();  // before the second product: squares of |J| may overflow
          Vector next(j.cols());
          j.apply_adjoint(g.u, next);
          next.stableNormalize();
          if (!usable(next)) {
            break;
          }
          g.v = next;
        }
        j.apply(g.v, g.u);
        g.value = g.u.stableNorm() / g.v.stableNorm();
        g.u.stableNormalize();
        break;
    }
    return g;
  }

 private:
  const MultiHead& layer_;
  const Mask& mask_;
  Norm p_;
  TokenRange outputs_{};
};

/// Adam (Kingma & Ba), uphill.
class Adam {
 public:
  Adam(Index rows, Index cols) : m_(Matrix::Zero(rows, cols)), v_(Matrix::Zero(rows, cols)) {}

  Matrix step(const Matrix& gradient, double rate) {
    ++t_;
    m_ = 0.9 * m_ + 0.1 * gradient;
    v_ = 0.999 * v_ + 0.001 * gradient.cwiseAbs2();
    const double first = 1.0 - std::pow(0.9, t_);
    const double second = 1.0 - std::pow(0.999, t_);
    return rate * ((m_ / first).array() / ((v_ / second).array().sqrt() + 1e-8)).matrix();
  }

 private:
  Matrix m_, v_;
  int t_ = 0;
};

/// The norm at found.x to the end, and its proven lower bound.
LocalMaximum finish(const Objective& objective, const MultiHead& layer, const Mask& mask, Norm p,
                    LocalMaximum found, const Vector& start) {
  try {
    const Gain gain = objective.gain(objective.at(found.x), usable(start) ? start : Vector(), true);
    if (!std::isfinite(gain.value)) {
      found.termination = AscentTermination::non_finite;
      return found;
    }
    found.estimate = gain.value;
    found.direction = gain.v;
    if (usable(gain.v)) {
      found.lower_bound =
          lower_bound_local_norm(layer, found.x, mask, p, gain.v, objective.outputs());
    }
    if (found.estimate > 0.0 && found.lower_bound == 0.0) {
      found.termination = AscentTermination::unproven;
    }
  } catch (const OverflowError&) {
    found.termination = AscentTermination::non_finite;
  }
  return found;
}

LocalMaximum climb(const Objective& objective, const MultiHead& layer, const Mask& mask, Matrix x,
                   std::string source, Rng& rng, const AscentOptions& options, double unit) {
  const Index n = x.rows();
  LocalMaximum best{
      .source = std::move(source), .x = x, .termination = AscentTermination::step_limit};
  Vector v = normal_matrix(rng, x.size(), 1);
  Vector best_v = v;
  double best_value = -1.0;
  double rate = options.learning_rate * unit;
  Adam adam(n, x.cols());
  Index stalled = 0;
  Index reduced = 0;
  for (; best.steps < options.steps; ++best.steps) {
    std::optional<Jacobian> j;
    Gain gain{.value = std::numeric_limits<double>::quiet_NaN()};
    try {
      j.emplace(objective.at(x));
      gain = objective.gain(*j, v, false);
    } catch (const OverflowError&) {  // as a step too far: back to the best
      gain.value = std::numeric_limits<double>::quiet_NaN();
    }
    const bool better = gain.value > best_value * (1.0 + options.relative_tolerance);
    stalled = better ? 0 : stalled + 1;
    if (gain.value > best_value) {
      best_value = gain.value;
      best.x = x;
      best_v = gain.v;
    }
    if (stalled > options.patience || !std::isfinite(gain.value)) {
      if (++reduced > reductions) {
        best.termination = AscentTermination::converged;
        break;
      }
      stalled = 0;
      rate *= reduction;
      x = best.x;
      v = best_v;
      adam = Adam(n, x.cols());
      continue;
    }
    if (options.norm == Norm::two) {
      v = gain.v;
    }
    // The gradient of log |J|, so that the scale of the weights does not matter to Adam.
    const double unit_gain = gain.value > 0.0 ? gain.value : 1.0;
    const Matrix next = x + adam.step(j->second_derivative(gain.u / unit_gain, gain.v), rate);
    if (next.allFinite()) {
      x = next;
      project_to_ball(x, options.radius);
    }
  }
  if (best_value < 0.0) {
    best.termination = AscentTermination::non_finite;
    return best;
  }
  return finish(objective, layer, mask, options.norm, std::move(best), best_v);
}

void require_valid_options(Index n, const AscentOptions& o) {
  require(n >= 1, "maximise_local_norm: n must be at least 1, got {}", n);
  require(o.restarts >= 0, "maximise_local_norm: restarts must not be negative, got {}",
          o.restarts);
  require(o.restarts > 0 || o.analytic,
          "maximise_local_norm: restarts must be positive without analytic starts, got {}",
          o.restarts);
  require(o.steps >= 1, "maximise_local_norm: steps must be at least 1, got {}", o.steps);
  require(std::isfinite(o.learning_rate) && o.learning_rate > 0.0,
          "maximise_local_norm: learning_rate must be positive, got {}", o.learning_rate);
  require(o.radius > 0.0, "maximise_local_norm: radius must be positive, got {}", o.radius);
  require(o.relative_tolerance >= 0.0,
          "maximise_local_norm: relative_tolerance must not be negative, got {}",
          o.relative_tolerance);
  require(o.patience >= 1, "maximise_local_norm: patience must be at least 1, got {}", o.patience);
}

}  // namespace

std::string_view to_string(AscentTermination termination) {
  switch (termination) {
    case AscentTermination::converged:
      return "converged";
    case AscentTermination::step_limit:
      return "step limit";
    case AscentTermination::non_finite:
      return "non-finite";
    case AscentTermination::unproven:
      return "unproven";
  }
  return "unknown";
}

const LocalMaximum& Ascent::best() const {
  return maxima.empty() || witness.lower_bound > maxima.front().lower_bound ? witness
                                                                            : maxima.front();
}

Ascent maximise_local_norm(const MultiHead& layer, const Mask& mask, Index n,
                           const AscentOptions& options) {
  require_valid(layer);
  require_valid_options(n, options);
  const Objective objective(layer, mask, n, options.norm);
  const double range = std::isfinite(options.radius) ? options.radius : default_range;
  const double unit = range / default_range;
  std::vector<NamedTokens> starts;
  if (options.analytic) {
    starts = analytic_starts(layer, mask, n, options.radius);
  }
  const auto named = static_cast<Index>(starts.size());

  std::vector<LocalMaximum> witnesses(starts.size());
  std::vector<LocalMaximum> maxima(static_cast<std::size_t>(named + options.restarts));
  parallel_for(named + options.restarts, [&](Index k) {
    const auto at = static_cast<std::size_t>(k);
    // Analytic starts have streams of their own, after those of any number of restarts.
    Rng rng(options.seed, options.configuration,
            static_cast<std::uint64_t>(k < named ? -1 - k : k - named));
    if (k < named) {
      const NamedTokens& start = starts[at];
      const Vector v = normal_matrix(rng, start.x.size(), 1);
      witnesses[at] = finish(
          objective, layer, mask, options.norm,
          {.source = start.name, .x = start.x, .termination = AscentTermination::converged}, v);
      maxima[at] = climb(objective, layer, mask, start.x, start.name, rng, options, unit);
      if (witnesses[at].lower_bound > maxima[at].lower_bound) {  // nothing was gained by climbing
        maxima[at] = witnesses[at];
      }
      return;
    }
    const double c = range * rng.uniform();
    Matrix x = uniform_matrix(rng, n, layer.width(), -c, c);
    project_to_ball(x, options.radius);
    maxima[at] = climb(objective, layer, mask, std::move(x), fmt::format("restart {}", k - named),
                       rng, options, unit);
  });

  Ascent ascent;
  const auto higher = [](const LocalMaximum& a, const LocalMaximum& b) {
    return a.lower_bound > b.lower_bound;
  };
  if (!witnesses.empty()) {
    ascent.witness = *std::min_element(witnesses.begin(), witnesses.end(), higher);
  }
  std::stable_sort(maxima.begin(), maxima.end(), higher);
  const std::size_t count = maxima.size();
  ascent.median = count == 0
                      ? 0.0
                      : 0.5 * (maxima[(count - 1) / 2].lower_bound + maxima[count / 2].lower_bound);
  ascent.maxima = std::move(maxima);
  return ascent;
}

}  // namespace lipsa
