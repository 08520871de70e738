/// \file
/// The state of a long falsification, so that it can go on after an interruption.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lipsa/experiment/table.hpp"
#include "lipsa/search/falsify.hpp"

namespace lipsa {

/// How far a run of falsify() has come: the trials [0, next) are in the tallies.
struct FalsifyProgress {
  std::int64_t next = 0;
  std::vector<FalsifyTally> tallies{};
};

/// Writes the state whole or not at all. The trials wanted are not part of it: a run may be made
/// longer.
///
/// \throws WriteError
void write_progress(const std::filesystem::path& path, const FalsifyOptions& options,
                    const FalsifyProgress& progress);

/// \throws std::runtime_error  no such file, malformed, of another version, seed or other bounds
/// \test   tests/experiment/falsify_journal_test.cpp
FalsifyProgress read_progress(const std::filesystem::path& path, const FalsifyOptions& options);

/// One row an entry: bound, kind, norm, domain, trials, worst_ratio_estimate, worst_trial, status:
/// "not violated", "violated", "never compared".
Table falsify_table(const std::vector<FalsifyTally>& tallies);

}  // namespace lipsa
