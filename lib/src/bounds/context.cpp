#include "bounds/context.hpp"

#include <algorithm>
#include <cmath>

#include "bounds/l2_factors.hpp"
#include "core/check.hpp"
#include "core/rounding.hpp"
#include "linalg/gemm.hpp"
#include "lipsa/bounds/softmax.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// What underflow may cost: far more than 2^-1074 an operation.
constexpr double underflow = 0x1p-900;

/// Covariances are bounded by their largest eigenvalue up to this many, by their trace beyond.
constexpr Index most_eigenproblems = 1024;

/// max_i |x_i|_2, from above.
double upper_bound_longest(const Matrix& x) {
  double longest = 0.0;
  for (Index i = 0; i < x.rows(); ++i) {
    longest = std::max(longest, upper_bound_norm_frobenius(x.row(i)));
  }
  return longest;
}

void require_valid(const BoundSetting& setting) {
  require_valid(setting.layer);
  const Index made_for = setting.mask.tokens();
  require(setting.tokens >= 1, "BoundSetting: tokens must be at least 1, got {}", setting.tokens);
  require(made_for == 0 || made_for == setting.tokens,
          "BoundSetting: mask must be made for {} tokens, got {}", setting.tokens, made_for);
  require(setting.radius > 0.0, "BoundSetting: radius must be positive, got {}", setting.radius);
  require(setting.around >= 0.0 && std::isfinite(setting.around),
          "BoundSetting: around must be finite and not negative, got {}", setting.around);
  require(setting.around == 0.0 || setting.x != nullptr,
          "BoundSetting: around must be given with x, got {} alone", setting.around);
  if (setting.x == nullptr) {
    return;
  }
  const Matrix& x = *setting.x;
  require(x.rows() == setting.tokens && x.cols() == setting.layer.width() && x.allFinite(),
          "BoundSetting: x must be finite and {} x {}, got {} x {}", setting.tokens,
          setting.layer.width(), x.rows(), x.cols());
  const double longest = upper_bound_longest(x);
  const double reach = setting.around > 0.0 ? add_up(longest, setting.around) : longest;
  require(
      reach <= setting.radius,
      "BoundSetting: radius must hold for the tokens of x within {}, got {} where one reaches {}",
      setting.around, setting.radius, reach);
}

/// Rows of W_O that belong to a head: d_v × D_out.
Matrix output_rows(const MultiHead& layer, Index h) {
  const Index d_v = layer.value_width();
  if (layer.W_O.size() > 0) {
    return layer.W_O.middleRows(h * d_v, d_v);
  }
  Matrix rows = Matrix::Zero(d_v, layer.output_width());
  rows.middleCols(h * d_v, d_v).setIdentity();
  return rows;
}

EnclosedMatrix query(const MultiHead& layer, Index h) {
  return enclosed(layer.W_Q.middleCols(h * layer.head_width(), layer.head_width()));
}
EnclosedMatrix key(const MultiHead& layer, Index h) {
  return enclosed(layer.W_K.middleCols(h * layer.head_width(), layer.head_width()));
}
EnclosedMatrix value(const MultiHead& layer, Index h) {
  return enclosed(layer.W_V.middleCols(h * layer.value_width(), layer.value_width()));
}
EnclosedMatrix value_output(const MultiHead& layer, Index h) {
  return product(value(layer, h), enclosed(output_rows(layer, h)));
}

UpRounded spectral(const EnclosedMatrix& a) {
  return up_rounded(upper_bound_spectral_norm(a));
}

/// W_K b_Q of a head, D × 1, or none.
std::optional<EnclosedMatrix> key_bias(const MultiHead& layer, Index h) {
  if (layer.b_Q.size() == 0) {
    return std::nullopt;
  }
  const Index d = layer.head_width();
  return product(key(layer, h), enclosed(layer.b_Q.segment(h * d, d)));
}

/// Norms that sum over or look at single rows and columns; m^T for columns.
struct LineNorms {
  UpRounded largest_sum;  ///< max_i Σ_j |m_ij|
  UpRounded longest;      ///< max_i |m_i|_2
  UpRounded all;          ///< Σ_i |m_i|_2
};

LineNorms rows_of(const EnclosedMatrix& m) {
  LineNorms norms;
  const UpRounded unit = up_rounded({1.0, m.exponent});
  const UpRounded error = m.error;
  const UpRounded root = sqrt(UpRounded(count_up(m.middle.cols())));
  for (Index i = 0; i < m.middle.rows(); ++i) {
    const UpRounded length = upper_bound_norm_frobenius(m.middle.row(i)) + error;
    norms.largest_sum =
        std::max(norms.largest_sum, upper_bound_norm_inf(m.middle.row(i)) + root * error);
    norms.longest = std::max(norms.longest, length);
    norms.all += length;
  }
  norms.largest_sum *= unit;
  norms.longest *= unit;
  norms.all *= unit;
  return norms;
}

