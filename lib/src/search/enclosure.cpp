#include "lipsa/search/enclosure.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

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

Enclosure lambert_w_of(const Real& y) {
  constexpr Index bits = 192;
  Real w;
  arb_lambertw(w, y, 0, bits);
  return {std::max(w.lower(), 0.0), w.upper()};
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
  const Matrix matrix = w;
  const double estimate = spectral_norm(DenseOperator(matrix), {.relative_tolerance = 1e-13}).value;
  for (int k = 50; k >= 40; k -= 2) {
    const double s = next_up(estimate * (1.0 + std::ldexp(1.0, -k)));
    if (std::isfinite(s) && certify_spectral_norm(w, s)) {
      return s;
    }
  }
  return upper_bound_spectral_norm(w);
}

Enclosure enclose_lambert_w(double y) {
  require_argument("enclose_lambert_w", y);
  use_flint_on_this_thread();
  return lambert_w_of(Real(y));
}

Enclosure enclose_phi_inverse(double y) {
  require_argument("enclose_phi_inverse", y);
  use_flint_on_this_thread();
  constexpr Index bits = 192;
  Real argument;
  arb_const_e(argument, bits);
  arb_div(argument, Real(y), argument, bits);
  return lambert_w_of(argument);
}

}  // namespace lipsa
