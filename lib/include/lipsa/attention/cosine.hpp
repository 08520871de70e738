/// \file
/// Scaled cosine similarity attention: rows normalised, z ↦ z/√(‖z‖² + ε), and the derivatives of
/// that.
#pragma once

#include "lipsa/core/types.hpp"

namespace lipsa {

/// The ε of cosine attention where nobody names one.
inline constexpr double default_epsilon = 1e-6;

/// What normalising the rows z of a matrix Z (n × d),
///
///     ẑ = z/r,  r = √(‖z‖² + ε),
///
/// leaves for its derivatives. Scaled cosine similarity attention is dot-product attention
/// (DotProductScores) of queries, keys and values that are normalised so, head by head, after their
/// biases. The derivative in z is symmetric,
///
///     N'(z) = (I − ẑẑᵀ)/r,
///
/// so that `derivative` maps tangents forwards and gradients backwards. It is I/√ε at z = 0. Along
/// z it is ε/r³, a difference that keeps digits only beside its 1/r across z; for d = 1, where
/// nothing lies across, it is computed as ε/r³.
///
/// \source Qi et al., LipsFormer, ICLR 2023; the factor ν there is a factor of W_O here.
/// \test   tests/attention/cosine_test.cpp
struct RowNormalisation {
  Vector inverse_length{};  ///< 1/r, a row each
  Vector identity{};        ///< a in N' = a I − b ẑẑᵀ: 1/r, or ε/r³ for d = 1
  Vector rank_one{};        ///< b there: 1/r, or 0 for d = 1

  /// Z becomes Ẑ.
  ///
  /// \param epsilon  ε > 0
  /// \param z        finite; where a length overflows, 1/r is zero
  static RowNormalisation normalise(double epsilon, MatrixRef z);

  /// dZ becomes dẐ, dẑ = N'(z) dz.
  ///
  /// \param unit  Ẑ, as `normalise` left it
  void derivative(const ConstMatrixRef& unit, MatrixRef dz) const;

  /// gZ += ∂/∂z ⟨g, N'(z) dz⟩ with g and dz held fixed,
  ///
  ///     −[(ẑ·dz) N'(z) g + (ẑ·g) N'(z) dz + (g · N'(z) dz) ẑ]/r.
  void second_derivative(const ConstMatrixRef& unit, const ConstMatrixRef& dz,
                         const ConstMatrixRef& g, MatrixRef gz) const;
};

}  // namespace lipsa