HeadNorms norms_of(const MultiHead& layer, Index h) {
  const bool tied = layer.kind == AttentionKind::l2;
  HeadNorms norms;
  const EnclosedMatrix vo = value_output(layer, h);
  const LineNorms vo_columns = rows_of(transposed(vo));
  norms.vo_1 = vo_columns.largest_sum;
  norms.vo_column = vo_columns.longest;
  norms.vo_inf = rows_of(vo).largest_sum;
  const LineNorms q_rows = rows_of(query(layer, h));
  norms.q_row = q_rows.longest;
  norms.q_rows = q_rows.all;
  norms.q = spectral(query(layer, h));
  norms.v = spectral(value(layer, h));
  norms.o =
      layer.W_O.size() > 0 ? UpRounded(upper_bound_spectral_norm(output_rows(layer, h))) : 1.0;
  norms.vo = std::min(norms.v * norms.o, spectral(vo));
  if (tied) {
    const EnclosedMatrix qv = product(transposed(query(layer, h)), value(layer, h));
    norms.qv = std::min(norms.q * norms.v, spectral(qv));
    const EnclosedMatrix qvo = product(qv, enclosed(output_rows(layer, h)));
    norms.qvo = std::min(norms.qv * norms.o, spectral(qvo));
    norms.qvo_column = rows_of(transposed(qvo)).longest;
    return norms;
  }
  const UpRounded s = upper_bound_scale(layer);
  norms.k = spectral(key(layer, h));
  norms.a = s * std::min(norms.q * norms.k,
                         spectral(product(query(layer, h), transposed(key(layer, h)))));
  if (const auto bias = key_bias(layer, h)) {
    norms.bias = s * spectral(*bias);
  }
  return norms;
}

/// X − 1 x̄ᵀ: any centre would do, so that only the differences round.
EnclosedMatrix centred(const Matrix& x) {
  const Eigen::RowVectorXd mean = x.colwise().mean();
  const Matrix difference = x.rowwise() - mean;
  return enclosed(difference, mul_up(epsilon, upper_bound_norm_frobenius(difference)));
}

/// Row i of the attention of a head, from above and from below, entry by entry.
struct Weights {
  Matrix lower, upper;
};

/// Softmax of S within `error` of s, entrywise: exp changes by a factor within e^(±error), and so
/// does the sum. `error` covers the rounding of s − max s too, half a unit of at most 2 max |s|;
/// that of exp, of the sum and of the quotient is below 4 (n + 16) units.
Weights softmax_within(const Matrix& s, double error, const Mask& mask) {
  const Index n = s.rows();
  Weights w{Matrix::Zero(n, n), Matrix::Zero(n, n)};
  const double relative = add_up(std::expm1(std::min(2.0 * error, 40.0)) * (1.0 + 1e-12),
                                 static_cast<double>(n + 16) * 4.0 * epsilon);
  for (Index i = 0; i < n; ++i) {
    double largest = -std::numeric_limits<double>::infinity();
    for (Index j = 0; j < n; ++j) {
      if (mask.visible(i, j)) {
        largest = std::max(largest, s(i, j));
      }
    }
    double sum = 0.0;
    for (Index j = 0; j < n; ++j) {
      if (mask.visible(i, j)) {
        w.upper(i, j) = std::exp(s(i, j) - largest);
        sum += w.upper(i, j);
      }
    }
    for (Index j = 0; j < n; ++j) {
      if (mask.visible(i, j)) {
        const double p = w.upper(i, j) / sum;
        w.lower(i, j) = std::max(0.0, p * (1.0 - relative) - 0x1p-1000);
        w.upper(i, j) = std::min(1.0, p * (1.0 + relative) + 0x1p-1000);
      }
    }
  }
  return w;
}

