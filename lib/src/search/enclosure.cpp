#include "lipsa/search/enclosure.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "bounds/entries.hpp"
#include "core/check.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/linalg/linear_operator.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "search/arb.hpp"
#include "search/ball_attention.hpp"

namespace lipsa {
namespace {

constexpr Index most_bits = 1000000;
constexpr Index most_cholesky_bits = 1024;
constexpr Index formula_bits = 192;

enum class Definite { yes, no, unknown };

/// Whether s² I − W Wᵀ is positive definite, for few rows. Column by column, in place.
Definite definite(const Reals& w, const Real& s, Index bits) {
  const Index n = w.rows();
  Reals a = product_transposed(w, w, bits);
  Real square;
  arb_sqr(square, s, bits);
  parallel_for(n, [&](Index i) {
    use_flint_on_this_thread();
    for (Index j = 0; j <= i; ++j) {
      arb_neg(a(i, j), a(i, j));
    }
    arb_add(a(i, i), a(i, i), square, bits);
  });
  for (Index k = 0; k < n; ++k) {
    // In exact arithmetic this is a ratio of leading principal minors.
    arb_dot(a(k, k), a(k, k), 1, a(k, 0), 1, a(k, 0), 1, k, bits);
    if (arb_is_nonpositive(a(k, k)) != 0) {
      return Definite::no;
    }
    if (arb_is_positive(a(k, k)) == 0) {
      return Definite::unknown;
    }
    arb_sqrt(a(k, k), a(k, k), bits);
    parallel_for(n - k - 1, [&](Index step) {
      use_flint_on_this_thread();
      const Index i = k + 1 + step;
      arb_dot(a(i, k), a(i, k), 1, a(i, 0), 1, a(k, 0), 1, k, bits);
      arb_div(a(i, k), a(i, k), a(k, k), bits);
    });
  }
  return Definite::yes;
}

/// Whether |W|_2 < s, proved.
bool certify(const Reals& w, const Real& s) {
  const std::optional<Reals> turned =
      w.rows() <= w.cols() ? std::nullopt : std::optional(transposed(w));
  for (Index bits = 64; bits <= most_cholesky_bits; bits *= 2) {
    switch (definite(turned ? *turned : w, s, bits)) {
      case Definite::yes:
        return true;
      case Definite::no:
        return false;
      case Definite::unknown:
        break;
    }
  }
  return false;
}

/// The larger of two sums that are known up to a ball: bounds of the largest.
struct Largest {
  double lower = 0.0;
  double upper = 0.0;
  void see(const Real& sum) {
    lower = std::max(lower, sum.lower());
    upper = std::max(upper, sum.upper());
  }
};

/// Adds |x| to sum.
void add_magnitude(arb_ptr sum, arb_srcptr x, Real& scratch, Index bits) {
  if (arb_is_nonnegative(x) != 0) {
    arb_add(sum, sum, x, bits);
  } else if (arb_is_nonpositive(x) != 0) {
    arb_sub(sum, sum, x, bits);
  } else {
    arb_abs(scratch, x);
    arb_add(sum, sum, scratch, bits);
  }
}

/// The largest Σ_j |a_ij|, |a|_inf.
Real largest_row_sum(const Reals& a) {
  Real largest;
  Real scratch;
  for (Index i = 0; i < a.rows(); ++i) {
    Real sum;
    for (Index j = 0; j < a.cols(); ++j) {
      add_magnitude(sum, a(i, j), scratch, formula_bits);
    }
    arb_max(largest, largest, sum, formula_bits);
  }
  return largest;
}

/// The smaller of |W|_F and (|W|_1 |W|_inf)^½.
double easy_bound(const Reals& w) {
  Real square;
  for (Index i = 0; i < w.rows(); ++i) {
    for (Index j = 0; j < w.cols(); ++j) {
      arb_addmul(square, w(i, j), w(i, j), formula_bits);
    }
  }
  arb_sqrt(square, square, formula_bits);
  Real product;
  arb_mul(product, largest_row_sum(w), largest_row_sum(transposed(w)), formula_bits);
  arb_sqrt(product, product, formula_bits);
  return std::min(square.upper(), product.upper());
}

/// certified_upper_bound_spectral_norm of a matrix that is not empty; `near` are doubles about it.
double certified_norm(const Reals& w, const Matrix& near) {
  const double easy = easy_bound(w);
  if (std::min(w.rows(), w.cols()) == 1 || !near.allFinite() || near.isZero(0.0)) {
    return easy;  // of one row or column |W|_F is the norm
  }
  const double estimate = spectral_norm(DenseOperator(near), {.relative_tolerance = 1e-13}).value;
  std::vector<double> steps{upper_bound_spectral_norm(near)};
  for (int k = 52; k >= 40; k -= 2) {
    steps.push_back(next_up(estimate * (1.0 + std::ldexp(1.0, -k))));
  }
  std::sort(steps.begin(), steps.end());
  for (const double s : steps) {
    if (!(s < easy)) {
      break;
    }
    if (certify(w, Real(s))) {
      return s;
    }
  }
  return easy;
}

Real lambert_w_of(const Real& y) {
  Real w;
  arb_lambertw(w, y, 0, formula_bits);
  return w;
}

Enclosure enclosure_of(const Real& w) {
  return {std::max(w.lower(), 0.0), w.upper()};
}

/// W(y/e)
Real phi_inverse_of(const Real& y) {
  Real argument;
  arb_const_e(argument, formula_bits);
  arb_div(argument, y, argument, formula_bits);
  return lambert_w_of(argument);
}

// Formulas. Where a norm is one from above, so is what grows with it.

Real operator+(Real a, const Real& b) {
  arb_add(a, a, b, formula_bits);
  return a;
}

Real operator*(Real a, const Real& b) {
  arb_mul(a, a, b, formula_bits);
  return a;
}

Real sqrt(Real a) {
  arb_sqrt(a, a, formula_bits);
  return a;
}

Real exp(Real a) {
  arb_exp(a, a, formula_bits);
  return a;
}

/// a or b: both are bounds, and this is the lesser, as far as doubles tell.
Real lesser(const Real& a, const Real& b) {
  return a.upper() < b.upper() ? a : b;
}

Real whole(Index count) {
  Real x;
  arb_set_si(x, count);
  return x;
}

Reals head_of(const Matrix& w, Index h, Index width) {
  return Reals(w.middleCols(h * width, width));
}

/// |W|_2 from above.
Real norm_of(const Reals& w) {
  Matrix near(w.rows(), w.cols());
  for (Index i = 0; i < w.rows(); ++i) {
    for (Index j = 0; j < w.cols(); ++j) {
      near(i, j) = arf_get_d(arb_midref(w(i, j)), ARF_RND_NEAR);
    }
  }
  return Real(certified_norm(w, near));
}

/// The weights of one head.
struct Head {
  const MultiHead& layer;
  Index h;

