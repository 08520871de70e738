#include "lipsa/search/refute.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/check.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/search/certificate.hpp"
#include "lipsa/search/falsify.hpp"

namespace lipsa {
namespace {

constexpr const char* softmax_claim = "softmax_quarter";
constexpr std::array simple_numbers{0.0,  0.0, 0.0, 1.0,  1.0, -1.0, 2.0,
                                    -2.0, 3.0, 5.0, 10.0, 0.5, 0.1};

Matrix simple_matrix(Rng& rng, Index rows, Index cols) {
  Matrix m(rows, cols);
  for (double& entry : m.reshaped()) {
    entry = simple_numbers[rng.next() % simple_numbers.size()];
  }
  return m;
}

FalsifyTrial small_trial(AttentionKind kind, std::uint64_t seed, std::int64_t k) {
  Rng rng(seed, static_cast<std::uint64_t>(k), 1000 + static_cast<std::uint64_t>(kind));
  const auto pick = [&](std::uint64_t count) { return static_cast<Index>(rng.next() % count); };
  const Index D = 1 + pick(2);
  const Index n = 1 + pick(3);
  FalsifyTrial t;
  t.layer = {.kind = kind, .W_Q = simple_matrix(rng, D, D), .W_V = simple_matrix(rng, D, D)};
  if (kind != AttentionKind::l2) {
    t.layer.W_K = pick(3) == 0 ? t.layer.W_Q : simple_matrix(rng, D, D);
  }
  if (kind == AttentionKind::cosine) {
    t.layer.epsilon = pick(2) == 0 ? 1.0 : 0.01;
  }
  if (pick(3) == 0) {
    t.layer.scale = pick(2) == 0 ? 0.01 : 4.0;
  }
  t.mask = pick(2) == 0 ? Mask::causal() : Mask::none();
  const double size =
      pick(2) == 0 ? 1.0 : 10.0;  // drawn first: compilers differ in the order of operands
  t.x = size * simple_matrix(rng, n, D);
  complete(t, simple_matrix(rng, n, D));
  return t;
}

/// A smaller number is easier to read.
double cost_of(const ConstMatrixRef& m) {
  double cost = 0.0;
  for (Index i = 0; i < m.rows(); ++i) {
    for (Index j = 0; j < m.cols(); ++j) {
      const double x = std::abs(m(i, j));
      const bool whole = x == std::floor(x) && x < 100.0;
      const bool one_digit = !whole && x > 0.0 && std::abs(x * 10.0 - std::round(x * 10.0)) < 1e-12;
      cost += x == 0.0 ? 0.1 : x == 1.0 ? 1.0 : whole ? 1.5 : one_digit ? 2.0 : 10.0;
    }
  }
  return cost;
}

double cost_of(const FalsifyTrial& t) {
  const MultiHead& l = t.layer;
  return cost_of(l.W_Q) + cost_of(l.W_K) + cost_of(l.W_V) + cost_of(l.W_O) + cost_of(t.x) +
         cost_of(l.b_Q) + cost_of(l.b_K) + cost_of(l.b_V) + cost_of(l.b_O) +
         (l.scale == 0.0 ? 0.0 : 2.0) + (t.mask.kind() == Mask::Kind::none ? 0.0 : 1.0);
}

/// The proved witness of a trial, or none.
std::optional<Witness> proved(const CatalogEntry& entry, const FalsifyTrial& trial, double* ratio) {
  std::optional<Witness> witness = violation(entry, trial);
  if (!witness) {
    return std::nullopt;
  }
  const Verdict verdict = verify(*witness);
  if (verdict.outcome != Outcome::proved) {
    return std::nullopt;
  }
  *ratio = verdict.ratio_lower_bound;
  return witness;
}

/// The matrices of a trial that may be simplified or scaled.
std::vector<Matrix*> matrices_of(FalsifyTrial& t) {
  std::vector<Matrix*> all;
  for (Matrix* m : {&t.layer.W_Q, &t.layer.W_K, &t.layer.W_V, &t.layer.W_O, &t.x}) {
    if (m->size() > 0) {
      all.push_back(m);
    }
  }
  return all;
}

Matrix without_row(const Matrix& m, Index row) {
  Matrix less(m.rows() - 1, m.cols());
  less << m.topRows(row), m.bottomRows(m.rows() - row - 1);
  return less;
}

/// Leaves out, zeroes and rounds what the violation does not need.
FalsifyTrial simplified(const CatalogEntry& entry, FalsifyTrial best) {
  const auto holds = [&](const FalsifyTrial& t) { return violation(entry, t).has_value(); };
  const auto take = [&](FalsifyTrial candidate) {
    complete(candidate, candidate.x - candidate.centre);
    if (cost_of(candidate) < cost_of(best) && holds(candidate)) {
      best = std::move(candidate);
      return true;
    }
    return false;
  };
  for (int round = 0; round < 4; ++round) {
    bool gained = false;
    for (Index i = 0;
         best.x.rows() > 1 && best.mask.kind() != Mask::Kind::arbitrary && i < best.x.rows(); ++i) {
      FalsifyTrial candidate = best;
      candidate.x = without_row(best.x, i);
      candidate.centre = without_row(best.centre, i);
      gained = take(std::move(candidate)) || gained;
    }
    for (Vector MultiHead::*bias :
         {&MultiHead::b_Q, &MultiHead::b_K, &MultiHead::b_V, &MultiHead::b_O}) {
      FalsifyTrial candidate = best;
      (candidate.layer.*bias).resize(0);
      gained = take(std::move(candidate)) || gained;
    }
    for (const bool scale : {true, false}) {
      FalsifyTrial candidate = best;
      if (scale) {
        candidate.layer.scale = 0.0;
      } else {
        candidate.mask = Mask::none();
      }
      gained = take(std::move(candidate)) || gained;
    }
    const std::size_t count = matrices_of(best).size();
    for (std::size_t k = 0; k < count; ++k) {
      for (Index e = 0; e < matrices_of(best)[k]->size(); ++e) {
        const double old = matrices_of(best)[k]->data()[e];
        const double digit = std::pow(10.0, std::floor(std::log10(std::abs(old) + 1e-300)));
        for (const double simple :
             {0.0, 1.0, -1.0, std::round(old), std::round(old / digit) * digit}) {
          if (simple == old || !std::isfinite(simple)) {
            continue;
          }
          FalsifyTrial candidate = best;
          matrices_of(candidate)[k]->data()[e] = simple;
          if (take(std::move(candidate))) {
            gained = true;
            break;
          }
        }
      }
    }
    if (!gained) {
      break;
    }
  }
  return best;
}

/// Uphill in powers of two of each matrix, of X and of the scale.
FalsifyTrial scaled_uphill(const CatalogEntry& entry, FalsifyTrial best) {
  double ratio = trial_ratio(entry, best);
  for (const double step : {16.0, 4.0, 2.0}) {
    for (int moves = 0; moves < 40; ++moves) {
      bool gained = false;
      const std::size_t count = matrices_of(best).size();
      for (std::size_t k = 0; k <= count; ++k) {
        for (const double factor : {step, 1.0 / step}) {
          FalsifyTrial candidate = best;
          if (k < count) {
            *matrices_of(candidate)[k] *= factor;
          } else {
            candidate.layer.scale = candidate.layer.score_scale() * factor;
          }
          complete(candidate, candidate.x - candidate.centre);
          const double next = trial_ratio(entry, candidate);
          if (next > ratio * 1.001 && std::isfinite(next)) {
            ratio = next;
            best = std::move(candidate);
            gained = true;
          }
        }
      }
      if (!gained || ratio > 10.0) {
        break;
      }
    }
  }
  return best;
}

struct Sampled {
  double worst = 0.0;
  std::int64_t worst_trial = -1;
  std::int64_t tried = 0;
};

/// The worst of trials drawn by `draw`, in parallel, the first among equals.
template <class Draw>
Sampled sample(const CatalogEntry& entry, std::int64_t trials, const Draw& draw) {
  std::vector<double> ratios(static_cast<std::size_t>(trials));
  parallel_for(trials,
               [&](Index k) { ratios[static_cast<std::size_t>(k)] = trial_ratio(entry, draw(k)); });
  Sampled sampled;
  for (std::int64_t k = 0; k < trials; ++k) {
    const double ratio = ratios[static_cast<std::size_t>(k)];
    sampled.tried += std::isnan(ratio) ? 0 : 1;
    if (ratio > sampled.worst) {
      sampled = {ratio, k, sampled.tried};
    }
  }
  return sampled;
}

/// Two equal scores: |M(½, ½) (1, −1)|_2 = ½ |(1, −1)|_2.
Refutation refute_softmax() {
  Refutation result{.found_by = "small layers", .tried = 1};
  result.witness = Witness{.form = WitnessForm::softmax,
                           .norm = Norm::two,
                           .exceeds = 0.25,
                           .bound = softmax_claim,
                           .x = Matrix{{0.0, 0.0}},
                           .y = Matrix{{1.0, -1.0}}};
  const Verdict verdict = verify(*result.witness);
  require(verdict.outcome == Outcome::proved, "refute: the softmax's witness must be proved");
  result.ratio_lower_bound = verdict.ratio_lower_bound;
  return result;
}

}  // namespace

std::vector<std::string> claims() {
  std::vector<std::string> names;
  for (const CatalogEntry& entry : catalog()) {
    names.emplace_back(entry.name);
  }
  return names;
}

Refutation refute(const std::string& claim, const RefuteOptions& options) {
  require(options.trials >= 0, "refute: trials must not be negative, got {}", options.trials);
  if (claim == softmax_claim) {
    return refute_softmax();
  }
  const CatalogEntry& entry = find_entry(claim);
  Refutation result;
  const auto small = [&](std::int64_t k) { return small_trial(entry.attention, options.seed, k); };
  const auto random = [&](std::int64_t k) {
    return falsify_trial(entry.attention, options.seed, k);
  };
  const auto accept = [&](const FalsifyTrial& trial, std::string found_by) {
    double ratio = 0.0;
    if (!proved(entry, trial, &ratio)) {
      return false;
    }
    const FalsifyTrial simple = simplified(entry, trial);
    std::optional<Witness> witness = proved(entry, simple, &ratio);
    result.witness = witness ? std::move(witness) : proved(entry, trial, &ratio);
    result.ratio_lower_bound = ratio;
    result.found_by = std::move(found_by);
    return true;
  };

  // Of the small layers that violate, the simplest.
  std::vector<double> costs(static_cast<std::size_t>(options.trials));
  std::vector<double> ratios(costs.size());
  parallel_for(options.trials, [&](Index k) {
    const FalsifyTrial t = small(k);
    const double ratio = trial_ratio(entry, t);
    ratios[static_cast<std::size_t>(k)] = ratio;
    costs[static_cast<std::size_t>(k)] = ratio > 1.0 + 2.0 * measurement_error
                                             ? cost_of(t)
                                             : std::numeric_limits<double>::infinity();
  });
  for (const double ratio : ratios) {
    result.tried += std::isnan(ratio) ? 0 : 1;
    result.worst_ratio = std::fmax(result.worst_ratio, ratio);
  }
  const auto cheapest = std::min_element(costs.begin(), costs.end());
  if (cheapest != costs.end() && std::isfinite(*cheapest) &&
      accept(small(cheapest - costs.begin()), "small layers")) {
    return result;
  }

  const Sampled by_random = sample(entry, options.trials, random);
  result.tried += by_random.tried;
  result.worst_ratio = std::fmax(result.worst_ratio, by_random.worst);
  if (by_random.worst_trial < 0) {
    return result;
  }
  const FalsifyTrial worst = random(by_random.worst_trial);
  if (by_random.worst > 1.0 && accept(worst, "random layers")) {
    return result;
  }
  const FalsifyTrial uphill = scaled_uphill(entry, worst);
  result.worst_ratio = std::fmax(result.worst_ratio, trial_ratio(entry, uphill));
  ++result.tried;
  static_cast<void>(accept(uphill, "scaling"));
  return result;
}

}  // namespace lipsa
