/// \file
/// Attention layers and tokens from files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

struct LayerFile {
  MultiHead layer{};
  std::optional<Matrix> x{};         ///< the tokens the file holds, n × D
  std::vector<std::string> notes{};  ///< what of the file was not used or was missing, and why
};

/// Reads a layer from a .npz with the members W_Q, W_K (D × H d), W_V (D × H d_v) and heads, and
/// perhaps W_O (H d_v × D_out), b_Q, b_K, b_V, b_O, scale, epsilon, score_bias and X; weights act
/// from the right on tokens in rows. What the kind has no use for is left out, and noted: W_K and
/// b_K as l2, whose keys are the queries, epsilon unless as cosine, score_bias unless as sigmoid.
/// So is that `default_epsilon` stands for an epsilon cosine does not find.
///
/// \throws std::runtime_error  what read_npz refuses; a member that is missing, unknown, not finite
///         or of a shape that does not fit the others: path, member, expected, found
/// \test   tests/model/layer_file_test.cpp
LayerFile read_layer_file(const std::filesystem::path& path, AttentionKind kind);

/// Reads tokens: a .npy of rank 2, or the member X of a .npz.
///
/// \throws std::runtime_error  likewise
Matrix read_tokens(const std::filesystem::path& path);

}  // namespace lipsa
