/// \file
/// Inversions that are over at once.
#pragma once

#include <vector>

#include "lipsa/experiment/inversion.hpp"

namespace lipsa::test {

inline InversionSettings small_inversion() {
  InversionSettings s;
  s.contractions = {0.5, 0.9};
  s.ranges = {1.0, 10.0};
  s.tokens = 6;
  s.dim = 4;
  s.heads = 2;
  s.batch = 3;
  return s;
}

inline std::vector<InversionRow> run_all(const Inversion& inversion) {
  std::vector<InversionRow> rows;
  for (Index k = 0; k < inversion.size(); ++k) {
    rows.push_back(inversion.run(k));
  }
  return rows;
}

}  // namespace lipsa::test
