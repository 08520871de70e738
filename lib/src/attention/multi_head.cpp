#include "lipsa/attention/multi_head.hpp"

#include <cmath>

#include "core/check.hpp"
#include "linalg/gemm.hpp"
#include "lipsa/attention/jacobian.hpp"

namespace lipsa {
namespace {

void require_finite(const ConstMatrixRef& w, std::string_view name) {
  for (Index i = 0; i < w.rows(); ++i) {
    for (Index j = 0; j < w.cols(); ++j) {
      require(std::isfinite(w(i, j)), "MultiHead: {} must be finite, got {} at ({}, {})", name,
              w(i, j), i, j);
    }
  }
}

void require_bias(const Vector& b, Index length, std::string_view name) {
  require(b.size() == 0 || b.size() == length,
          "MultiHead: {} must be empty or of length {}, got {}", name, length, b.size());
  require_finite(b.transpose(), name);
}

}  // namespace

std::string_view to_string(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::dot:
      return "dot";
    case AttentionKind::l2:
      return "l2";
    case AttentionKind::l2_untied:
      return "l2-untied";
    case AttentionKind::cosine:
      return "cosine";
    case AttentionKind::sigmoid:
      return "sigmoid";
  }
  return "unknown";
}

AttentionKind parse_attention_kind(std::string_view text) {
  for (const auto kind : {AttentionKind::dot, AttentionKind::l2, AttentionKind::l2_untied,
                          AttentionKind::cosine, AttentionKind::sigmoid}) {
    if (text == to_string(kind)) {
      return kind;
    }
  }
  throw std::invalid_argument(
      fmt::format("attention must be dot, l2, l2-untied, cosine or sigmoid, got '{}'", text));
}

double MultiHead::score_scale() const {
  return scale > 0.0 ? scale : 1.0 / std::sqrt(static_cast<double>(head_width()));
}

void require_valid(const MultiHead& layer) {
  const Index width = layer.W_Q.rows();
  const Index heads = layer.heads;
  require(heads >= 1, "MultiHead: heads must be at least 1, got {}", heads);
  require(width >= 1 && layer.W_Q.cols() >= 1, "MultiHead: W_Q must not be empty, got {} x {}",
          width, layer.W_Q.cols());
  require(layer.W_Q.cols() % heads == 0,
          "MultiHead: heads must divide the {} columns of W_Q, got {}", layer.W_Q.cols(), heads);
  if (layer.kind == AttentionKind::l2) {
    require(
        layer.W_K.size() == 0 && layer.b_K.size() == 0,
        "MultiHead: W_K and b_K must be empty for l2, whose keys are its queries (l2-untied has "
        "keys of its own), got {} x {}",
        layer.W_K.rows(), layer.W_K.cols());
  } else {
    require(layer.W_K.rows() == width && layer.W_K.cols() == layer.W_Q.cols(),
            "MultiHead: W_K must be {} x {} as W_Q, got {} x {}", width, layer.W_Q.cols(),
            layer.W_K.rows(), layer.W_K.cols());
  }
  require(layer.W_V.rows() == width && layer.W_V.cols() >= 1,
          "MultiHead: W_V must have {} rows as W_Q, got {} x {}", width, layer.W_V.rows(),
          layer.W_V.cols());
  require(layer.W_V.cols() % heads == 0,
          "MultiHead: heads must divide the {} columns of W_V, got {}", layer.W_V.cols(), heads);
  require(layer.W_O.size() == 0 || layer.W_O.rows() == layer.W_V.cols(),
          "MultiHead: W_O must have {} rows (columns of W_V), got {}", layer.W_V.cols(),
          layer.W_O.rows());
  require(std::isfinite(layer.scale) && layer.scale >= 0.0,
          "MultiHead: scale must be positive, or 0 for 1/sqrt(d), got {}", layer.scale);
  if (layer.kind == AttentionKind::cosine) {
    require(std::isfinite(layer.epsilon) && layer.epsilon > 0.0,
            "MultiHead: epsilon must be positive for cosine, got {}", layer.epsilon);
  } else {
    require(layer.epsilon == 0.0, "MultiHead: epsilon must be 0 for {}, got {}",
            to_string(layer.kind), layer.epsilon);
  }
  require(std::isfinite(layer.score_bias) &&
              (layer.score_bias == 0.0 || layer.kind == AttentionKind::sigmoid),
          "MultiHead: score_bias must be {} for {}, got {}",
          layer.kind == AttentionKind::sigmoid ? "finite" : "0", to_string(layer.kind),
          layer.score_bias);
  require_finite(layer.W_Q, "W_Q");
  require_finite(layer.W_K, "W_K");
  require_finite(layer.W_V, "W_V");
  require_finite(layer.W_O, "W_O");
  require_bias(layer.b_Q, layer.W_Q.cols(), "b_Q");
  require_bias(layer.b_K, layer.W_Q.cols(), "b_K");
  require_bias(layer.b_V, layer.W_V.cols(), "b_V");
  require_bias(layer.b_O, layer.output_width(), "b_O");
}

Matrix value_map(const MultiHead& layer, Index head) {
  require(head >= 0 && head < layer.heads, "value_map: head must be in [0, {}), got {}",
          layer.heads, head);
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  const auto w_v = layer.W_V.middleCols(head * d_v, d_v);
  if (layer.kind != AttentionKind::l2) {
    return w_v;
  }
  const auto w_q = layer.W_Q.middleCols(head * d, d);
  const SerialBlas serial;
  Matrix inner(d, d_v);  // A_h W_V = s W_Q (W_Qᵀ W_V): never the D × D matrix A_h
  gemm(layer.score_scale(), w_q, Op::transposed, w_v, Op::plain, 0.0, inner);
  Matrix map(layer.width(), d_v);
  gemm(1.0, w_q, Op::plain, inner, Op::plain, 0.0, map);
  return map;
}

Matrix attend(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask) {
  return Jacobian(layer, x, mask).output();
}

}  // namespace lipsa
