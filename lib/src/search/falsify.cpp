#include "lipsa/search/falsify.hpp"

#include <fmt/format.h>

#include <Eigen/SVD>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/check.hpp"
#include "core/rounding.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/attention/local_norm.hpp"
#include "lipsa/bounds/softmax.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/search/ascent.hpp"
#include "lipsa/search/starts.hpp"

namespace lipsa {
namespace {

constexpr std::array norms{Norm::one, Norm::two, Norm::inf, Norm::max_token};

/// The dense Jacobian's norm and a direction that attains it.
struct Measured {
  double value = 0.0;
  Vector direction{};
};

Measured measure(const Matrix& j, const MultiHead& layer, Norm p) {
  Measured m{.direction = Vector::Zero(j.cols())};
  Index at = 0;
  switch (p) {
    case Norm::one:
      m.value = j.cwiseAbs().colwise().sum().maxCoeff<Eigen::PropagateNaN>(&at);
      m.direction(at) = 1.0;
      break;
    case Norm::inf:
      m.value = j.cwiseAbs().rowwise().sum().maxCoeff<Eigen::PropagateNaN>(&at);
      m.direction = j.row(at).unaryExpr([](double e) { return e < 0.0 ? -1.0 : 1.0; }).transpose();
      break;
    case Norm::two: {
      const Eigen::JacobiSVD<Matrix> svd(j, Eigen::ComputeThinV);
      m.value = svd.singularValues()(0);
      m.direction = svd.matrixV().col(0);
      break;
    }
    case Norm::max_token:
      for (Index i = 0; i < j.rows(); i += layer.output_width()) {
        BlockGain gain = estimate_block_gain(j.middleRows(i, layer.output_width()), layer.width());
        if (!(gain.value <= m.value)) {
          m = {gain.value, std::move(gain.v)};
        }
      }
      break;
  }
  return m;
}

BoundSetting setting_of(const FalsifyTrial& t, Domain domain) {
  BoundSetting setting{.layer = t.layer, .mask = t.mask, .tokens = t.x.rows()};
  switch (domain) {
    case Domain::everywhere:
      break;
    case Domain::token_ball:
      setting.radius = t.radius;
      break;
    case Domain::around_point:
    case Domain::from_point:
      setting.radius = std::numeric_limits<double>::infinity();
      setting.x = &t.centre;
      setting.around = t.around;
      break;
    case Domain::point:
      setting.radius = t.radius;
      setting.x = &t.x;
      break;
  }
  return setting;
}

/// |F(x) − F(centre)|_F/|x − centre|_F; 0 where they coincide or rounding has the last word.
double pair_ratio(const FalsifyTrial& t) {
  const Matrix fx = attend(t.layer, t.x, t.mask);
  const Matrix fc = attend(t.layer, t.centre, t.mask);
  const double distance = (t.x - t.centre).norm();
  const double change = (fx - fc).norm();
  const double noise = 1e-13 * (fx.norm() + fc.norm());
  return distance == 0.0 || noise > 1e-10 * change ? 0.0 : change / distance;
}

class Trial {
 public:
  explicit Trial(const FalsifyTrial& trial) : trial_(trial) {
    try {
      attention_.emplace(trial.layer, trial.x, trial.mask);
      jacobian_ = attention_->dense();
    } catch (const OverflowError&) {  // nothing to compare
    }
  }

  bool measurable() const { return jacobian_.size() > 0 && jacobian_.allFinite(); }
  const Measured& measured(Norm p) {
    auto& slot = measured_[static_cast<std::size_t>(p)];
    if (!slot) {
      slot = measure(jacobian_, trial_.layer, p);
    }
    return *slot;
  }

  /// The row of attention whose softmax has the largest derivative: see Subject::softmax.
  struct Row {
    double norm = 0.0;
    Vector p{};
  };
  Row softmax_row(Norm p) const {
    Row largest;
    for (Index h = 0; h < trial_.layer.heads; ++h) {
      const Matrix& weights = attention_->attention_weights(h);
      for (Index i = 0; i < weights.rows(); ++i) {
        const Vector row = weights.row(i).transpose();
        const double norm = p == Norm::two ? softmax_norm_2(row.cwiseMin(1.0))
                                           : softmax_norm_inf(row.cwiseMin(1.0));
        if (norm > largest.norm) {
          largest = {norm, row};
        }
      }
    }
    return largest;
  }

  double ratio(const CatalogEntry& entry, const Bound& bound, double shrink) {
    if (entry.subject == Subject::softmax) {
      return softmax_row(entry.norm).norm / (shrink * bound.value);
    }
    double norm = measured(entry.norm).value;
    if (entry.domain == Domain::from_point) {
      norm = pair_ratio(trial_);
    }
    return norm == 0.0 ? 0.0 : norm / (shrink * bound.value);
  }

