#include "lipsa/model/layer_file.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "lipsa/attention/cosine.hpp"
#include "lipsa/core/npy.hpp"
#include "lipsa/core/npz.hpp"

namespace lipsa {
namespace {

constexpr std::array known{"W_Q", "W_K",   "W_V",   "W_O",     "b_Q",        "b_K", "b_V",
                           "b_O", "heads", "scale", "epsilon", "score_bias", "X"};

template <class... Args>
[[noreturn]] void refuse(const std::filesystem::path& path, fmt::format_string<Args...> message,
                         Args&&... args) {
  throw std::runtime_error(
      fmt::format("{}: {}", path.string(), fmt::format(message, std::forward<Args>(args)...)));
}

class Members {
 public:
  explicit Members(const std::filesystem::path& path) : path_(path), arrays_(read_npz(path)) {
    for (const auto& [name, array] : arrays_) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        refuse(path, "member \"{}\": expected one of {}", name, fmt::join(known, ", "));
      }
      require_finite(array);
    }
  }

  bool has(std::string_view name) const { return arrays_.contains(name); }
  const Array& required(std::string_view name) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) {
      refuse(path_, "expected a member {}, found none", name);
    }
    return found->second;
  }
  Matrix matrix(std::string_view name) const { return to_matrix(required(name)); }
  Matrix matrix_or_empty(std::string_view name) const {
    return has(name) ? matrix(name) : Matrix();
  }
  Vector vector_or_empty(std::string_view name) const {
    return has(name) ? to_vector(required(name)) : Vector();
  }

 private:
  const std::filesystem::path& path_;
  Npz arrays_;
};

}  // namespace

LayerFile read_layer_file(const std::filesystem::path& path, AttentionKind kind) {
  const Members members(path);
  const double heads = to_scalar(members.required("heads"));
  if (!(heads >= 1.0 && heads <= 1e6 && heads == std::floor(heads))) {
    refuse(path, "member \"heads\": expected a whole number from 1, found {}", heads);
  }
  LayerFile file;
  MultiHead& layer = file.layer;
  layer.kind = kind;
  layer.heads = static_cast<Index>(heads);
  layer.W_Q = members.matrix("W_Q");
  layer.W_V = members.matrix("W_V");
  layer.W_O = members.matrix_or_empty("W_O");
  layer.b_Q = members.vector_or_empty("b_Q");
  layer.b_V = members.vector_or_empty("b_V");
  layer.b_O = members.vector_or_empty("b_O");
  if (kind != AttentionKind::l2) {
    layer.W_K = members.matrix("W_K");
    layer.b_K = members.vector_or_empty("b_K");
  } else if (members.has("W_K") || members.has("b_K")) {
    file.notes.push_back(
        fmt::format("{}: W_K and b_K are not used: l2 takes its keys from W_Q", path.string()));
  }
  if (members.has("scale")) {
    layer.scale = to_scalar(members.required("scale"));
    if (!(layer.scale > 0.0)) {
      refuse(path, "member \"scale\": expected a positive number, found {}", layer.scale);
    }
  }
  if (members.has("epsilon") && kind == AttentionKind::cosine) {
    layer.epsilon = to_scalar(members.required("epsilon"));
    if (!(layer.epsilon > 0.0)) {
      refuse(path, "member \"epsilon\": expected a positive number, found {}", layer.epsilon);
    }
  } else if (members.has("epsilon")) {
    file.notes.push_back(fmt::format("{}: epsilon is not used: {} normalises no rows",
                                     path.string(), to_string(kind)));
  } else if (kind == AttentionKind::cosine) {
    layer.epsilon = default_epsilon;
    file.notes.push_back(
        fmt::format("{}: epsilon is missing: cosine takes {}", path.string(), default_epsilon));
  }
  if (members.has("score_bias") && kind == AttentionKind::sigmoid) {
    layer.score_bias = to_scalar(members.required("score_bias"));
  } else if (members.has("score_bias")) {
    file.notes.push_back(fmt::format("{}: score_bias is not used: only sigmoid has one, not {}",
                                     path.string(), to_string(kind)));
  }
  try {
    require_valid(layer);
  } catch (const std::invalid_argument& e) {  // here the file is at fault, not the caller
    refuse(path, "{}", e.what());
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
