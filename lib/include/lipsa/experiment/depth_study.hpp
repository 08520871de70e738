/// \file
/// How well language models learn as they get deeper, by kind of model: table 1 of Kim et al.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lipsa/experiment/language_model_run.hpp"
#include "lipsa/experiment/table.hpp"

namespace lipsa {

struct DepthStudy {
  TrainingOptions training{};              ///< of each cell, apart from:
  std::vector<LanguageModelKind> model{};  ///< not empty, as the next two
  std::vector<Index> depth{};
  std::vector<std::uint64_t> seed{};
  Index log_every = LanguageModelRun{}.log_every;
  Index evaluate_every = LanguageModelRun{}.evaluate_every;
  Index checkpoint_every = LanguageModelRun{}.checkpoint_every;
  std::filesystem::path folder{};  ///< of checkpoints and logs, MODEL-DEPTH-SEED; is there
};

/// What an attention layer takes and gives, over some windows of the test text.
struct AttentionValues {
  static constexpr std::size_t bins = 60;

  double input_deviation = std::numeric_limits<double>::quiet_NaN();   ///< standard
  double output_deviation = std::numeric_limits<double>::quiet_NaN();  ///< with its gain
  double largest = 0.0;                                                ///< m, the largest |output|
  std::vector<std::int64_t> counts{};  ///< outputs in bins of equal width from −m to m
};

struct [[nodiscard]] DepthStudyCell {
  LanguageModelKind model = LanguageModelKind::dot;
  Index depth = 0;
  std::uint64_t seed = 0;
  Index step = 0;   ///< steps taken
  TextLoss test{};  ///< NaN when it diverged
  /// "done"; "diverged": a loss, gradient or weight was not finite; "stuck": the loss is not below
  /// that of a model that only counts characters.
  std::string status{};
  std::vector<AttentionValues> values{};  ///< of each attention layer; none when it diverged
};

struct [[nodiscard]] DepthStudyResult {
  std::vector<DepthStudyCell> cells{};  ///< finished, by model, depth, seed in their order
  double unigram = std::numeric_limits<double>::quiet_NaN();  ///< test loss of counts alone
  double bigram = std::numeric_limits<double>::quiet_NaN();
};

/// Trains every cell of the grid. Cells whose files are in the folder go on from there; a cell that
/// is finished is only evaluated again, and one that diverged diverges again. Same bits whatever
/// the number of threads, and however often it was stopped.
///
/// \param progress  called after each cell with those finished so far, never by two threads at once
/// \throws std::invalid_argument  an option of a cell is out of range; a list is empty or has
///         something twice; less than
///         two characters for test
/// \throws std::runtime_error     a checkpoint in the folder has other options or another text
/// \throws WriteError
/// \test   tests/experiment/depth_study_test.cpp
DepthStudyResult depth_study(const Corpus& corpus, const DepthStudy& study,
                             const std::function<void(const DepthStudyResult&)>& progress = {});

/// A study as it is kept: what `lipsa lm depth-study` writes into a folder.
struct DepthStudyFiles {
  std::string folder{};   ///< where they are from, for messages
  std::string cells{};    ///< depth-study.csv
  std::string outputs{};  ///< attention-outputs.csv; may leave out layers
  std::string meta{};     ///< depth-study.meta.json
};

/// \throws std::runtime_error  a file is missing or cannot be read
DepthStudyFiles read_depth_study_files(const std::filesystem::path& folder);

/// Of the last run that worked on a study.
struct DepthStudyOrigin {
  std::string version{};  ///< of lipsa
  std::string command_line{};
};

/// \throws std::runtime_error  malformed: `origin`, expected
DepthStudyOrigin depth_study_origin(std::string_view meta, const std::string& origin);

/// What depth_study_table and attention_histogram were written from. Of the deviations only those
/// of first layers are in the files; the others are NaN.
///
/// \throws std::runtime_error  a file is malformed, or the study is of another version of lipsa:
///         path, expected, found
/// \test   tests/experiment/depth_study_test.cpp
DepthStudyResult parse_depth_study(const DepthStudyFiles& files);

/// A row a cell: model, depth, seed, step, test_loss, test_bits, unigram_test_loss,
/// bigram_test_loss, input_deviation and output_deviation of the first layer, status.
Table depth_study_table(const DepthStudyResult& result);

/// A row a bin: model, depth, seed, layer, from, to, count.
Table attention_histogram(const DepthStudyResult& result);

}  // namespace lipsa
