/// \file
/// The journal of a running sweep.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lipsa/experiment/sweep.hpp"

namespace lipsa {

/// Finished rows on disk while a sweep runs: a line each, flushed to the disk as the row ends, so
/// that a killed process loses the rows in flight and nothing else.
///
/// \test tests/experiment/sweep_journal_test.cpp
class SweepJournal {
 public:
  /// Opens or begins the journal at `path`. With `resume`, rows already there are taken over and
  /// a torn last line is dropped.
  ///
  /// \throws std::invalid_argument  a journal with rows is there and `resume` is false, or it
  /// belongs to
  ///         other settings, weights, tokens or another version
  /// \throws std::runtime_error     a line is malformed
  /// \throws WriteError
  SweepJournal(std::filesystem::path path, const Sweep& sweep, bool resume);
  ~SweepJournal();
  SweepJournal(const SweepJournal&) = delete;
  SweepJournal& operator=(const SweepJournal&) = delete;
  SweepJournal(SweepJournal&&) = delete;
  SweepJournal& operator=(SweepJournal&&) = delete;

  /// The row of configuration k, if it is there.
  const std::optional<SweepRow>& row(Index k) const {
    return rows_.at(static_cast<std::size_t>(k));
  }

  /// \throws WriteError
  void append(Index k, const SweepRow& row);

  /// Deletes the file, once the results are written elsewhere.
  void remove();

 private:
  std::filesystem::path path_;
  std::vector<std::optional<SweepRow>> rows_{};
  int file_ = -1;

  void write(const std::string& line) const;
};

}  // namespace lipsa
