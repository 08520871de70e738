/// \file
/// How a residual map of attention changes volumes.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "lipsa/core/types.hpp"
#include "lipsa/invert/contractive.hpp"

namespace lipsa {

enum class LogDetMethod {
  automatic,  ///< lu up to `dense_limit`, else series
  lu,         ///< the dense matrix, factored
  series,     ///< the power series of the logarithm, traces by random probes
};

std::string_view to_string(LogDetMethod method);  ///< "automatic", "lu", "series"

struct LogDetOptions {
  LogDetMethod method = LogDetMethod::automatic;
  Index dense_limit = 2048;  ///< the largest n D that automatic factors; 8 (n D)² bytes

  /// Of the series: random vectors, ≥ 2. The standard error falls with their root.
  Index probes = 64;
  /// Of the series: K ≥ 1 terms; 0: as many as bring the truncation bound to `truncation`, at most
  /// `most_terms`.
  Index terms = 0;
  double truncation = 1e-6;  ///< > 0
  Index most_terms = 10000;  ///< ≥ 1

  std::uint64_t seed = 0;  ///< of the probes. Same seed, same build: same bits.
};

enum class LogDetStatus {
  converged,        ///< the matrix was factored; or the series summed to its truncation bound
  truncated,        ///< most_terms, or the terms asked for, leave more than `truncation`
  singular,         ///< the factored matrix is singular: −inf
  not_contractive,  ///< |γ J(X)|_2 is not known to be below 1: of the series there is no value
  non_finite,       ///< the matrix or its determinant overflows: there is no value
};

/// "converged", "truncated", "singular", "not contractive", "non-finite"
std::string_view to_string(LogDetStatus status);

struct [[nodiscard]] LogDet {
  double value = std::numeric_limits<double>::quiet_NaN();  ///< log|det|, estimate
  int sign = 0;  ///< of the determinant; of the series 1, as its eigenvalues are within 1 of 1

  /// Of the mean over the probes, estimated from their spread; 0 by lu.
  double standard_error = std::numeric_limits<double>::quiet_NaN();

  /// What the omitted terms of the series can come to; 0 by lu. An upper bound where g has a proved
  /// contraction; else as good as the estimate of |γ J(X)|_2 it is made of.
  double truncation_bound = std::numeric_limits<double>::quiet_NaN();

  Index terms = 0;                                ///< K
  Index products = 0;                             ///< with J(X)
  LogDetMethod method = LogDetMethod::automatic;  ///< that was used
  LogDetStatus status = LogDetStatus::not_contractive;
};

/// log|det(I + γ J(X))|, the logarithm of the volume that g = X + γ F(X) gives a unit of volume at
/// X. That of the inverse of g at y = g(X) is minus it.
///
/// By LU with partial pivoting, the sum of the logarithms of the pivots: exact up to rounding, for
/// any g. Or, for A = γ J(X) with eigenvalues in the disc of radius a < 1,
///
///     log det(I + A) = Σ_{k=1}^{K} (−1)^{k+1} tr(A^k)/k ± a^{K+1}/((K + 1)(1 − a)) n D,
///
/// as |tr(A^k)| ≤ n D a^k, with tr(A^k) = E vᵀA^k v over random signs v (Hutchinson): K products a
/// probe. a is the contraction of g where one is proved, else |A|_2 by spectral_norm, to 1e-3.
///
/// \param x  n × D, finite
/// \throws std::invalid_argument  as Jacobian; another number of tokens than g.tokens(); an option
///         is out of range
/// \source Behrmann, Grathwohl, Chen, Duvenaud & Jacobsen, ICML 2019, section 3.2; Hutchinson,
///         Commun. Stat. Simul. Comput. 19 (1990) 433–450. The truncation bound is derived above.
/// \test   tests/invert/log_det_test.cpp
LogDet log_det(const ResidualAttention& g, const ConstMatrixRef& x,
               const LogDetOptions& options = {});

}  // namespace lipsa
