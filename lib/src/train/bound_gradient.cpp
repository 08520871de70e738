#include "lipsa/train/bound_gradient.hpp"

#include <cmath>
#include <vector>

#include "core/rounding.hpp"
#include "core/same_shapes.hpp"
#include "linalg/gemm.hpp"
#include "lipsa/attention/attention_gradient.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/linalg/spectral_norm.hpp"

namespace lipsa {
namespace {

double sign(double x) {
  return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
}

/// Σ_i |a_ij|, row after row: Eigen's colwise().sum() walks down columns.
Vector column_sums(const ConstMatrixRef& a) {
  Vector sums = Vector::Zero(a.cols());
  for (Index i = 0; i < a.rows(); ++i) {
    sums += a.row(i).cwiseAbs().transpose();
  }
  return sums;
}

Vector row_sums(const ConstMatrixRef& a) {
  return a.cwiseAbs().rowwise().sum();
}

/// The gradient of log |a|_1 = log max_j Σ_i |a_ij| is added to g.
void add_log_norm_1(const ConstMatrixRef& a, MatrixRef g) {
  Index column = 0;
  const double norm = column_sums(a).maxCoeff(&column);
  g.col(column) += a.col(column).unaryExpr(&sign) / norm;
}

/// The same of |a|_inf = max_i Σ_j |a_ij|.
void add_log_norm_inf(const ConstMatrixRef& a, MatrixRef g) {
  Index row = 0;
  const double norm = row_sums(a).maxCoeff(&row);
  g.row(row) += a.row(row).unaryExpr(&sign) / norm;
}

/// Whether a norm can be differentiated: of zero, and of what overflows, there are no vectors.
bool has_direction(const SpectralNorm& norm) {
  return norm.value > 0.0 && std::isfinite(norm.value) && norm.left_vector.size() > 0;
}

/// The same of factor · log |a|_2.
void add_log_spectral_norm(double factor, const ConstMatrixRef& a, MatrixRef g) {
  const SpectralNorm norm = spectral_norm(DenseOperator(a));
  if (!has_direction(norm)) {
    return;
  }
  g += factor / norm.value * norm.left_vector * norm.right_vector.transpose();
}

/// Head h of a weight whose columns are of heads.
template <class M>
auto head(M& weight, Index heads, Index h) {
  const Index width = weight.cols() / heads;
  return weight.middleCols(h * width, width);
}

void add_inf(const MultiHead& layer, MultiHead& g) {
  Vector score_norms(layer.heads);
  Vector value_norms(layer.heads);
  for (Index h = 0; h < layer.heads; ++h) {
    const auto w_q = head(layer.W_Q, layer.heads, h);
    score_norms(h) = std::log(row_sums(w_q).maxCoeff()) + std::log(column_sums(w_q).maxCoeff());
    value_norms(h) = column_sums(head(layer.W_V, layer.heads, h)).maxCoeff();
  }
  Index scores = 0;
  Index values = 0;
  score_norms.maxCoeff(&scores);
  value_norms.maxCoeff(&values);
  add_log_norm_inf(head(layer.W_Q, layer.heads, scores), head(g.W_Q, layer.heads, scores));
  add_log_norm_1(head(layer.W_Q, layer.heads, scores), head(g.W_Q, layer.heads, scores));
  add_log_norm_1(head(layer.W_V, layer.heads, values), head(g.W_V, layer.heads, values));
  if (layer.W_O.size() > 0) {
    add_log_norm_1(layer.W_O, g.W_O);
  }
}

void add_kim2021_2(const MultiHead& layer, MultiHead& g) {
  const auto heads = static_cast<std::size_t>(layer.heads);
  std::vector<SpectralNorm> q(heads);
  std::vector<SpectralNorm> v(heads);
  Vector log_terms(layer.heads);  // of |W_Qʰ|⁴ |W_Vʰ|²
  for (Index h = 0; h < layer.heads; ++h) {
    const auto k = static_cast<std::size_t>(h);
    q[k] = spectral_norm(DenseOperator(head(layer.W_Q, layer.heads, h)));
    v[k] = spectral_norm(DenseOperator(head(layer.W_V, layer.heads, h)));
    log_terms(h) = 4.0 * std::log(q[k].value) + 2.0 * std::log(v[k].value);
  }
  if (log_terms.maxCoeff() == -std::numeric_limits<double>::infinity()) {
    return;  // w = 0 though no weight is
  }
  Vector share = (log_terms.array() - log_terms.maxCoeff()).exp();
  share /= share.sum();
  for (Index h = 0; h < layer.heads; ++h) {
    const auto k = static_cast<std::size_t>(h);
    if (has_direction(q[k]) && has_direction(v[k])) {
      head(g.W_Q, layer.heads, h) +=
          2.0 * share(h) / q[k].value * q[k].left_vector * q[k].right_vector.transpose();
      head(g.W_V, layer.heads, h) +=
          share(h) / v[k].value * v[k].left_vector * v[k].right_vector.transpose();
    }
  }
  if (layer.W_O.size() > 0) {
    add_log_spectral_norm(1.0, layer.W_O, g.W_O);
  }
}

void add_fused(const MultiHead& layer, MultiHead& g) {
  const SerialBlas serial;
  const Index H = layer.heads;
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  Matrix stacked = Matrix::Zero(H * d, layer.output_width());  // of W_Qʰᵀ W_Vʰ W_Oʰ
  for (Index h = 0; h < H; ++h) {
    const Matrix qv = head(layer.W_Q, H, h).transpose() * head(layer.W_V, H, h);
    auto rows = stacked.middleRows(h * d, d);
    if (layer.W_O.size() > 0) {
      rows.noalias() = qv * layer.W_O.middleRows(h * d_v, d_v);
    } else {
      rows.middleCols(h * d_v, d_v) = qv;
    }
  }
  const SpectralNorm norm = spectral_norm(DenseOperator(stacked));
  if (!has_direction(norm)) {
    return;
  }
  add_log_spectral_norm(1.0, layer.W_Q, g.W_Q);
  const Vector& v = norm.right_vector;
  for (Index h = 0; h < H; ++h) {
    const auto w_q = head(layer.W_Q, H, h);
    const auto w_v = head(layer.W_V, H, h);
    const Vector u = norm.left_vector.segment(h * d, d) / norm.value;
    const Vector ov = layer.W_O.size() > 0 ? Vector(layer.W_O.middleRows(h * d_v, d_v) * v)
                                           : Vector(v.segment(h * d_v, d_v));
    const Vector qu = w_q * u;
    head(g.W_Q, H, h) += w_v * ov * u.transpose();
    head(g.W_V, H, h) += qu * ov.transpose();
    if (layer.W_O.size() > 0) {
      g.W_O.middleRows(h * d_v, d_v) += w_v.transpose() * qu * v.transpose();
    }
  }
}

}  // namespace

BoundGradient bound_gradient(std::string_view entry, const MultiHead& layer, const Mask& mask,
                             Index tokens) {
  const bool inf = entry == "kim2021_inf" || entry == "sharp_l2_inf";
  require(inf || entry == "kim2021_2" || entry == "l2_2_fused",
          "bound_gradient: entry must be kim2021_inf, sharp_l2_inf, kim2021_2 or l2_2_fused, got "
          "'{}'",
          entry);
  const Bound bound = find_entry(entry).evaluate({.layer = layer, .mask = mask, .tokens = tokens});
  require(bound.holds, "bound_gradient: {} must hold for the layer: {}", entry, bound.reason);
  BoundGradient result{.upper_bound = bound.value, .log_gradient = zeros_like(layer)};
  if (layer.W_Q.isZero(0.0) || layer.W_V.isZero(0.0) ||
      (layer.W_O.size() > 0 && layer.W_O.isZero(0.0))) {
    result.upper_bound = 0.0;  // where the entry covers rounding that is not there
  } else if (std::isfinite(bound.value)) {
    (inf ? add_inf : entry == "kim2021_2" ? add_kim2021_2 : add_fused)(layer, result.log_gradient);
  }
  return result;
}

double contractive_gain(const BoundGradient& bound, double factor) {
  require(factor > 0.0 && std::isfinite(factor),
          "contractive_gain: factor must be positive, got {}", factor);
  if (!(bound.upper_bound > 0.0) || std::isinf(bound.upper_bound)) {
    return 0.0;
  }
  return std::max(0.0, next_down(factor / bound.upper_bound));
}

void add_gain_gradient(const BoundGradient& bound, double gain, double gain_gradient,
                       MultiHead& gradient) {
  require_same_shapes("add_gain_gradient", bound.log_gradient, gradient);
  const double factor = -gain * gain_gradient;
  const auto from = parameters(bound.log_gradient);
  auto to = parameters(gradient);
  for (std::size_t k = 0; k < to.size(); ++k) {
    to[k].values += factor * from[k].values;
  }
}

}  // namespace lipsa