/// Spreads of the tokens of one head: see HeadAtPoint.
void add_spreads(const BoundSetting& setting, Index h, const Weights& weights,
                 const Matrix& gradients, double gradient_error, HeadAtPoint& at) {
  const Matrix& x = *setting.x;
  const Index n = x.rows();
  const MultiHead& layer = setting.layer;
  const UpRounded s = upper_bound_scale(layer);
  const EnclosedMatrix map = product(key(layer, h), transposed(query(layer, h)));  // Aᵀ/s
  const bool few = n * layer.heads <= most_eigenproblems;
  std::vector<UpRounded> spreads(static_cast<std::size_t>(n));
  std::vector<UpRounded> diagonals(static_cast<std::size_t>(n));
  parallel_for(n, [&](Index i) {
    const Eigen::RowVectorXd mean =
        weights.upper.row(i) * x / std::max(weights.upper.row(i).sum(), 1e-300);
    Matrix y = x.rowwise() - mean;  // C_i is least at the true mean: any mean gives an upper bound
    for (Index j = 0; j < n; ++j) {
      y.row(j) *= std::sqrt(weights.upper(i, j));
    }
    const EnclosedMatrix root =
        enclosed(y, add_up(mul_up(4.0 * epsilon, upper_bound_norm_frobenius(y)), underflow));
    // C_i Aᵀ = Yᵀ (Y Aᵀ)
    const auto norm = [&](const EnclosedMatrix& m) {
      return few ? spectral(m) : up_rounded(upper_bound_norm_frobenius(m));
    };
    const UpRounded deviation = norm(root);
    const UpRounded gradient =
        UpRounded(upper_bound_norm_frobenius(gradients.row(i))) + UpRounded(gradient_error);
    const auto k = static_cast<std::size_t>(i);
    spreads[k] = 1.0 + deviation * deviation * gradient * gradient;
    diagonals[k] = deviation * s * norm(product(root, map));
  });
  at.spread = *std::max_element(spreads.begin(), spreads.end());
  at.diagonal = *std::max_element(diagonals.begin(), diagonals.end());
}

HeadAtPoint head_at_point(const BoundSetting& setting, Index h) {
  const MultiHead& layer = setting.layer;
  const Matrix& x = *setting.x;
  const Index n = x.rows();
  const UpRounded s = upper_bound_scale(layer);
  const EnclosedMatrix tokens = enclosed(x);
  const EnclosedMatrix spread = centred(x);
  const auto bias = key_bias(layer, h);
  HeadAtPoint at;
  at.value_map = value_output(layer, h);

  // (X A + 1 βᵀ)/s = (X W_Q + 1 b_Qᵀ) W_Kᵀ, whose rows are the gradients of the scores.
  const EnclosedMatrix xq = product(tokens, query(layer, h));
  EnclosedMatrix gradient = product(xq, transposed(key(layer, h)));
  if (bias) {
    const EnclosedMatrix ones = enclosed(Matrix::Ones(n, 1));
    gradient = product(beside({xq, ones}), transposed(beside({key(layer, h), *bias})));
  }
  at.xa = s * spectral(gradient);
  const EnclosedMatrix reverse = product(key(layer, h), transposed(query(layer, h)));
  at.xat = s * spectral(product(tokens, reverse));
  at.xat_centred = s * spectral(product(spread, reverse));
  at.xw = spectral(product(tokens, at.value_map));
  at.xw_centred = spectral(product(spread, at.value_map));

  // Scores up to a constant in each row, from centred tokens: S = (gradient) (X − x̄)ᵀ.
  const EnclosedMatrix scores = product(gradient, transposed(spread));
  const double scale = layer.score_scale();
  Matrix middle(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      middle(i, j) = scale * std::ldexp(scores.middle(i, j), scores.exponent);
    }
  }
  const double size = middle.cwiseAbs().maxCoeff();  // NaN and infinities are asked for below
  const double error = add_up(s.value() * std::ldexp(scores.error, scores.exponent) * (1.0 + 1e-12),
                              8.0 * epsilon * size);
  const UpRounded seeing = count_up(mask_facts(setting.mask, n).most_seeing);
  // Otherwise nothing is known of P but that its entries are in [0, 1] and rows sum to one at most.
  const bool known = middle.allFinite() && error < 0.25;
  const Weights weights = known ? softmax_within(middle, error, setting.mask)
                                : Weights{Matrix::Zero(n, n), Matrix::Ones(n, n)};
  at.P = enclosed(Matrix::Zero(n, n), next_up(std::sqrt(static_cast<double>(n))));
  at.p = sqrt(seeing);
  at.columns = seeing;
  at.g1 = softmax_lipschitz;
  at.softmax = softmax_lipschitz;
  at.softmax_inf = softmax_lipschitz;
  at.softmax_trace = 1.0;
  if (known) {
    UpRounded g1;
    UpRounded softmax;
    UpRounded inf;
    UpRounded trace;
    const Matrix half = 0.5 * (weights.upper + weights.lower);
    const Matrix radius = (weights.upper - weights.lower) * (0.5 + 1e-9);
    at.P = enclosed(half, add_up(upper_bound_norm_frobenius(radius),
                                 4.0 * epsilon * upper_bound_norm_frobenius(half)));
    UpRounded columns;
    for (Index j = 0; j < n; ++j) {
      UpRounded sum;
      for (Index i = 0; i < n; ++i) {
        sum += weights.upper(i, j);
      }
      columns = std::max(columns, sum);
    }
    at.columns = std::min(columns, seeing);
    at.p = std::min(spectral(at.P), sqrt(at.columns));
    for (Index i = 0; i < n; ++i) {
      const Vector lower = weights.lower.row(i).transpose();
      const Vector upper = weights.upper.row(i).transpose();
      g1 = std::max(g1, UpRounded(upper_bound_softmax_g1(lower, upper)));
      softmax = std::max(softmax, UpRounded(upper_bound_softmax_norm_2(lower, upper)));
      inf = std::max(inf, UpRounded(upper_bound_softmax_norm_inf(lower, upper)));
      trace = std::max(trace, UpRounded(upper_bound_softmax_trace(lower, upper)));
    }
    at.g1 = g1;
    at.softmax = softmax;
    at.softmax_inf = inf;
    at.softmax_trace = trace;
  }
  Matrix gradients(n, x.cols());
  for (Index i = 0; i < n; ++i) {
    for (Index a = 0; a < x.cols(); ++a) {
      gradients(i, a) = scale * std::ldexp(gradient.middle(i, a), gradient.exponent);
    }
  }
  if (!gradients.allFinite()) {
    at.spread = at.diagonal = at.farthest_gradient = std::numeric_limits<double>::infinity();
    return at;
  }
  const double gradient_error =
      add_up(s.value() * std::ldexp(gradient.error, gradient.exponent) * (1.0 + 1e-12),
             add_up(8.0 * epsilon * upper_bound_norm_frobenius(gradients), underflow));
  for (Index i = 0; i < n; ++i) {
    at.farthest_gradient =
        std::max(at.farthest_gradient, UpRounded(upper_bound_norm_frobenius(gradients.row(i))) +
                                           UpRounded(gradient_error));
  }
  add_spreads(setting, h, weights, gradients, gradient_error, at);
  return at;
}

}  // namespace

