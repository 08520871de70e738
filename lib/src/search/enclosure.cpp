#include "lipsa/search/enclosure.hpp"

#include <algorithm>
#include <cmath>
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

Real whole(Index count) {
  Real x;
  arb_set_si(x, count);
  return x;
}

Reals head_of(const Matrix& w, Index h, Index width) {
  return Reals(w.middleCols(h * width, width));
}

/// s |W_Oᵀ|_inf max_h(|W_Qʰ|_inf |W_Qʰᵀ|_inf) max_h |W_Vʰᵀ|_inf
Real weights_inf(const MultiHead& layer) {
  Real scores;
  Real values;
  Real term;
  for (Index h = 0; h < layer.heads; ++h) {
    const Reals w_q = head_of(layer.W_Q, h, layer.head_width());
    const Reals w_v = head_of(layer.W_V, h, layer.value_width());
    arb_mul(term, largest_row_sum(w_q), largest_row_sum(transposed(w_q)), formula_bits);
    arb_max(scores, scores, term, formula_bits);
    arb_max(values, values, largest_row_sum(transposed(w_v)), formula_bits);
  }
  Real product = ball_scale(layer, formula_bits);
  arb_mul(product, product, scores, formula_bits);
  arb_mul(product, product, values, formula_bits);
  if (layer.W_O.size() > 0) {
    arb_mul(product, product, largest_row_sum(transposed(Reals(layer.W_O))), formula_bits);
  }
  return product;
}

/// (4 √d W((n−1)/e) + 1) times the weights
Real kim_inf(const MultiHead& layer, Index tokens) {
  Real core;
  arb_sqrt_ui(core, static_cast<ulong>(layer.head_width()), formula_bits);
  arb_mul(core, core, phi_inverse_of(whole(tokens - 1)), formula_bits);
  arb_mul_2exp_si(core, core, 2);
  arb_add_ui(core, core, 1, formula_bits);
  arb_mul(core, core, weights_inf(layer), formula_bits);
  return core;
}

/// (1 + κ W((n−1) e^(−1−2/κ))) times the weights, κ = 2 (1 + √d)
Real sharp_inf(const MultiHead& layer, Index tokens) {
  Real half_kappa;
  arb_sqrt_ui(half_kappa, static_cast<ulong>(layer.head_width()), formula_bits);
  arb_add_ui(half_kappa, half_kappa, 1, formula_bits);
  Real core;
  arb_inv(core, half_kappa, formula_bits);
  arb_add_ui(core, core, 1, formula_bits);
  arb_neg(core, core);
  arb_exp(core, core, formula_bits);
  arb_mul_si(core, core, tokens - 1, formula_bits);
  core = lambert_w_of(core);
  arb_mul(core, core, half_kappa, formula_bits);
  arb_mul_2exp_si(core, core, 1);
  arb_add_ui(core, core, 1, formula_bits);
  arb_mul(core, core, weights_inf(layer), formula_bits);
  return core;
}

/// √n s (4 W((n−1)/e) + 1) (Σ_h |W_Qʰ|₂⁴ |W_Vʰ|₂²)^½ |W_O|₂, which grows with each of the norms
Real kim_two(const MultiHead& layer, Index tokens) {
  Real sum;
  for (Index h = 0; h < layer.heads; ++h) {
    const Index d = layer.head_width();
    const Index d_v = layer.value_width();
    Real term(certified_upper_bound_spectral_norm(layer.W_Q.middleCols(h * d, d)));
    arb_sqr(term, term, formula_bits);
    const Real values(certified_upper_bound_spectral_norm(layer.W_V.middleCols(h * d_v, d_v)));
    arb_mul(term, term, values, formula_bits);
    arb_addmul(sum, term, term, formula_bits);
  }
  arb_sqrt(sum, sum, formula_bits);
  Real core = phi_inverse_of(whole(tokens - 1));
  arb_mul_2exp_si(core, core, 2);
  arb_add_ui(core, core, 1, formula_bits);
  arb_mul(core, core, sum, formula_bits);
  arb_mul(core, core, ball_scale(layer, formula_bits), formula_bits);
  arb_sqrt_ui(sum, static_cast<ulong>(tokens), formula_bits);
  arb_mul(core, core, sum, formula_bits);
  if (layer.W_O.size() > 0) {
    const Real output(certified_upper_bound_spectral_norm(layer.W_O));
    arb_mul(core, core, output, formula_bits);
  }
  return core;
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
  const Reals rows = w.rows() <= w.cols() ? Reals(w) : transposed(Reals(w));
  const Real limit(s);
  for (Index bits = 64; bits <= most_cholesky_bits; bits *= 2) {
    switch (definite(rows, limit, bits)) {
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

double certified_upper_bound_spectral_norm(const ConstMatrixRef& w) {
  require(w.allFinite(),
          "certified_upper_bound_spectral_norm: w must be finite, got an infinity or a NaN");
  if (w.size() == 0 || w.isZero(0.0)) {
    return 0.0;
  }
  use_flint_on_this_thread();
  const double easy = easy_bound(Reals(w));
  if (std::min(w.rows(), w.cols()) == 1) {
    return easy;  // |W|_F is the norm
  }
  const Matrix matrix = w;
  const double estimate = spectral_norm(DenseOperator(matrix), {.relative_tolerance = 1e-13}).value;
  std::vector<double> steps{upper_bound_spectral_norm(matrix)};
  for (int k = 52; k >= 40; k -= 2) {
    steps.push_back(next_up(estimate * (1.0 + std::ldexp(1.0, -k))));
  }
  std::sort(steps.begin(), steps.end());
  for (const double s : steps) {
    if (!(s < easy)) {
      break;
    }
    if (certify_spectral_norm(matrix, s)) {
      return s;
    }
  }
  return easy;
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
  if (!find_entry(name).evaluate(setting).holds) {
    return std::nullopt;
  }
  use_flint_on_this_thread();
  if (name == "kim2021_inf") {
    return kim_inf(setting.layer, setting.tokens).upper();
  }
  if (name == "kim2021_2") {
    return kim_two(setting.layer, setting.tokens).upper();
  }
  if (name == "sharp_l2_inf") {
    const Index seen = mask_facts(setting.mask, setting.tokens).most_seen;
    return sharp_inf(setting.layer, std::max<Index>(seen, 1)).upper();
  }
  return std::nullopt;
}

}  // namespace lipsa
