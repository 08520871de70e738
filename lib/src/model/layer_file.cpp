#include "lipsa/model/layer_file.hpp"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "lipsa/attention/cosine.hpp"
#include "lipsa/core/npy.hpp"
#include "lipsa/core/npz.hpp"
#include "model/layer_members.hpp"

namespace lipsa {

LayerFile read_layer_file(const std::filesystem::path& path, AttentionKind kind) {
  const Members members(path, {"X"});
  LayerFile file;
  file.layer = members.layer(kind);
  const MultiHead& layer = file.layer;
  if (kind == AttentionKind::l2 && (members.has("W_K") || members.has("b_K"))) {
    file.notes.push_back(
        fmt::format("{}: W_K and b_K are not used: l2 takes its keys from W_Q", path.string()));
  }
  if (kind != AttentionKind::cosine && members.has("epsilon")) {
    file.notes.push_back(fmt::format("{}: epsilon is not used: {} normalises no rows",
                                     path.string(), to_string(kind)));
  } else if (kind == AttentionKind::cosine && !members.has("epsilon")) {
    file.notes.push_back(
        fmt::format("{}: epsilon is missing: cosine takes {}", path.string(), default_epsilon));
  }
  if (kind != AttentionKind::sigmoid && members.has("score_bias")) {
    file.notes.push_back(fmt::format("{}: score_bias is not used: only sigmoid has one, not {}",
                                     path.string(), to_string(kind)));
  }
  if (members.has("X")) {
    file.x = members.matrix("X");
    if (file.x->rows() < 1 || file.x->cols() != layer.width()) {
      refuse(
          path,
          "member \"X\": expected at least one row and {} columns as W_Q has rows, found {} x {}",
          layer.width(), file.x->rows(), file.x->cols());
    }
  }
  return file;
}

Matrix read_tokens(const std::filesystem::path& path) {
  Array array;
  if (path.extension() == ".npz") {
    Npz arrays = read_npz(path);
    const auto x = arrays.find("X");
    if (x == arrays.end()) {
      refuse(path, "expected a member X, found none");
    }
    array = std::move(x->second);
  } else {
    array = read_npy(path);
  }
  require_finite(array);
  Matrix x = to_matrix(array);
  if (x.rows() < 1 || x.cols() < 1) {
    refuse(path, "expected at least one token of one feature, found {} x {}", x.rows(), x.cols());
  }
  return x;
}

}  // namespace lipsa
