#include "lipsa/search/counterexample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/search/ascent.hpp"
#include "lipsa/search/certificate.hpp"
#include "lipsa/search/measure.hpp"
#include "search/arb.hpp"

namespace lipsa {
namespace {

constexpr Index bits = 1536;
constexpr double most = 1e100;

double middle(arb_srcptr x) {
  return arf_get_d(arb_midref(x), ARF_RND_NEAR);
}

/// A head and a feature along which J grows, and how fast: |A e_b| |M e_b| of the head.
struct Growth {
  Index head = 0;
  Index feature = 0;
  double strength = 0.0;
};

struct Tokens {
  Index own = 0;    ///< i, which sees itself
  Index other = 0;  ///< and j
  Index seen = 2;   ///< how many it sees
};

/// The token that sees itself, another and as few as can be: the fewer, the more weight j has.
std::optional<Tokens> tokens_of(const Mask& mask, Index n) {
  std::optional<Tokens> best;
  for (Index i = 0; i < n; ++i) {
    if (!mask.visible(i, i)) {
      continue;
    }
    Tokens tokens{.own = i, .other = -1, .seen = 0};
    for (Index j = 0; j < n; ++j) {
      if (mask.visible(i, j)) {
        ++tokens.seen;
        tokens.other = j != i ? j : tokens.other;
      }
    }
    if (tokens.other >= 0 && (!best || tokens.seen < best->seen)) {
      best = tokens;
    }
  }
  return best;
}

std::vector<Growth> growths_of(const MultiHead& layer) {
  const Index d = layer.head_width();
  std::vector<Growth> growths;
  for (Index h = 0; h < layer.heads; ++h) {
    const Matrix w_q = layer.W_Q.middleCols(h * d, d);
    const Matrix w_k = layer.W_K.middleCols(h * d, d);
    const Matrix gradient = layer.kind == AttentionKind::dot ? w_q : Matrix(w_q - w_k);
    const Matrix v = value_map(layer, h);
    const Matrix values =
        layer.W_O.size() > 0
            ? Matrix(v * layer.W_O.middleRows(h * layer.value_width(), layer.value_width()))
            : v;
    for (Index b = 0; b < layer.width(); ++b) {
      const double strength = (gradient * w_k.row(b).transpose()).norm() * values.row(b).norm();
      if (strength > 0.0) {
        growths.push_back({h, b, strength});
      }
    }
  }
  std::stable_sort(growths.begin(), growths.end(),
                   [](const Growth& x, const Growth& y) { return x.strength > y.strength; });
  if (growths.size() > 8) {
    growths.resize(8);
  }
  return growths;
}

/// a·x + c = 0 of the head, in balls: see Counterexample.
class Indifference {
 public:
  Indifference(const MultiHead& layer, const Growth& growth) : layer_(layer), a_(1, layer.width()) {
    const Index d = layer.head_width();
    const Index from = growth.head * d;
    const bool untied = layer.kind == AttentionKind::l2_untied;
    for (Index k = 0; k < d; ++k) {
      const Real kappa(layer.W_K(growth.feature, from + k));
      arb_addmul(square_, kappa, kappa, bits);
      for (Index c = 0; c < layer.width(); ++c) {
        Real w(layer.W_Q(c, from + k));
        if (untied) {
          const Real key(layer.W_K(c, from + k));
          arb_sub(w, w, key, bits);
        }
        arb_addmul(a_(0, c), w, kappa, bits);
      }
      Real bias(layer.b_Q.size() > 0 ? layer.b_Q(from + k) : 0.0);
      if (untied && layer.b_K.size() > 0) {
        const Real key(layer.b_K(from + k));
        arb_sub(bias, bias, key, bits);
      }
      arb_addmul(bias_, bias, kappa, bits);
    }
    if (!untied) {
      arb_zero(square_);
    }
    for (Index c = 0; c < layer.width(); ++c) {
      // x_j = x_i + t e_b is exact when x_i has nothing of feature b.
      const bool taken = c == growth.feature && layer.width() > 1;
      slopes_.push_back(taken ? 0.0 : middle(a_(0, c)));
    }
  }

  double slope(Index c) const { return slopes_[static_cast<std::size_t>(c)]; }

