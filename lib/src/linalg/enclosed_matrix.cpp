#include "linalg/enclosed_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.hpp"
#include "core/rounding.hpp"
#include "linalg/gemm.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// What underflow may cost, in the Frobenius norm: far more than 2^-1074 an operation.
constexpr double underflow = 0x1p-900;

/// (middle ± error) 2^exponent, brought to the range of middle.
EnclosedMatrix normalised(const Matrix& middle, double error, int exponent) {
  const double largest = middle.size() == 0 ? 0.0 : middle.cwiseAbs().maxCoeff();
  int shift = 0;
  std::frexp(largest > 0.0 ? largest : error, &shift);
  const auto scale = [&](double x) { return std::ldexp(x, -shift); };
  Matrix scaled = middle.unaryExpr(scale);
  const bool exact = scaled.unaryExpr([&](double x) { return std::ldexp(x, shift); }) == middle;
  double scaled_error = error == 0.0 ? 0.0 : next_up(scale(error));
  if (!exact) {
    scaled_error = add_up(scaled_error, underflow);
  }
  return {.middle = std::move(scaled), .error = scaled_error, .exponent = exponent + shift};
}

double frobenius(const EnclosedMatrix& a) {
  return upper_bound_norm_frobenius(a.middle);
}

/// x 2^(from − to), upwards; to ≥ from.
double lowered(double x, int from, int to) {
  const int shift = std::max(from - to, -4000);
  const double y = std::ldexp(x, shift);
  return x == 0.0 || std::ldexp(y, -shift) == x ? y : next_up(y);
}

}  // namespace

EnclosedMatrix enclosed(const ConstMatrixRef& a, double error) {
  require(a.allFinite(), "enclosed: matrix must be finite, got an infinity or a NaN");
  return normalised(a, error, 0);
}

EnclosedMatrix transposed(const EnclosedMatrix& a) {
  return {.middle = a.middle.transpose(), .error = a.error, .exponent = a.exponent};
}

EnclosedMatrix product(const EnclosedMatrix& a, const EnclosedMatrix& b) {
  const SerialBlas serial;
  Matrix middle(a.middle.rows(), b.middle.cols());
  gemm(1.0, a.middle, Op::plain, b.middle, Op::plain, 0.0, middle);
  const double norm_a = frobenius(a);
  const double norm_b = frobenius(b);
  // Rounding: γ_k Σ |a||b|, and γ_k ≤ k ε as ε is two units of roundoff.
  const auto k = static_cast<double>(a.middle.cols());
  double error = mul_up(mul_up(k * epsilon, norm_a), norm_b);
  error = add_up(error, mul_up(norm_a, b.error));
  error = add_up(error, mul_up(a.error, add_up(norm_b, b.error)));
  if (norm_a > 0.0 && norm_b > 0.0) {
    error = add_up(error, underflow);
  }
  return normalised(middle, error, a.exponent + b.exponent);
}

EnclosedMatrix beside(const std::vector<EnclosedMatrix>& parts) {
  int exponent = std::numeric_limits<int>::min();
  Index columns = 0;
  for (const EnclosedMatrix& part : parts) {
    exponent = std::max(exponent, part.exponent);
    columns += part.middle.cols();
  }
  Matrix all(parts.front().middle.rows(), columns);
  double error = 0.0;
  Index at = 0;
  for (const EnclosedMatrix& part : parts) {
    const int shift = std::max(part.exponent - exponent, -4000);
    const Matrix moved = part.middle.unaryExpr([&](double x) { return std::ldexp(x, shift); });
    if (shift < 0 &&
        moved.unaryExpr([&](double x) { return std::ldexp(x, -shift); }) != part.middle) {
      error = add_up(error, underflow);
    }
    error = add_up(error, lowered(part.error, part.exponent, exponent));
    all.middleCols(at, moved.cols()) = moved;
    at += moved.cols();
  }
  return normalised(all, error, exponent);
}

EnclosedMatrix kronecker_sum(const std::vector<EnclosedMatrix>& p,
                             const std::vector<EnclosedMatrix>& w) {
  int exponent = std::numeric_limits<int>::min();
  for (std::size_t h = 0; h < p.size(); ++h) {
    exponent = std::max(exponent, p[h].exponent + w[h].exponent);
  }
  const Index n = p.front().middle.rows();
  const Index m = p.front().middle.cols();
  const Index rows = w.front().middle.cols();
  const Index cols = w.front().middle.rows();
  Matrix sum = Matrix::Zero(n * rows, m * cols);
  double error = 0.0;
  const double operations = static_cast<double>(p.size()) + 1.0;
  for (std::size_t h = 0; h < p.size(); ++h) {
    const int shift = std::max(p[h].exponent + w[h].exponent - exponent, -4000);
    const Matrix map =
        w[h].middle.transpose().unaryExpr([&](double x) { return std::ldexp(x, shift); });
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) {
        if (p[h].middle(i, j) != 0.0) {
          sum.block(i * rows, j * cols, rows, cols) += p[h].middle(i, j) * map;
        }
      }
    }
    const double norm_p = frobenius(p[h]);
    const double norm_w = frobenius(w[h]);
    double own = mul_up(mul_up(operations * epsilon, norm_p), norm_w);
    own = add_up(own, mul_up(norm_p, w[h].error));
    own = add_up(own, mul_up(p[h].error, add_up(norm_w, w[h].error)));
    error = add_up(error, lowered(own, p[h].exponent + w[h].exponent, exponent));
    error = add_up(error, underflow);
  }
  return normalised(sum, error, exponent);
}

ScaledReal upper_bound_spectral_norm(const EnclosedMatrix& a) {
  return {.value = a.error == 0.0 ? upper_bound_spectral_norm(a.middle)
                                  : add_up(upper_bound_spectral_norm(a.middle), a.error),
          .exponent = a.exponent};
}

ScaledReal upper_bound_norm_frobenius(const EnclosedMatrix& a) {
  return {.value = a.error == 0.0 ? frobenius(a) : add_up(frobenius(a), a.error),
          .exponent = a.exponent};
}

}  // namespace lipsa
