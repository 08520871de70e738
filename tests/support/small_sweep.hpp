/// \file
/// A sweep that is over at once.
#pragma once

#include <vector>

#include "lipsa/experiment/sweep.hpp"

namespace lipsa::test {

inline SweepSettings small() {
  SweepSettings s;
  s.tokens = {3, 5};
  s.restarts = 2;
  return s;
}

inline std::vector<SweepRow> run_all(const Sweep& sweep) {
  std::vector<SweepRow> rows;
  for (Index k = 0; k < sweep.size(); ++k) {
    rows.push_back(sweep.run(k));
  }
  return rows;
}

}  // namespace lipsa::test