 private:
  const FalsifyTrial& trial_;
  std::optional<Jacobian> attention_{};
  Matrix jacobian_{};
  std::array<std::optional<Measured>, norms.size()> measured_{};
};

struct NumberedRatio {
  double ratio = 0.0;
  std::int64_t trial = -1;
};

/// The largest ratio and the first trial that has it; NaN, which nothing should give, is the
/// largest.
void keep_worst(const NumberedRatio& next, double& ratio, std::int64_t& trial) {
  const bool higher = !(next.ratio <= ratio);
  const bool earlier = next.ratio == ratio && next.trial >= 0 && (trial < 0 || next.trial < trial);
  if (next.trial >= 0 && (higher || earlier)) {
    ratio = next.ratio;
    trial = next.trial;
  }
}

/// Whether the formula gives a number to compare: it holds, or is the false statement itself.
bool comparable(const Bound& bound) {
  return (bound.holds || bound.refuted) && std::isfinite(bound.value) && bound.value > 0.0;
}

/// Scores that have the weights p, and the direction in which their softmax moves most.
std::optional<Witness> softmax_violation(const CatalogEntry& entry, const Bound& bound,
                                         const Vector& p) {
  Witness witness{.form = WitnessForm::softmax,
                  .norm = entry.norm,
                  .exceeds = bound.value * (1.0 + measurement_error),
                  .bound = std::string(entry.name)};
  std::vector<double> scores;
  for (const double weight : p) {
    if (weight > 0.0) {
      scores.push_back(std::log(weight));
    }
  }
  if (scores.empty()) {
    return std::nullopt;
  }
  const auto n = static_cast<Index>(scores.size());
  witness.x = Eigen::Map<const Matrix>(scores.data(), 1, n);
  const Vector q = witness.x.row(0).transpose().array().exp().matrix();
  const Matrix m = Matrix(q.asDiagonal()) - q * q.transpose();
  Index at = 0;
  switch (entry.norm) {
    case Norm::two:
      witness.y = Eigen::JacobiSVD<Matrix>(m, Eigen::ComputeThinV).matrixV().col(0).transpose();
      break;
    case Norm::one:
      m.cwiseAbs().colwise().sum().maxCoeff(&at);
      witness.y = Matrix::Zero(1, n);
      witness.y(0, at) = 1.0;
      break;
    default:
      m.cwiseAbs().rowwise().sum().maxCoeff(&at);
      witness.y = m.row(at).unaryExpr([](double e) { return e < 0.0 ? -1.0 : 1.0; });
      break;
  }
  return witness;
}

std::vector<const CatalogEntry*> entries_of(const std::vector<std::string>& names) {
  std::vector<const CatalogEntry*> entries;
  const std::set<std::string_view> wanted(names.begin(), names.end());
  for (const std::string& name : names) {
    static_cast<void>(find_entry(name));
  }
  for (const CatalogEntry& entry : catalog()) {
    const bool drawn = entry.subject != Subject::normalisation;  // trials are of attention
    if (names.empty() ? drawn && entry.refutation.empty() : wanted.contains(entry.name)) {
      entries.push_back(&entry);
    }
  }
  return entries;
}

std::vector<AttentionKind> kinds_of(const std::vector<const CatalogEntry*>& entries) {
  std::vector<AttentionKind> kinds;
  for (const CatalogEntry* entry : entries) {
    if (std::find(kinds.begin(), kinds.end(), entry->attention) == kinds.end()) {
      kinds.push_back(entry->attention);
    }
  }
  return kinds;
}

MultiHead random_layer(Rng& rng, AttentionKind kind, Index D, Index H, Index d, Index d_v,
                       Index D_out) {
  const auto pick = [&](std::uint64_t count) { return rng.next() % count; };
  const auto weight = [&](Index rows, Index cols) -> Matrix {
    // Draws stand in statements of their own: compilers differ in the order of operands.
    const double size =
        std::pow(10.0, rng.uniform(-3.0, 3.0)) / std::sqrt(static_cast<double>(rows));
    return size * normal_matrix(rng, rows, cols);
  };
  MultiHead layer{.kind = kind, .heads = H, .W_Q = weight(D, H * d), .W_V = weight(D, H * d_v)};
  const bool tied = kind == AttentionKind::l2;
  if (!tied) {
    layer.W_K = pick(8) == 0 ? layer.W_Q : weight(D, H * d);
  }
  if (pick(4) != 0) {
    layer.W_O = weight(H * d_v, D_out);
  }
  if (pick(3) == 0) {
    const double size = std::pow(10.0, rng.uniform(-2.0, 2.0));
    layer.b_Q = size * normal_matrix(rng, H * d, 1);
    layer.b_V = size * normal_matrix(rng, H * d_v, 1);
    if (!tied) {
      layer.b_K = size * normal_matrix(rng, H * d, 1);
    }
  }
  if (pick(20) == 0) {
    layer.W_V.setZero();
  } else if (pick(20) == 0) {
    layer.W_Q.setZero();
  }
  if (pick(3) == 0) {
    layer.scale = std::pow(10.0, rng.uniform(-2.0, 2.0));
  }
  if (kind == AttentionKind::cosine) {
    layer.epsilon = std::pow(10.0, rng.uniform(-6.0, 2.0));
  } else if (kind == AttentionKind::sigmoid) {
    layer.score_bias = rng.uniform(-5.0, 2.0);
    if (pick(2) == 0) {
      layer.b_Q.resize(0);
      layer.b_K.resize(0);
      layer.b_V.resize(0);
    }
  }
  return layer;
}

Mask random_mask(Rng& rng, Index n) {
  Mask::Visible visible(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      visible(i, j) = (i == j || rng.uniform() < 0.5) && (i > 0 || n == 1);
    }
  }
  return Mask::arbitrary(std::move(visible));
}

}  // namespace

