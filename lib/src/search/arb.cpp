#include "search/arb.hpp"

#include <flint/fmpz.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "lipsa/core/parallel.hpp"

namespace lipsa {
namespace {

enum class Toward { below, above };

/// Integers of FLINT.
struct Whole {
  fmpz_t value{};
  Whole() { fmpz_init(value); }
  ~Whole() { fmpz_clear(value); }
  Whole(const Whole&) = delete;
  Whole& operator=(const Whole&) = delete;
  Whole(Whole&&) = delete;
  Whole& operator=(Whole&&) = delete;
};

/// A finite number of FLINT.
struct Float {
  arf_t value{};
  Float() { arf_init(value); }
  ~Float() { arf_clear(value); }
  Float(const Float&) = delete;
  Float& operator=(const Float&) = delete;
  Float(Float&&) = delete;
  Float& operator=(Float&&) = delete;
};

constexpr int digits = 17;
constexpr long widest_exponent = 100000;

void times_ten_to(Whole& x, long power) {
  Whole factor;
  fmpz_ui_pow_ui(factor.value, 10, static_cast<ulong>(power));
  fmpz_mul(x.value, x.value, factor.value);
}

/// x · 10^(digits − 1 − k), rounded to a whole number.
void scaled_digits(Whole& result, const arf_t x, long k, Toward toward) {
  Whole above;
  Whole below;
  Whole exponent;
  arf_get_fmpz_2exp(above.value, exponent.value, x);
  fmpz_one(below.value);
  const long e = fmpz_get_si(exponent.value);
  if (e >= 0) {
    fmpz_mul_2exp(above.value, above.value, static_cast<ulong>(e));
  } else {
    fmpz_mul_2exp(below.value, below.value, static_cast<ulong>(-e));
  }
  const long shift = digits - 1 - k;
  times_ten_to(shift >= 0 ? above : below, std::abs(shift));
  if (toward == Toward::below) {
    fmpz_fdiv_q(result.value, above.value, below.value);
  } else {
    fmpz_cdiv_q(result.value, above.value, below.value);
  }
}

/// A decimal number at or below (above) x ≥ 0.
std::string decimal(const arf_t x, Toward toward) {
  const bool below = toward == Toward::below;
  if (arf_is_zero(x) != 0) {
    return "0";
  }
  if (arf_is_finite(x) == 0) {
    return below ? "0" : "inf";
  }
  const long e = arf_abs_bound_lt_2exp_si(x);  // x < 2^e ≤ 2 x
  if (e > widest_exponent) {
    return below ? "1e30000" : "inf";  // 2^100000 > 10^30000
  }
  if (e < -widest_exponent) {
    return below ? "0" : "1e-30000";
  }
  auto k = static_cast<long>(std::floor(static_cast<double>(e - 1) * std::log10(2.0)));
  Whole n;
  std::array<char, 64> text{};
  for (;;) {
    scaled_digits(n, x, k, toward);
    const size_t length = fmpz_sizeinbase(n.value, 10);
    if (length < digits) {
      --k;
    } else if (length > digits) {
      ++k;
    } else {
      break;
    }
  }
  std::string s = fmpz_get_str(text.data(), 10, n.value);
  s.erase(s.find_last_not_of('0') + 1);
  const auto places = static_cast<long>(s.size());
  if (k < -5 || k >= digits) {
    return fmt::format("{}{}{}e{}", s[0], places > 1 ? "." : "", s.substr(1), k);
  }
  if (k < 0) {
    return fmt::format("0.{:0<{}}{}", "", -k - 1, s);
  }
  if (places <= k + 1) {
    return fmt::format("{:0<{}}", s, k + 1);
  }
  const auto whole = static_cast<std::size_t>(k + 1);
  return fmt::format("{}.{}", s.substr(0, whole), s.substr(whole));
}

constexpr slong text_bits = 256;

}  // namespace

void use_flint_on_this_thread() {
  struct Cleanup {
    Cleanup() = default;
    ~Cleanup() { flint_cleanup(); }
    Cleanup(const Cleanup&) = delete;
    Cleanup& operator=(const Cleanup&) = delete;
    Cleanup(Cleanup&&) = delete;
    Cleanup& operator=(Cleanup&&) = delete;
  };
  thread_local const Cleanup cleanup;
  static_cast<void>(cleanup);
}

double Real::lower() const {
  if (arb_is_finite(x_) == 0) {
    return -std::numeric_limits<double>::infinity();
  }
  Float bound;
  arb_get_lbound_arf(bound.value, x_, text_bits);
  return arf_get_d(bound.value, ARF_RND_FLOOR);
}

double Real::upper() const {
  if (arb_is_finite(x_) == 0) {
    return std::numeric_limits<double>::infinity();
  }
  Float bound;
  arb_get_ubound_arf(bound.value, x_, text_bits);
  return arf_get_d(bound.value, ARF_RND_CEIL);
}

std::string Real::lower_text() const {
  if (arb_is_finite(x_) == 0) {
    return "0";
  }
  Float bound;
  arb_get_lbound_arf(bound.value, x_, text_bits);
  return arf_sgn(bound.value) < 0 ? "0" : decimal(bound.value, Toward::below);
}

std::string Real::upper_text() const {
  if (arb_is_finite(x_) == 0) {
    return "inf";
  }
  Float bound;
  arb_get_ubound_arf(bound.value, x_, text_bits);
  return arf_sgn(bound.value) < 0 ? "0" : decimal(bound.value, Toward::above);
}

Reals::Reals(const ConstMatrixRef& exact) : Reals(exact.rows(), exact.cols()) {
  for (Index i = 0; i < rows_; ++i) {
    for (Index j = 0; j < cols_; ++j) {
      arb_set_d((*this)(i, j), exact(i, j));
    }
  }
}

Reals product(const Reals& a, const Reals& b, Index bits) {
  Reals c(a.rows(), b.cols());
  parallel_for(a.rows(), [&](Index i) {
    use_flint_on_this_thread();
    for (Index j = 0; j < b.cols(); ++j) {
      arb_dot(c(i, j), nullptr, 0, a(i, 0), 1, b(0, j), b.cols(), a.cols(), bits);
    }
  });
  return c;
}

Reals product_transposed(const Reals& a, const Reals& b, Index bits) {
  Reals c(a.rows(), b.rows());
  parallel_for(a.rows(), [&](Index i) {
    use_flint_on_this_thread();
    for (Index j = 0; j < b.rows(); ++j) {
      arb_dot(c(i, j), nullptr, 0, a(i, 0), 1, b(j, 0), 1, a.cols(), bits);
    }
  });
  return c;
}

Reals transposed(const Reals& a) {
  Reals t(a.cols(), a.rows());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.cols(); ++j) {
      arb_set(t(j, i), a(i, j));
    }
  }
  return t;
}

void scale_by(Reals& a, const Real& c, Index bits) {
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.cols(); ++j) {
      arb_mul(a(i, j), a(i, j), c, bits);
    }
  }
}

}  // namespace lipsa
