/// \file
/// Derivatives of a piece of a network against its output, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "lipsa/core/parameters.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa::test {

/// Central differences of fourth order. With h = 1e-4 and functions of order one they err by h⁴/30
/// of the fifth derivative, which may be some 1e4, and by rounding, eps/h: below 1e-10.
inline constexpr double difference_step = 1e-4;
inline constexpr double difference_tolerance = 1e-9;

/// d f(t)/dt at 0 for matrices f.
template <class F>
Matrix central_difference(const F& f, double h = difference_step) {
  const Matrix near = f(h) - f(-h);
  const Matrix far = f(2.0 * h) - f(-2.0 * h);
  return (8.0 * near - far) / (12.0 * h);
}

/// |⟨J v, u⟩ − ⟨v, Jᵀ u⟩| relative to |J v| |u|: rounding only, near 1e-15 times √(terms).
inline constexpr double adjoint_tolerance = 1e-12;

template <class At>
double adjoint_error(const At& at, Rng& rng) {
  const Matrix v = normal_matrix(rng, at.rows(), at.input_width());
  const Matrix u = normal_matrix(rng, at.rows(), at.output_width());
  const Matrix jv = at.apply(v);
  const double forwards = jv.cwiseProduct(u).sum();
  const double backwards = v.cwiseProduct(at.apply_adjoint(u)).sum();
  return std::abs(forwards - backwards) / (1e-300 + jv.norm() * u.norm());
}

/// |J v − d output(x + t v)/dt| relative to |J v| + |output|, for `make(x)` linearised at x.
template <class Make>
double input_derivative_error(const Make& make, const Matrix& x, Rng& rng) {
  const Matrix v = normal_matrix(rng, x.rows(), x.cols());
  const auto at = make(x);
  const Matrix jv = at.apply(v);
  const Matrix difference =
      central_difference([&](double t) -> Matrix { return make(x + t * v).output(); });
  return (jv - difference).norm() / (1e-300 + jv.norm() + at.output().norm());
}

/// For each array of the piece, in a random direction of it: the derivative of ⟨u, output⟩ that
/// `gradient` gives, against differences; relative to |u| (|derivative of the output| + |output|).
/// The worst, for `make(piece)` linearised.
template <class Piece, class Make>
double parameter_gradient_error(Piece piece, const Make& make, const Matrix& u,
                                const Piece& gradient, Rng& rng) {
  double worst = 0.0;
  const auto arrays = parameters(piece);
  const auto gradients = parameters(gradient);
  const double size = make(piece).output().norm();
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    auto values = arrays[k].values;
    const Vector start = values;
    const Vector direction = normal_matrix(rng, values.size(), 1);
    const Matrix difference = central_difference([&](double t) -> Matrix {
      values = start + t * direction;
      return make(piece).output();
    });
    values = start;
    const double expected = u.cwiseProduct(difference).sum();
    const double error = std::abs(gradients[k].values.dot(direction) - expected) /
                         (1e-300 + u.norm() * (difference.norm() + size));
    worst = std::isnan(error) ? error : std::max(worst, error);
  }
  return worst;
}

/// The same with the gradient that `backward` gives; infinite when that differs from apply_adjoint
/// in its result, or does not add to what the gradient holds.
template <class Piece, class Make>
double backward_error(const Piece& piece, const Make& make, Rng& rng) {
  const auto at = make(piece);
  const Matrix u = normal_matrix(rng, at.rows(), at.output_width());
  Piece gradient = zeros_like(piece);
  const Matrix dx = at.backward(u, gradient);
  Piece twice = gradient;
  const Matrix again = at.backward(u, twice);
  bool adds = dx == at.apply_adjoint(u) && dx == again;
  const auto once_list = parameters(gradient);
  const auto twice_list = parameters(twice);
  for (std::size_t k = 0; k < once_list.size(); ++k) {
    const double size = once_list[k].values.norm();
    adds = adds && (twice_list[k].values - 2.0 * once_list[k].values).norm() <= 1e-13 * size;
  }
  return adds ? parameter_gradient_error(piece, make, u, gradient, rng)
              : std::numeric_limits<double>::infinity();
}

}  // namespace lipsa::test