FalsifyTrial falsify_trial(AttentionKind kind, std::uint64_t seed, std::int64_t k) {
  Rng rng(seed, static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(kind));
  const auto pick = [&](std::uint64_t count) { return static_cast<Index>(rng.next() % count); };
  const Index n = 1 + pick(8);
  const Index D = 1 + pick(5);
  const Index H = 1 + pick(3);
  FalsifyTrial t;
  const Index D_out = 1 + pick(5);
  const Index d_v = 1 + pick(3);
  const Index d = 1 + pick(3);
  t.layer = random_layer(rng, kind, D, H, d, d_v, D_out);
  t.mask = pick(3) == 0 ? Mask::causal() : pick(4) == 0 ? random_mask(rng, n) : Mask::none();
  // The size of tokens at which scores are of order one, give or take three decades.
  const double queries = t.layer.W_Q.norm();
  const double keys = kind == AttentionKind::l2 ? queries : t.layer.W_K.norm();
  const double strength = std::sqrt(queries * keys * t.layer.score_scale());
  const double unit = strength > 0.0 ? 1.0 / strength : 1.0;
  const double decades = std::pow(10.0, rng.uniform(-3.0, 3.0));
  const double size = decades * (pick(2) == 0 ? 1.0 : std::min(unit, 1e6));
  t.x = size * normal_matrix(rng, n, D);
  const auto start = pick(8);
  if (start == 0) {
    t.x = t.x.row(0).replicate(n, 1).eval();
  } else if (start == 1) {
    t.x.row(pick(static_cast<std::uint64_t>(n))) *= 1e3;
  } else if (start == 2) {
    for (Index i = 1; i < n; ++i) {
      t.x.row(i) = t.x.row(i % 2);
    }
  } else if (start == 3 || start == 4) {
    const auto steep = analytic_starts(t.layer, t.mask, n, 10.0 * size);
    if (!steep.empty()) {
      t.x = steep[rng.next() % steep.size()].x;
      if (start == 4) {
        t.x += 1e-3 * size * normal_matrix(rng, n, D);
      }
    }
  } else if (start == 5 && n * D <= 12) {
    const double radius = 3.0 * size;
    const Ascent ascent =
        maximise_local_norm(t.layer, t.mask, n,
                            {.norm = norms[static_cast<std::size_t>(pick(norms.size()))],
                             .restarts = 1,
                             .steps = 25,
                             .analytic = false,
                             .radius = radius,
                             .seed = rng.next()});
    if (ascent.best().x.size() > 0) {
      t.x = ascent.best().x;
    }
  }
  const double distance = std::pow(10.0, rng.uniform(-3.0, 0.5)) * size;
  complete(t, distance * normal_matrix(rng, n, D));
  return t;
}

void complete(FalsifyTrial& t, const Matrix& step) {
  t.radius = 0.0;
  for (Index i = 0; i < t.x.rows(); ++i) {
    t.radius = std::max(t.radius, upper_bound_norm_frobenius(t.x.row(i)));
  }
  if (t.radius == 0.0) {
    t.radius = 1.0;
  }
  t.centre = t.x - step;
  t.around = upper_bound_norm_frobenius(t.x - t.centre) * (1.0 + 1e-12);
}

double trial_ratio(const CatalogEntry& entry, const FalsifyTrial& t) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  try {
    const Bound bound = entry.evaluate(setting_of(t, entry.domain));
    Trial trial(t);
    return comparable(bound) && trial.measurable() ? trial.ratio(entry, bound, 1.0) : nothing;
  } catch (const std::invalid_argument&) {  // scaled beyond what is a layer
    return nothing;
  }
}

