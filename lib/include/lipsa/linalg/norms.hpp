/// \file
/// Norms of explicit matrices: as computed, and bounded from above with their rounding covered.
#pragma once

#include <string_view>

#include "lipsa/core/types.hpp"

namespace lipsa {

/// Which p of |·|_p, the operator norm induced by the p-norm of vectors.
enum class Norm { one, two, inf };

std::string_view to_string(Norm norm);  ///< "1", "2", "inf"

/// \throws std::invalid_argument  `text` is none of "1", "2", "inf"
Norm parse_norm(std::string_view text);

double norm_1(const ConstMatrixRef& a);          ///< max_j Σ_i |a_ij|
double norm_inf(const ConstMatrixRef& a);        ///< max_i Σ_j |a_ij|
double norm_frobenius(const ConstMatrixRef& a);  ///< (Σ a_ij²)^½, without overflow

double upper_bound_norm_1(const ConstMatrixRef& a);
double upper_bound_norm_inf(const ConstMatrixRef& a);
double upper_bound_norm_frobenius(const ConstMatrixRef& a);
double upper_bound_spectral_norm(const ConstMatrixRef& a);

}  // namespace lipsa