  /// a·x + c at this t.
  double residual(const Vector& x, double t) const {
    Real sum = bias_;
    Real half(-0.5 * t);
    arb_addmul(sum, half, square_, bits);
    for (Index c = 0; c < x.size(); ++c) {
      const Real entry(x(c));
      arb_addmul(sum, entry, a_(0, c), bits);
    }
    return middle(sum);
  }

  /// The coordinate along which the score moves most: the one to be moved.
  Index steepest() const {
    const auto larger = [](double p, double q) { return std::abs(p) < std::abs(q); };
    return std::max_element(slopes_.begin(), slopes_.end(), larger) - slopes_.begin();
  }

  /// x with the residual at most `tolerance`, or none when the coordinates do not suffice. The
  /// steepest comes last, so that it is as small as can be and moves in steps as small.
  std::optional<Vector> solve(double t, double tolerance) const {
    const Index best = steepest();
    std::vector<Index> order;
    for (Index c = 0; c < layer_.width(); ++c) {
      if (c != best && slope(c) != 0.0) {
        order.push_back(c);
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](Index p, Index q) { return std::abs(slope(p)) > std::abs(slope(q)); });
    Vector x = Vector::Zero(layer_.width());
    double r = residual(x, t);
    for (const Index c : order) {
      if (std::abs(r) <= 0x1p50 * tolerance) {
        break;
      }
      x(c) = -r / slope(c);
      r = residual(x, t);
    }
    if (std::abs(r) > tolerance) {
      x(best) = -r / slope(best);
      r = residual(x, t);
    }
    return std::abs(r) <= tolerance ? std::optional(x) : std::nullopt;
  }

