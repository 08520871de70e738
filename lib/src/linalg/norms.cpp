#include "lipsa/linalg/norms.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/check.hpp"
#include "core/rounding.hpp"
#include "linalg/gemm.hpp"

namespace lipsa {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double epsilon = std::numeric_limits<double>::epsilon();

void require_finite(const ConstMatrixRef& a, std::string_view function) {
  require(a.allFinite(), "{}: matrix must be finite, got an infinity or a NaN", function);
}

/// e with max |a_ij| in [2^(e-1), 2^e); 0 for a zero matrix.
int exponent(const ConstMatrixRef& a) {
  int e = 0;
  static_cast<void>(std::frexp(a.size() == 0 ? 0.0 : a.cwiseAbs().maxCoeff(), &e));
  return e;
}

/// a 2^-e. Exact, but for entries pushed below the normal range: off by at most 2^-1075 each.
Matrix scaled(const ConstMatrixRef& a, int e) {
  const int half = e / 2;
  return a * std::ldexp(1.0, -half) * std::ldexp(1.0, half - e);
}

/// x 2^e, upwards.
double unscaled_up(double x, int e) {
  const double y = std::ldexp(x, e);
  return std::ldexp(y, -e) < x ? next_up(y) : y;
}

// Sharper than core/rounding.hpp: exact operations stay exact.

/// s + x for nonnegative s and x. The rounding error of a sum is a double (Knuth).
double sum_up(double s, double x) {
  const double t = s + x;
  const double back = t - s;
  return (s - (t - back)) + (x - back) > 0.0 ? next_up(t) : t;
}

/// x². Where the rounding error might underflow it is taken to be positive.
double square_up(double x) {
  const double s = x * x;
  return (x != 0.0 && s < 0x1p-900) || std::fma(x, x, -s) > 0.0 ? next_up(s) : s;
}

/// x^½, for x zero or above 2^-900.
double root_up(double x) {
  const double r = std::sqrt(x);
  return std::fma(r, r, -x) < 0.0 ? next_up(r) : r;
}

/// |A|_F without scaling: for entries whose squares neither overflow nor, all of them, underflow.
double frobenius_up(const ConstMatrixRef& a) {
  double sum = 0.0;
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.cols(); ++j) {
      sum = sum_up(sum, square_up(a(i, j)));
    }
  }
  return sum < 0x1p-900 && sum > 0.0 ? 0x1p-450 : root_up(sum);
}

/// high + low = m exactly; high is a multiple of 2^(exponent(m) - bits), so that a product of two
/// high parts with inner size k is free of rounding when k 2^(2 bits) ≤ 2^53.
struct Split {
  Matrix high;
  Matrix low;
};

Split split(const ConstMatrixRef& m, int bits) {
  const double shift = std::ldexp(0.75, exponent(m) - bits + 53);
  Split s{.high = (m.array() + shift).matrix(), .low{}};
  s.high.array() -= shift;
  s.low = m - s.high;
  return s;
}

/// XᵀY or X Y, and a bound on the Frobenius norm of its error.
struct Product {
  Matrix value;
  double error;
};

/// high·high is exact. The rest, X low(Y) + low(X) high(Y), is 2^-bits smaller and carries
/// γ_{2k+2} times its sum of moduli; adding the two parts rounds each entry once.
Product product(const ConstMatrixRef& x, Op op, const ConstMatrixRef& y) {
  const Index k = y.rows();
  const int bits = (52 - std::ilogb(static_cast<double>(k))) / 2;
  const Split sx = split(x, bits);
  const Split sy = split(y, bits);
  const Index rows = op == Op::plain ? x.rows() : x.cols();
  Matrix value(rows, y.cols());
  Matrix rest(rows, y.cols());
  gemm(1.0, sx.high, op, sy.high, Op::plain, 0.0, value);
  gemm(1.0, x, op, sy.low, Op::plain, 0.0, rest);
  gemm(1.0, sx.low, op, sy.high, Op::plain, 1.0, rest);
  value += rest;
  // γ_n ≤ n ε as long as n ε ≤ 1 (ε is two units of roundoff). Underflow loses at most 2^-1074 an
  // operation, covered by 2^-900.
  const double gamma = static_cast<double>(2 * k + 2) * epsilon;
  const double moduli = add_up(mul_up(frobenius_up(x), frobenius_up(sy.low)),
                               mul_up(frobenius_up(sx.low), frobenius_up(sy.high)));
  const double error = add_up(mul_up(gamma, moduli), mul_up(epsilon, frobenius_up(value)));
  return {.value = std::move(value), .error = add_up(error, 0x1p-900)};
}

