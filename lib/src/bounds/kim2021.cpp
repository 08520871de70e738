#include "lipsa/bounds/kim2021.hpp"

#include "bounds/l2_factors.hpp"
#include "lipsa/bounds/lambert.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {
namespace {

UpRounded c(Index tokens, PhiInverse reading) {
  return upper_bound_phi_inverse(count_up(reading == PhiInverse::exact ? tokens - 1 : tokens));
}

/// √n s (4c + 1) (Σ_h |W_Qʰ|₂^degree |W_Vʰ|₂²)^½ |W_O|₂ with |W_Q|₂^degree from its square root.
UpRounded two_norm(const MultiHead& layer, Index tokens, PhiInverse reading, bool squared) {
  const Index d = layer.head_width();
  const Index d_v = layer.value_width();
  UpRounded sum;
  for (Index h = 0; h < layer.heads; ++h) {
    const UpRounded w_q = upper_bound_spectral_norm(layer.W_Q.middleCols(h * d, d));
    const UpRounded w_v = upper_bound_spectral_norm(layer.W_V.middleCols(h * d_v, d_v));
    const UpRounded term = (squared ? w_q * w_q : w_q) * w_v;
    sum += term * term;
  }
  const UpRounded output = layer.W_O.size() == 0 ? 1.0 : upper_bound_spectral_norm(layer.W_O);
  return sqrt(UpRounded(count_up(tokens))) * upper_bound_scale(layer) *
         (4.0 * c(tokens, reading) + 1.0) * sqrt(sum) * output;
}

}  // namespace

UpRounded kim2021_inf(const MultiHead& layer, Index tokens, PhiInverse reading) {
  require_l2("kim2021_inf", layer, tokens);
  const UpRounded d = static_cast<double>(layer.head_width());
  return (4.0 * sqrt(d) * c(tokens, reading) + 1.0) * l2_weights_inf(layer);
}

UpRounded kim2021_2_printed(const MultiHead& layer, Index tokens, PhiInverse reading) {
  require_l2("kim2021_2_printed", layer, tokens);
  return two_norm(layer, tokens, reading, false);
}

UpRounded kim2021_2(const MultiHead& layer, Index tokens) {
  require_l2("kim2021_2", layer, tokens);
  return two_norm(layer, tokens, PhiInverse::exact, true);
}

}  // namespace lipsa