 private:
  const MultiHead& layer_;
  Reals a_;
  Real bias_;
  Real square_;
  std::vector<double> slopes_{};
};

Witness pair_of(const MultiHead& layer, const Mask& mask, Norm norm, double exceed, Matrix x,
                Matrix y) {
  return {.form = WitnessForm::pair,
          .layer = layer,
          .mask = mask,
          .norm = norm,
          .exceeds = exceed,
          .x = std::move(x),
          .y = std::move(y)};
}

/// The pair at this t, or none when equality cannot be reached.
std::optional<Witness> pair_at(const MultiHead& layer, const Mask& mask, Index n,
                               const CounterexampleOptions& options, const Growth& growth,
                               const Indifference& indifference, const Tokens& tokens, double t) {
  const double s = layer.score_scale() * (layer.kind == AttentionKind::dot ? 1.0 : 2.0);
  const std::optional<Vector> own = indifference.solve(t, 0.25 / (s * t));
  const Index finest = indifference.steepest();
  if (!own || indifference.slope(finest) == 0.0) {
    return std::nullopt;
  }
  Matrix x = own->transpose().replicate(n, 1);
  x(tokens.other, growth.feature) += t;
  Matrix y = x;
  const double step = 1.0 / (s * t * std::abs(indifference.slope(finest)));
  y(tokens.own, finest) += step;
  if (!x.allFinite() || !y.allFinite() || y == x) {
    return std::nullopt;
  }
  return pair_of(layer, mask, options.norm, options.exceed, std::move(x), std::move(y));
}

/// A pair of D = d = 1 with exact binary fractions: x_i = w_K τ, x_j = (2 w_Q − w_K) τ.
std::optional<Witness> exact_untied(const MultiHead& layer, const Mask& mask, Index n,
                                    const CounterexampleOptions& options, const Tokens& tokens,
                                    double tau) {
  const bool simple = layer.kind == AttentionKind::l2_untied && layer.width() == 1 &&
                      layer.heads == 1 && layer.head_width() == 1 && layer.b_Q.isZero(0.0) &&
                      layer.b_K.isZero(0.0);
  if (!simple) {
    return std::nullopt;
  }
  const double w_q = layer.W_Q(0, 0);
  const double w_k = layer.W_K(0, 0);
  Matrix x = Matrix::Constant(n, 1, w_k * tau);
  x(tokens.other, 0) = (2.0 * w_q - w_k) * tau;
  // Moving x_j moves the score as moving x_i does, without shifting the others.
  Matrix y = x;
  const double slope = 4.0 * layer.score_scale() * std::abs((w_q - w_k) * w_k * tau);
  y(tokens.own, 0) += 1.0 / slope;
  if (y == x || !x.allFinite() || !y.allFinite()) {
    y = x;
    y(tokens.own, 0) = std::nextafter(x(tokens.own, 0), 0.0);
  }
  return pair_of(layer, mask, options.norm, options.exceed, std::move(x), std::move(y));
}

/// Tries pairs of growing t until one is proved, then the smallest such t within a percent.
template <class Pair>
bool smallest(const Pair& pair, double from, Counterexample& result) {
  const auto attempt = [&](double t) {
    std::optional<Witness> witness;
    for (int k = 0; k < 16 && !witness;
         ++k) {  // whether doubles solve the equation is a matter of luck
      witness = pair(t * (1.0 + 1e-3 * k));
    }
    if (!witness) {
      return false;
    }
    const Verdict verdict = verify(*witness);
    if (verdict.outcome != Outcome::proved) {
      if (result.outcome != Counterexample::Outcome::found) {
        result.ratio_lower_bound = std::max(result.ratio_lower_bound, verdict.ratio_lower_bound);
      }
      return false;
    }
    result.outcome = Counterexample::Outcome::found;
    result.witness = witness;
    result.ratio_lower_bound = verdict.ratio_lower_bound;
    return true;
  };
  double high = from;
  int misses = 0;
  while (!attempt(high)) {
    high *= 4.0;
    if (++misses > 24 || !std::isfinite(high)) {
      return false;
    }
  }
  double low = high / (misses == 0 ? 4096.0 : 4.0);
  while (high / low > 1.01) {
    const double middle = std::sqrt(low) * std::sqrt(high);
    (attempt(middle) ? high : low) = middle;
  }
  return true;
}

void grow(const MultiHead& layer, const Mask& mask, Index n, const CounterexampleOptions& options,
          Counterexample& result) {
  const std::optional<Tokens> tokens = tokens_of(mask, n);
  if (!tokens) {
    return;
  }
  const double s = layer.score_scale();
  for (const Growth& growth : growths_of(layer)) {
    // |F(X) − F(Y)|/|X − Y| is about ¼ s t² |a| |M e_b| with two tokens.
    const double from = std::sqrt(options.exceed) / std::sqrt(s) / std::sqrt(growth.strength);
    if (!std::isfinite(from) || from == 0.0) {
      continue;
    }
    const Indifference indifference(layer, growth);
    const bool found =
        smallest(
            [&](double t) {
              return pair_at(layer, mask, n, options, growth, indifference, *tokens, t);
            },
            from, result) ||
        smallest(
            [&](double t) {  // powers of two keep what is exact exact
              return exact_untied(layer, mask, n, options, *tokens,
                                  std::exp2(std::ceil(std::log2(t))));
            },
            from, result);
    if (found) {
      return;
    }
  }
}

/// A pair along v at x: steps from large to small, until one is proved.
void along(const MultiHead& layer, const Mask& mask, const CounterexampleOptions& options,
           const Matrix& x, const Vector& v, Counterexample& result) {
  if (v.size() == 0 || v.isZero(0.0)) {
    return;
  }
  const Eigen::Map<const Matrix> direction(v.data(), x.rows(), x.cols());
  const double size = std::max(1e-3, x.cwiseAbs().maxCoeff()) / v.cwiseAbs().maxCoeff();
  for (int k = 0; k <= 40; k += 4) {
    const Matrix y = x + std::ldexp(size, -k) * direction;
    if (y == x || !y.allFinite()) {
      return;
    }
    const Witness witness = pair_of(layer, mask, options.norm, options.exceed, x, y);
    const Verdict verdict = verify(witness);
    result.ratio_lower_bound = std::max(result.ratio_lower_bound, verdict.ratio_lower_bound);
    if (verdict.outcome == Outcome::proved) {
      result.outcome = Counterexample::Outcome::found;
      result.witness = witness;
      result.ratio_lower_bound = verdict.ratio_lower_bound;
      return;
    }
  }
}

/// Why J is the same everywhere; empty when that is not seen at once.
std::string affine(const MultiHead& layer, const Mask& mask, Index n) {
  const auto zero = [](const Matrix& w) { return w.isZero(0.0); };
  if (n == 1 && layer.kind != AttentionKind::cosine && layer.kind != AttentionKind::sigmoid) {
    return "one token attends to itself alone";
  }
  bool mixes = false;
  for (Index i = 0; i < n; ++i) {
    Index seen = 0;
    for (Index j = 0; j < n; ++j) {
      seen += mask.visible(i, j) ? 1 : 0;
    }
    mixes = mixes || seen > 1;
  }
  if (!mixes && layer.kind != AttentionKind::cosine && layer.kind != AttentionKind::sigmoid) {
    return "no token sees two";
  }
  if (zero(layer.W_V) || (layer.W_O.size() > 0 && zero(layer.W_O))) {
    return "W_V W_O = 0";
  }
  const bool softmax = layer.kind == AttentionKind::dot || layer.kind == AttentionKind::l2_untied;
  const bool deaf = layer.kind == AttentionKind::dot && zero(layer.W_Q) && layer.b_Q.isZero(0.0);
  return softmax && (deaf || zero(layer.W_K)) ? "all scores of a token are equal, A = 0" : "";
}

}  // namespace

Counterexample find_counterexample(const MultiHead& layer, const Mask& mask, Index tokens,
                                   const CounterexampleOptions& options) {
  require_valid(layer);
  require(tokens >= 1, "find_counterexample: tokens must be at least 1, got {}", tokens);
  require(options.exceed > 0.0 && options.exceed <= most,
          "find_counterexample: exceed must be above 0 and at most {}, got {}", most,
          options.exceed);
  require(options.restarts >= 0, "find_counterexample: restarts must not be negative, got {}",
          options.restarts);
  use_flint_on_this_thread();
  Counterexample result;

  const Bound best = best_bound({.layer = layer, .mask = mask, .tokens = tokens}, options.norm);
  if (best.holds && best.value <= options.exceed) {
    return {.outcome = Counterexample::Outcome::impossible,
            .reason = fmt::format("the map is Lipschitz: {} gives {}", best.name, best.value)};
  }
  const std::string constant = affine(layer, mask, tokens);
  if (!constant.empty()) {
    const Matrix x = Matrix::Zero(tokens, layer.width());
    const LocalNorm norm = local_norm(layer, x, mask, options.norm);
    along(layer, mask, options, Matrix::Ones(tokens, layer.width()), norm.direction, result);
    if (result.outcome == Counterexample::Outcome::found) {
      return result;
    }
    const BoundSetting at{.layer = layer,
                          .mask = mask,
                          .tokens = tokens,
                          .radius = std::numeric_limits<double>::min(),
                          .x = &x};
    const Bound bound = best_bound(at, options.norm);
    if (bound.holds && bound.value <= options.exceed) {
      return {.outcome = Counterexample::Outcome::impossible,
              .reason = fmt::format("the map is affine, hence Lipschitz: {}; {} gives {}", constant,
                                    bound.name, bound.value)};
    }
    result.reason = fmt::format("the map is affine, hence Lipschitz: {}; its norm is {} (estimate)",
                                constant, norm.estimate);
    return result;
  }
  if (layer.kind == AttentionKind::dot || layer.kind == AttentionKind::l2_untied) {
    grow(layer, mask, tokens, options, result);
    if (result.outcome != Counterexample::Outcome::found) {
      if (growths_of(layer).empty()) {
        result.reason =
            fmt::format("no head has {} and W_V W_O not 0: the family grows nowhere",
                        layer.kind == AttentionKind::dot ? "W_Q W_K^T" : "(W_Q - W_K) W_K^T");
      } else if (!tokens_of(mask, tokens)) {
        result.reason = std::string("no token sees itself and another");
      } else {
        result.reason = fmt::format(
            "no double solves the equation of the family closely enough; the best pair has a ratio "
            "of "
            "{}",
            result.ratio_lower_bound);
      }
    }
    return result;
  }
  const Ascent ascent = maximise_local_norm(
      layer, mask, tokens,
      {.norm = options.norm, .restarts = options.restarts, .seed = options.seed});
  const LocalNorm norm = local_norm(layer, ascent.best().x, mask, options.norm);
  along(layer, mask, options, ascent.best().x, norm.direction, result);
  if (result.outcome != Counterexample::Outcome::found) {
    result.reason = fmt::format(
        "the best pair found has a ratio of {}, the best bound is {}", result.ratio_lower_bound,
        best.holds ? fmt::format("{} = {}", best.name, best.value) : std::string("not known"));
  }
  return result;
}

}  // namespace lipsa