/// |A|_2 ≤ |A V|_2 / σ_min(V), for max |a_ij| in [½, 1) and rows ≥ cols; +inf when V is of no use.
double basis_bound(const Matrix& a) {
  const Index n = a.cols();
  Matrix gram(n, n);
  gemm(1.0, a, Op::transposed, a, Op::plain, 0.0, gram);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(gram);
  if (eigen.info() != Eigen::Success) {
    return infinity;
  }
  const Matrix v = eigen.eigenvectors();
  if (!v.allFinite() || v.cwiseAbs().maxCoeff() > 2.0) {
    return infinity;
  }

  Product vv = product(v, Op::transposed, v);
  vv.value.diagonal().array() -= 1.0;  // rounds by at most half a unit of 1 an entry
  const double defect =
      add_up(add_up(frobenius_up(vv.value), vv.error), static_cast<double>(n) * epsilon);

  const Product b = product(a, Op::plain, v);
  Product bb = product(b.value, Op::transposed, b.value);
  const double diagonal = bb.value.diagonal().maxCoeff();
  bb.value.diagonal().setZero();
  const double square = add_up(add_up(diagonal, frobenius_up(bb.value)), bb.error);

  const double below = next_down(1.0 - defect);
  if (!(below > 0.0)) {
    return infinity;
  }
  return div_up(add_up(sqrt_up(square), b.error), next_down(std::sqrt(below)));
}

