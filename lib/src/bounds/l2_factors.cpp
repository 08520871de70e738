#include "bounds/l2_factors.hpp"

#include <algorithm>
#include <cmath>

#include "core/check.hpp"
#include "core/rounding.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

void require_l2(std::string_view function, const MultiHead& layer, Index tokens) {
  require(layer.kind == AttentionKind::l2, "{}: layer must be of kind l2, got {}", function,
          to_string(layer.kind));
  require_valid(layer);
  require(tokens >= 1, "{}: tokens must be at least 1, got {}", function, tokens);
}

double count_up(Index count) {
  const auto rounded = static_cast<double>(count);
  return rounded > 0x1p53 ? next_up(rounded) : rounded;
}

double upper_bound_scale(const MultiHead& layer) {
  const double used = layer.score_scale();
  if (layer.scale > 0.0) {
    return used;
  }
  const auto d = static_cast<double>(layer.head_width());
  const double root = std::sqrt(d);
  const double below = std::fma(root, root, -d) > 0.0 ? next_down(root) : root;
  const double inverse = 1.0 / below;
  return std::max(used, std::fma(inverse, below, -1.0) < 0.0 ? next_up(inverse) : inverse);
}

UpRounded l2_weights_inf(const MultiHead& layer) {
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  UpRounded scores;
  UpRounded values;
  for (Index h = 0; h < layer.heads; ++h) {
    const auto w_q = layer.W_Q.middleCols(h * d, d);
    const auto w_v = layer.W_V.middleCols(h * d_v, d_v);
    scores = std::max(scores, upper_bound_norm_inf(w_q) * UpRounded(upper_bound_norm_1(w_q)));
    values = std::max(values, UpRounded(upper_bound_norm_1(w_v)));  // |Wᵀ|_inf = |W|_1
  }
  const UpRounded output = layer.W_O.size() == 0 ? 1.0 : upper_bound_norm_1(layer.W_O);
  return upper_bound_scale(layer) * output * scores * values;
}

}  // namespace lipsa