UpRounded up_rounded(const ScaledReal& x) {
  UpRounded value = x.value;
  for (int e = std::abs(x.exponent); e > 0;) {
    const int part = std::min(e, 1000);
    value *= std::ldexp(1.0, x.exponent < 0 ? -part : part);
    e -= part;
  }
  return value;
}

BoundContext::BoundContext(const BoundSetting& setting) : setting_(setting) {
  require_valid(setting);
  mask_ = mask_facts(setting.mask, setting.tokens);
}

UpRounded BoundContext::n() const {
  return count_up(setting_.tokens);
}

UpRounded BoundContext::column_count() const {
  return count_up(mask_.most_seeing);
}

const std::vector<HeadNorms>& BoundContext::heads() const {
  if (!heads_) {
    std::vector<HeadNorms> norms(static_cast<std::size_t>(layer().heads));
    parallel_for(layer().heads,
                 [&](Index h) { norms[static_cast<std::size_t>(h)] = norms_of(layer(), h); });
    heads_ = std::move(norms);
  }
  return *heads_;
}

const FusedNorms& BoundContext::fused() const {
  if (!fused_) {
    std::vector<EnclosedMatrix> out;
    for (Index h = 0; h < layer().heads; ++h) {
      const EnclosedMatrix qv = product(transposed(query(layer(), h)), value(layer(), h));
      out.push_back(transposed(product(qv, enclosed(output_rows(layer(), h)))));
    }
    fused_ = FusedNorms{.in = upper_bound_spectral_norm(layer().W_Q), .out = spectral(beside(out))};
  }
  return *fused_;
}

UpRounded BoundContext::output() const {
  if (!output_) {
    output_ = layer().W_O.size() > 0 ? UpRounded(upper_bound_spectral_norm(layer().W_O)) : 1.0;
  }
  return *output_;
}

const TokenNorms& BoundContext::token_norms() const {
  if (!token_norms_) {
    const Matrix& x = *setting_.x;
    TokenNorms norms{.x = upper_bound_spectral_norm(x),
                     .x_frobenius = upper_bound_norm_frobenius(x)};
    for (Index i = 0; i < x.rows(); ++i) {
      for (Index j = 0; j < i; ++j) {
        const Matrix difference = x.row(i) - x.row(j);
        norms.diameter = std::max(
            norms.diameter, UpRounded(upper_bound_norm_frobenius(difference)) * (1.0 + epsilon));
      }
    }
    token_norms_ = norms;
  }
  return *token_norms_;
}

const std::vector<HeadAtPoint>& BoundContext::heads_at_point() const {
  if (!heads_at_point_) {
    std::vector<HeadAtPoint> heads;
    for (Index h = 0; h < layer().heads; ++h) {
      heads.push_back(head_at_point(setting_, h));
    }
    heads_at_point_ = std::move(heads);
  }
  return *heads_at_point_;
}

}  // namespace lipsa