std::vector<FalsifyTally> falsify(const FalsifyOptions& options, std::int64_t first,
                                  std::int64_t count) {
  require(count >= 0, "falsify: count must not be negative, got {}", count);
  require(options.shrink > 0.0, "falsify: shrink must be positive, got {}", options.shrink);
  const auto entries = entries_of(options.bounds);
  const auto kinds = kinds_of(entries);

  const auto fresh = [&] {
    std::vector<FalsifyTally> tallies(entries.size());
    for (std::size_t e = 0; e < entries.size(); ++e) {
      tallies[e].name = entries[e]->name;
    }
    return tallies;
  };
  constexpr std::int64_t piece = 64;
  const std::int64_t pieces = (count + piece - 1) / piece;
  std::vector<std::vector<FalsifyTally>> parts(static_cast<std::size_t>(pieces));
  parallel_for(pieces, [&](Index part) {
    std::vector<FalsifyTally> tallies = fresh();
    for (std::int64_t k = part * piece; k < std::min(count, (part + 1) * piece); ++k) {
      const std::int64_t number = first + k;
      const AttentionKind kind = kinds[static_cast<std::size_t>(number) % kinds.size()];
      const FalsifyTrial t = falsify_trial(kind, options.seed, number);
      Trial trial(t);
      if (!trial.measurable()) {
        continue;
      }
      constexpr std::array domains{Domain::everywhere, Domain::token_ball, Domain::around_point,
                                   Domain::from_point, Domain::point};
      for (const Domain domain : domains) {
        if (std::none_of(entries.begin(), entries.end(), [&](const CatalogEntry* e) {
              return e->attention == kind && e->domain == domain;
            })) {
          continue;
        }
        const auto found = evaluate_entries(setting_of(t, domain), entries, domain);
        for (std::size_t e = 0; e < entries.size(); ++e) {
          if (!found[e] || !comparable(*found[e])) {
            continue;
          }
          FalsifyTally& tally = tallies[e];
          const double ratio = trial.ratio(*entries[e], *found[e], options.shrink);
          ++tally.trials;
          if (t.x.rows() == 1) {
            keep_worst({ratio, number}, tally.worst_ratio_one_token, tally.worst_trial_one_token);
          } else {
            keep_worst({ratio, number}, tally.worst_ratio, tally.worst_trial);
          }
        }
      }
    }
    parts[static_cast<std::size_t>(part)] = std::move(tallies);
  });
  std::vector<FalsifyTally> all = fresh();
  for (const auto& part : parts) {
    merge(all, part);
  }
  return all;
}

void merge(std::vector<FalsifyTally>& tallies, const std::vector<FalsifyTally>& others) {
  require(tallies.size() == others.size(), "merge: tallies must be of the same entries");
  for (std::size_t e = 0; e < tallies.size(); ++e) {
    require(tallies[e].name == others[e].name, "merge: tallies must be of the same entries");
    tallies[e].trials += others[e].trials;
    keep_worst({others[e].worst_ratio, others[e].worst_trial}, tallies[e].worst_ratio,
               tallies[e].worst_trial);
    keep_worst({others[e].worst_ratio_one_token, others[e].worst_trial_one_token},
               tallies[e].worst_ratio_one_token, tallies[e].worst_trial_one_token);
  }
}

std::optional<Witness> violation(const CatalogEntry& entry, const FalsifyTrial& t) {
  if (t.layer.kind != entry.attention) {
    return std::nullopt;
  }
  const Bound bound = entry.evaluate(setting_of(t, entry.domain));
  Trial trial(t);
  if (!comparable(bound) || !trial.measurable()) {
    return std::nullopt;
  }
  if (entry.subject == Subject::softmax) {
    return trial.ratio(entry, bound, 1.0) > 1.0 + 2.0 * measurement_error
               ? softmax_violation(entry, bound, trial.softmax_row(entry.norm).p)
               : std::nullopt;
  }
  // Above the bound by more than its own rounding, which another machine may do differently.
  const double claimed = bound.value * (1.0 + measurement_error);
  Witness witness{.form = WitnessForm::direction,
                  .layer = t.layer,
                  .mask = t.mask,
                  .norm = entry.norm,
                  .exceeds = claimed,
                  .bound = std::string(entry.name),
                  .x = t.x};
  if (entry.domain == Domain::token_ball) {
    witness.radius = t.radius;
  }
  if (entry.domain == Domain::from_point) {
    witness.form = WitnessForm::pair;
    witness.x = t.centre;
    witness.y = t.x;
    if (!(pair_ratio(t) > claimed)) {
      return std::nullopt;
    }
    return witness;
  }
  const Vector& v = trial.measured(entry.norm).direction;
  if (v.isZero(0.0) || !(lower_bound_local_norm(t.layer, t.x, t.mask, entry.norm, v) > claimed)) {
    return std::nullopt;
  }
  witness.y = Eigen::Map<const Matrix>(v.data(), t.x.rows(), t.x.cols());
  return witness;
}

}  // namespace lipsa