  Reals q() const { return head_of(layer.W_Q, h, layer.head_width()); }
  Reals k() const { return head_of(layer.W_K, h, layer.head_width()); }
  Reals v() const { return head_of(layer.W_V, h, layer.value_width()); }
  Reals o() const {
    return Reals(layer.W_O.middleRows(h * layer.value_width(), layer.value_width()));
  }

  /// W W_O^h, or W where there is no W_O.
  Reals out(Reals w) const {
    return layer.W_O.size() == 0 ? std::move(w) : product(w, o(), formula_bits);
  }

  /// |W_O^h|_2
  Real output() const { return layer.W_O.size() == 0 ? whole(1) : norm_of(o()); }

  /// s |W_K b_Q|_2
  Real bias() const {
    if (layer.b_Q.size() == 0) {
      return whole(0);
    }
    const Reals b_q(layer.b_Q.segment(h * layer.head_width(), layer.head_width()));
    return ball_scale(layer, formula_bits) * norm_of(product(k(), b_q, formula_bits));
  }
};

template <class F>
Real sum_over_heads(const MultiHead& layer, const F& term) {
  Real sum;
  for (Index h = 0; h < layer.heads; ++h) {
    sum = sum + term(Head{layer, h});
  }
  return sum;
}

/// s |W_Oᵀ|_inf max_h(|W_Qʰ|_inf |W_Qʰᵀ|_inf) max_h |W_Vʰᵀ|_inf
Real weights_inf(const MultiHead& layer) {
  Real scores;
  Real values;
  for (Index h = 0; h < layer.heads; ++h) {
    const Head head{layer, h};
    const Real term = largest_row_sum(head.q()) * largest_row_sum(transposed(head.q()));
    arb_max(scores, scores, term, formula_bits);
    arb_max(values, values, largest_row_sum(transposed(head.v())), formula_bits);
  }
  const Real product = ball_scale(layer, formula_bits) * scores * values;
  return layer.W_O.size() == 0 ? product : product * largest_row_sum(transposed(Reals(layer.W_O)));
}

/// (4 √d W(m/e) + 1) times the weights, m = n − 1, or n as it is printed
Real kim_inf(const MultiHead& layer, Index m) {
  const Real d = whole(layer.head_width());
  return (whole(4) * sqrt(d) * phi_inverse_of(whole(m)) + whole(1)) * weights_inf(layer);
}

/// (1 + κ W((n−1) e^(−1−2/κ))) times the weights, κ = 2 (1 + √d)
Real sharp_inf(const MultiHead& layer, Index tokens) {
  const Real half_kappa = sqrt(whole(layer.head_width())) + whole(1);
  Real exponent;
  arb_inv(exponent, half_kappa, formula_bits);
  arb_add_ui(exponent, exponent, 1, formula_bits);
  arb_neg(exponent, exponent);
  const Real w = lambert_w_of(exp(exponent) * whole(tokens - 1));
  return (whole(1) + whole(2) * half_kappa * w) * weights_inf(layer);
}

/// √n s (4 W(m/e) + 1) (Σ_h |W_Qʰ|₂⁴ |W_Vʰ|₂²)^½ |W_O|₂, which grows with each of the norms; as it
/// is printed, |W_Qʰ|₂² and m = n
Real kim_two(const MultiHead& layer, Index tokens, bool printed) {
  const Real squares = sum_over_heads(layer, [&](const Head& head) {
    const Real q = norm_of(head.q());
    const Real term = (printed ? q : q * q) * norm_of(head.v());
    return term * term;
  });
  const Real c = phi_inverse_of(whole(printed ? tokens : tokens - 1));
  const Real core = sqrt(whole(tokens)) * (whole(4) * c + whole(1));
  const Real output = layer.W_O.size() == 0 ? whole(1) : norm_of(Reals(layer.W_O));
  return core * ball_scale(layer, formula_bits) * sqrt(squares) * output;
}

/// L_2(n) s Σ_h |W_Qʰ|₂ |W_Qʰᵀ W_Vʰ W_Oʰ|₂ with L_2(n) = min(√σ + 2c + 2 √(c M), √n (4c + 1)); see
/// bounds/l2_two_norm.hpp for σ and M, of whose bounds c (σ + 1) is never the least
Real l2_two(const BoundSetting& setting) {
  const MaskFacts facts = mask_facts(setting.mask, setting.tokens);
  const Index others = facts.most_others;
  const Real n = whole(setting.tokens);
  const Real c = phi_inverse_of(whole(std::max<Index>(facts.most_seen, 1) - 1));
  Real columns = whole(std::max<Index>(facts.most_seeing, 1));
  Real moment = whole(others) * phi_inverse_of(whole(1));
  if (setting.mask.kind() != Mask::Kind::arbitrary) {
    const Real factor = whole(setting.mask.kind() == Mask::Kind::causal ? 2 : 1);
    columns = lesser(columns, sqrt(factor * n));
    if (setting.tokens >= 8) {  // then 2/ln n < 1, and n^((1+e)/2)/(e exp 1) is least there
      Real log_n;
      arb_log(log_n, n, formula_bits);
      moment = lesser(moment, sqrt(factor * n) * log_n * Real(0.5));
    }
  }
  const Real core = lesser(sqrt(columns) + whole(2) * c + whole(2) * sqrt(c * moment),
                           sqrt(n) * (whole(4) * c + whole(1)));
  return core * ball_scale(setting.layer, formula_bits) *
         sum_over_heads(setting.layer, [&](const Head& head) {
           const Reals w_q = head.q();
           Reals q_v = product(transposed(w_q), head.v(), formula_bits);
           return norm_of(w_q) * norm_of(head.out(std::move(q_v)));
         });
}

/// s |W_Q W_Kᵀ|₂ R²
Real score_curvature(const BoundSetting& setting, const Head& head) {
  const Real r(setting.radius);
  return ball_scale(setting.layer, formula_bits) *
         norm_of(product_transposed(head.q(), head.k(), formula_bits)) * r * r;
}

/// Σ_h √3 |W_V W_O|₂ (t² (4n + 1) + n)^½ with t = a R²
Real castin_ball(const BoundSetting& setting) {
  const Real n = whole(setting.tokens);
  return sum_over_heads(setting.layer, [&](const Head& head) {
    const Real t = score_curvature(setting, head);
    return sqrt(whole(3)) * norm_of(head.out(head.v())) *
           sqrt(t * t * (whole(4) * n + whole(1)) + n);
  });
}

/// Σ_h |W_V W_O|₂ (1 + 3t) exp(2t)
Real castin_mean_field(const BoundSetting& setting) {
  return sum_over_heads(setting.layer, [&](const Head& head) {
    const Real t = score_curvature(setting, head);
    return norm_of(head.out(head.v())) * (whole(1) + whole(3) * t) * exp(whole(2) * t);
  });
}

/// At or above the column sums of P where no gradient of a score is longer than r/R: the count of
/// tokens that see one, exp(2r) without a mask, (1 + 1/2 + … + 1/n) exp(2r) with a causal one.
Real column_sum(const BoundSetting& setting, const Real& r) {
  Real count = whole(mask_facts(setting.mask, setting.tokens).most_seeing);
  if (setting.mask.kind() == Mask::Kind::arbitrary) {
    return count;
  }
  const Real most = exp(whole(2) * r);
  if (setting.mask.kind() == Mask::Kind::none) {
    return lesser(most, count);
  }
  Real harmonic;  // ψ(n + 1) + γ
  Real euler;
  arb_digamma(harmonic, whole(setting.tokens + 1), formula_bits);
  arb_const_euler(euler, formula_bits);
  return lesser((harmonic + euler) * most, count);
}

/// Σ_h |W_V W_O|₂ ((c (1 + r²))^½ + t) with r = t + R s |W_K b_Q|₂ and c the column sums, or 1 in
/// the max-token norm
Real dot_ball(const BoundSetting& setting, Norm norm) {
  return sum_over_heads(setting.layer, [&](const Head& head) {
    const Real t = score_curvature(setting, head);
    const Real r = t + Real(setting.radius) * head.bias();
    const Real c = norm == Norm::two ? column_sum(setting, r) : whole(1);
    return norm_of(head.out(head.v())) * (sqrt(c * (whole(1) + r * r)) + t);
  });
}

/// Σ_h |W_O|₂ (|W_V|₂ + s (|W_Q|₂ + |W_K|₂))/√ε
Real cosine_max_tokens(const MultiHead& layer) {
  Real root_inverse(layer.epsilon);
  arb_rsqrt(root_inverse, root_inverse, formula_bits);
  const Real s = ball_scale(layer, formula_bits);
  return root_inverse * sum_over_heads(layer, [&](const Head& head) {
           return head.output() * (norm_of(head.v()) + s * (norm_of(head.q()) + norm_of(head.k())));
         });
}

/// The formula of an entry; none where it is not written down here.
std::optional<Real> formula(const BoundSetting& setting, std::string_view name) {
  const MultiHead& layer = setting.layer;
  const Index n = setting.tokens;
  if (name == "kim2021_inf" || name == "kim2021_inf_printed") {
    return kim_inf(layer, name == "kim2021_inf" ? n - 1 : n);
  }
  if (name == "kim2021_2" || name == "kim2021_2_printed") {
    return kim_two(layer, n, name == "kim2021_2_printed");
  }
  if (name == "sharp_l2_inf") {
    return sharp_inf(layer, std::max<Index>(mask_facts(setting.mask, n).most_seen, 1));
  }
  if (name == "l2_2_sum") {
    return l2_two(setting);
  }
  if (name == "castin2024_ball") {
    return castin_ball(setting);
  }
  if (name == "castin2024_mean_field") {
    return castin_mean_field(setting);
  }
  if (name == "dot_ball_2_sum") {
    return dot_ball(setting, Norm::two);
  }
  if (name == "dot_ball_max_token_sum") {
    return dot_ball(setting, Norm::max_token);
  }
  if (name == "cosine_max_token") {
    return cosine_max_tokens(layer);
  }
  return std::nullopt;
}

void require_argument(std::string_view function, double y) {
  require(std::isfinite(y) && y >= 0.0, "{}: y must be finite and at least 0, got {}", function, y);
}

}  // namespace

Enclosure enclose_local_norm(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask,
                             Norm norm, Index bits) {
  require_valid(layer);
  require(norm == Norm::one || norm == Norm::inf,
          "enclose_local_norm: norm must be 1 or inf, got {}", to_string(norm));
  require(bits >= 32 && bits <= most_bits, "enclose_local_norm: bits must be from 32 to {}, got {}",
          most_bits, bits);
  require(x.rows() >= 1 && x.cols() == layer.width() && x.allFinite(),
          "enclose_local_norm: x must be finite with at least one row and {} columns, got {} x {}",
          layer.width(), x.rows(), x.cols());
  require(mask.tokens() == 0 || mask.tokens() == x.rows(),
          "enclose_local_norm: mask must be for {} tokens as x, got {}", x.rows(), mask.tokens());
  const BallJacobian jacobian(layer, x, mask, bits);
  const Index n = jacobian.tokens();
  const bool rows = norm == Norm::inf;
  const Index sums = rows ? jacobian.output_width() : jacobian.width();
  std::vector<Largest> largest(static_cast<std::size_t>(n));
  parallel_for(n, [&](Index token) {
    use_flint_on_this_thread();
    Reals sum(1, sums);
    Reals block(jacobian.output_width(), jacobian.width());
    Real scratch;
    for (Index other = 0; other < n; ++other) {
      jacobian.block(rows ? token : other, rows ? other : token, block);
      for (Index r = 0; r < block.rows(); ++r) {
        for (Index c = 0; c < block.cols(); ++c) {
          add_magnitude(sum(0, rows ? r : c), block(r, c), scratch, bits);
        }
      }
    }
    for (Index k = 0; k < sums; ++k) {
      arb_swap(scratch, sum(0, k));
      largest[static_cast<std::size_t>(token)].see(scratch);
    }
  });
  Enclosure all{0.0, 0.0};
  for (const Largest& one : largest) {
    all = {std::max(all.lower, one.lower), std::max(all.upper, one.upper)};
  }
  return all;
}

bool certify_spectral_norm(const ConstMatrixRef& w, double s) {
  require(w.allFinite(), "certify_spectral_norm: w must be finite, got an infinity or a NaN");
  require(std::isfinite(s) && s >= 0.0,
          "certify_spectral_norm: s must be finite and at least 0, got {}", s);
  if (s == 0.0) {
    return false;
  }
  use_flint_on_this_thread();
  return certify(Reals(w), Real(s));
}

double certified_upper_bound_spectral_norm(const ConstMatrixRef& w) {
  require(w.allFinite(),
          "certified_upper_bound_spectral_norm: w must be finite, got an infinity or a NaN");
  if (w.size() == 0 || w.isZero(0.0)) {
    return 0.0;
  }
  use_flint_on_this_thread();
  return certified_norm(Reals(w), w);
}

Enclosure enclose_lambert_w(double y) {
  require_argument("enclose_lambert_w", y);
  use_flint_on_this_thread();
  return enclosure_of(lambert_w_of(Real(y)));
}

Enclosure enclose_phi_inverse(double y) {
  require_argument("enclose_phi_inverse", y);
  use_flint_on_this_thread();
  return enclosure_of(phi_inverse_of(Real(y)));
}

std::optional<double> certified_bound(const BoundSetting& setting, std::string_view name) {
  if (std::isnan(find_entry(name).evaluate(setting).value)) {
    return std::nullopt;
  }
  use_flint_on_this_thread();
  const std::optional<Real> value = formula(setting, name);
  return value ? std::optional(value->upper()) : std::nullopt;
}

}  // namespace lipsa