double row_sum_up(const ConstMatrixRef& a) {
  double largest = 0.0;
  for (Index i = 0; i < a.rows(); ++i) {
    double sum = 0.0;
    for (Index j = 0; j < a.cols(); ++j) {
      sum = sum_up(sum, std::abs(a(i, j)));
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

/// The bound on |a 2^-e|_2 that `bound` gives, taken back to a.
template <class Bound>
double scaled_bound(const ConstMatrixRef& a, Bound bound) {
  const int e = exponent(a);
  const Matrix m = scaled(a, e);
  const double exact = bound(m);
  return unscaled_up(scaled(m, -e) == a ? exact : add_up(exact, 0x1p-900), e);
}

// Of estimate_block_gain: a product for one climb is bound by memory, for 32 by arithmetic.
constexpr Index climbs_at_once = 32;
constexpr double same_way = 0.999;  // |cos| between two u
constexpr int most_steps = 1000;

struct Climb {
  double value = 0.0;
  int steps = 0;
};

/// Each row's blocks to length 1, those that are zero apart.
void normalise_blocks(MatrixRef v, Index width) {
  for (Index k = 0; k < v.rows(); ++k) {
    for (Index j = 0; j < v.cols(); j += width) {
      auto block = v.row(k).segment(j, width);
      const double length = block.norm();
      if (length > 0.0) {
        block /= length;
      }
    }
  }
}

/// The highest point of the climbs from each row of `starts`, as many side by side as make a good
/// product. Climbs that meet go on as one: most end on the same few points.
BlockGain climb(const Matrix& m, Index width, const Matrix& starts) {
  BlockGain best{.u = Vector::Zero(m.rows()), .v = Vector::Zero(m.cols())};
  Matrix us(climbs_at_once, m.rows());
  Matrix vs(climbs_at_once, m.cols());
  std::array<Climb, climbs_at_once> climbs{};
  Index climbing = 0;
  for (Index started = 0; climbing > 0 || started < starts.rows();) {
    for (; climbing < climbs_at_once && started < starts.rows(); ++climbing, ++started) {
      us.row(climbing) = starts.row(started);
      climbs[static_cast<std::size_t>(climbing)] = {};
    }
    auto u = us.topRows(climbing);
    auto v = vs.topRows(climbing);
    if (climbing == 1) {  // a matrix product would copy m
      v.row(0).noalias() = u.row(0) * m;
    } else {
      gemm(1.0, u, Op::plain, m, Op::plain, 0.0, v);
    }
    normalise_blocks(v, width);
    if (climbing == 1) {
      u.row(0).noalias() = v.row(0) * m.transpose();
    } else {
      gemm(1.0, v, Op::plain, m, Op::transposed, 0.0, u);
    }
    climbing = 0;
    for (Index k = 0; k < u.rows(); ++k) {
      const double value = u.row(k).norm();
      if (value > 0.0) {
        u.row(k) /= value;
      }
      if (value > best.value) {
        best = {value, u.row(k).transpose(), v.row(k).transpose()};
      }
      const Climb before = climbs[static_cast<std::size_t>(k)];
      const bool met =
          (us.topRows(climbing) * u.row(k).transpose()).lpNorm<Eigen::Infinity>() > same_way;
      if (value > before.value * (1.0 + 4.0 * epsilon) && before.steps < most_steps && !met) {
        us.row(climbing) = u.row(k);
        climbs[static_cast<std::size_t>(climbing)] = {value, before.steps + 1};
        ++climbing;
      }
    }
  }
  return best;
}

}  // namespace

std::string_view to_string(Norm norm) {
  switch (norm) {
    case Norm::one:
      return "1";
    case Norm::two:
      return "2";
    case Norm::inf:
      return "inf";
    case Norm::max_token:
      return "max-token";
  }
  return "unknown";
}

Norm parse_norm(std::string_view text) {
  for (const Norm norm : {Norm::one, Norm::two, Norm::inf, Norm::max_token}) {
    if (text == to_string(norm)) {
      return norm;
    }
  }
  require(false, "parse_norm: text must be 1, 2, inf or max-token, got '{}'", text);
  return {};
}

double norm_1(const ConstMatrixRef& a) {
  require_finite(a, "norm_1");
  return a.size() == 0 ? 0.0 : a.cwiseAbs().colwise().sum().maxCoeff();
}

double norm_inf(const ConstMatrixRef& a) {
  require_finite(a, "norm_inf");
  return a.size() == 0 ? 0.0 : a.cwiseAbs().rowwise().sum().maxCoeff();
}

double norm_frobenius(const ConstMatrixRef& a) {
  require_finite(a, "norm_frobenius");
  const int e = exponent(a);
  return std::ldexp(scaled(a, e).norm(), e);
}

double mixed_norm(const ConstMatrixRef& x, Norm p) {
  require(p != Norm::max_token, "mixed_norm: p must be 1, 2 or inf, got {}", to_string(p));
  require_finite(x, "mixed_norm");
  if (x.size() == 0) {
    return 0.0;
  }
  const int e = exponent(x);
  const Vector lengths = scaled(x, e).rowwise().norm();
  const double length = p == Norm::one   ? lengths.sum()
                        : p == Norm::two ? lengths.norm()
                                         : lengths.maxCoeff();
  return std::ldexp(length, e);
}

BlockGain estimate_block_gain(const ConstMatrixRef& a, Index width) {
  require(width >= 1 && a.cols() % width == 0,
          "estimate_block_gain: width must divide {} columns, got {}", a.cols(), width);
  require_finite(a, "estimate_block_gain");
  if (a.size() == 0 || a.isZero(0.0)) {
    return {.u = Vector::Zero(a.rows()), .v = Vector::Zero(a.cols())};
  }
  const SerialBlas serial;
  const int e = exponent(a);
  const Matrix m = scaled(a, e);
  Matrix starts = Matrix::Identity(m.rows() + 1, m.rows());
  Matrix gram(m.rows(), m.rows());
  gemm(1.0, m, Op::plain, m, Op::transposed, 0.0, gram);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(gram);
  if (eigen.info() == Eigen::Success) {
    starts.bottomRows(1) = eigen.eigenvectors().rightCols(1).transpose();
  } else {
    starts.conservativeResize(m.rows(), Eigen::NoChange);
  }
  BlockGain best = climb(m, width, starts);
  best.value = std::ldexp(best.value, e);
  return best;
}

double upper_bound_norm_1(const ConstMatrixRef& a) {
  require_finite(a, "upper_bound_norm_1");
  return row_sum_up(a.transpose());
}

double upper_bound_norm_inf(const ConstMatrixRef& a) {
  require_finite(a, "upper_bound_norm_inf");
  return row_sum_up(a);
}

double upper_bound_norm_frobenius(const ConstMatrixRef& a) {
  require_finite(a, "upper_bound_norm_frobenius");
  return scaled_bound(a, [](const Matrix& m) { return frobenius_up(m); });
}

double upper_bound_spectral_norm(const ConstMatrixRef& a) {
  require_finite(a, "upper_bound_spectral_norm");
  if (a.size() == 0 || a.isZero(0.0)) {
    return 0.0;
  }
  return scaled_bound(a, [](const Matrix& m) {
    const double frobenius = frobenius_up(m);
    if (std::min(m.rows(), m.cols()) == 1) {
      return frobenius;
    }
    const double one = row_sum_up(m.transpose());
    const double inf = row_sum_up(m);
    const double schur = one == inf ? one : sqrt_up(mul_up(one, inf));
    const SerialBlas serial;
    return std::min(
        {frobenius, schur, basis_bound(m.rows() >= m.cols() ? m : Matrix(m.transpose()))});
  });
}

double upper_bound_mixed_operator_norm(const ConstMatrixRef& j, Index rows_per_block,
                                       Index cols_per_block, Norm p) {
  constexpr std::string_view name = "upper_bound_mixed_operator_norm";
  require(rows_per_block >= 1 && j.rows() % rows_per_block == 0,
          "{}: rows_per_block must divide {} rows, got {}", name, j.rows(), rows_per_block);
  require(cols_per_block >= 1 && j.cols() % cols_per_block == 0,
          "{}: cols_per_block must divide {} columns, got {}", name, j.cols(), cols_per_block);
  require_finite(j, name);
  require(p != Norm::max_token, "{}: p must be 1, 2 or inf, got {}", name, to_string(p));
  if (p == Norm::two) {
    return upper_bound_spectral_norm(j);
  }
  Matrix blocks(j.rows() / rows_per_block, j.cols() / cols_per_block);
  for (Index i = 0; i < blocks.rows(); ++i) {
    for (Index k = 0; k < blocks.cols(); ++k) {
      blocks(i, k) = upper_bound_spectral_norm(
          j.block(i * rows_per_block, k * cols_per_block, rows_per_block, cols_per_block));
    }
  }
  return row_sum_up(p == Norm::inf ? blocks : Matrix(blocks.transpose()));
}

}  // namespace lipsa
