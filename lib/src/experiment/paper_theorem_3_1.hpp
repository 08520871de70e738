/// \file
/// Theorem 3.1 of Kim, Papamakarios & Mnih: what is concluded from growth and counterexamples.
/// Private to lib/.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "lipsa/core/types.hpp"
#include "lipsa/experiment/report.hpp"
#include "lipsa/linalg/norms.hpp"
#include "lipsa/search/certificate.hpp"

namespace lipsa {

/// How |J| of one layer grows with the radius R of the ball of tokens, as GrowthFit.
struct DotGrowth {
  std::string weights{};
  Norm norm = Norm::inf;
  Index n = 0;
  Index D = 0;
  Index H = 0;
  double radius_from = 0.0;
  double radius_to = 0.0;
  /// Of the best lower bounds of the ascent; it leans below 2 where the ascent does better in
  /// small balls than in large ones.
  double slope = std::numeric_limits<double>::quiet_NaN();
  /// Of the lower bounds at analytic tokens, which are the same up to scale in every ball.
  double slope_witness = std::numeric_limits<double>::quiet_NaN();
};

/// A pair against the constant K, and what verify() says of it.
struct DotPair {
  std::string weights{};
  Norm norm = Norm::inf;
  Index n = 0;
  Index D = 0;
  Index H = 0;
  double exceeds = 0.0;  ///< K
  bool found = false;
  std::string theorem{};  ///< of the catalogue, which says that no constant exists; or empty
  Verdict verdict{};      ///< when found
};

/// Whether the slope at the analytic tokens lies in [1.9, 2.1].
bool grows_quadratically(const DotGrowth& growth);

/// Whether verify() proved the pair, with a ratio above K.
bool is_proved(const DotPair& pair);

std::string theorem_3_1_verdict(const std::vector<DotGrowth>& growth,
                                const std::vector<DotPair>& pairs);

std::vector<Agreement> theorem_3_1_agreements(const std::vector<PaperFact>& facts,
                                              const std::vector<DotPair>& pairs);

}  // namespace lipsa
