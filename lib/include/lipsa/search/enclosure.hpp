/// \file
/// Numbers between two doubles, proved in ball arithmetic.
#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

/// lower ≤ the number ≤ upper, certified; −∞ and +∞ when nothing is known.
struct Enclosure {
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
};

/// |J(X)|_inf or |J(X)|_1 of a layer whose weights, and tokens, are these doubles exactly. J is
/// made of its closed form block by block, in balls, and shares no code with Jacobian. Cost
/// 2 H n² D D_out products of balls, 3 H n² D D_out for cosine attention, in parallel; memory
/// H n (n + 2 D_out + 4 D) balls, H n² more for sigmoid and H n (n + D) more for cosine attention.
///
/// \param norm  one or inf
/// \param bits  of precision, from 32 to 10⁶
/// \throws std::invalid_argument  as Jacobian; another norm; bits out of range
/// \test   tests/search/enclosure_test.cpp
Enclosure enclose_local_norm(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask,
                             Norm norm, Index bits = 128);

/// True only when |W|_2 < s, which is proved: s² I − WᵀW, or W Wᵀ when that is smaller, has a
/// Cholesky decomposition in balls, hence is positive definite. Precision is raised up to 1024 bits
/// as long as neither that nor its contrary is certain. Cost min(r, c)² (r + c) products of balls.
///
/// \param w  finite
/// \param s  ≥ 0, finite
/// \throws std::invalid_argument
/// \test   tests/search/enclosure_test.cpp
bool certify_spectral_norm(const ConstMatrixRef& w, double s);

/// A double at or above |W|_2, proved: the smallest of
///
///     |W|_F,   (|W|_1 |W|_inf)^½,   σ (1 + 2⁻ᵏ), k = 52, 50, …, 40,   upper_bound_spectral_norm(W)
///
/// with σ an estimate, the first two evaluated in balls, the others counted when
/// certify_spectral_norm proves them. Above |W|_2 by less than one part in 10¹² but for overflow
/// and underflow.
///
/// \throws std::invalid_argument  W is not finite
/// \test   tests/search/enclosure_test.cpp
double certified_upper_bound_spectral_norm(const ConstMatrixRef& w);

/// W(y), the w ≥ 0 with w eʷ = y, between doubles that are at most two apart.
///
/// \param y  ≥ 0, finite
/// \throws std::invalid_argument
/// \test   tests/search/enclosure_test.cpp
Enclosure enclose_lambert_w(double y);

/// φ⁻¹(y) = W(y/e) likewise; at y = n − 1 the c(n) of L2 attention.
Enclosure enclose_phi_inverse(double y);

/// The value of a theorem at a layer with everything in balls: norms of the weights, 1/√d, the
/// Lambert function and the formula. A double at or above it; an infinity when it is beyond double.
/// Of an entry that is refuted it is the value of the formula.
///
/// Norms of products of weights are those of D × D or D × D_out matrices, proved at some D³
/// products of balls for each attempt of certified_upper_bound_spectral_norm.
///
/// \param name  kim2021_inf, kim2021_inf_printed, kim2021_2, kim2021_2_printed, sharp_l2_inf,
///              l2_2_sum, castin2024_ball, castin2024_mean_field, dot_ball_2_sum,
///              dot_ball_max_token_sum or cosine_max_token
/// \return      none for every other entry of the catalogue, and when a hypothesis fails
/// \throws std::invalid_argument  as CatalogEntry::evaluate; no entry has that name
/// \test   tests/search/enclosure_test.cpp
std::optional<double> certified_bound(const BoundSetting& setting, std::string_view name);

}  // namespace lipsa
