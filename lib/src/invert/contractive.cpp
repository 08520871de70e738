#include "lipsa/invert/contractive.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.hpp"
#include "core/rounding.hpp"
#include "lipsa/bounds/catalog.hpp"

namespace lipsa {

Bound divisor_bound(const MultiHead& layer, Index tokens, const std::string& divisor,
                    const Mask& mask) {
  const BoundSetting setting{.layer = layer, .mask = mask, .tokens = tokens};
  if (divisor == "two") {
    return best_bound(setting, Norm::two);
  }
  const std::string name = divisor == "kim2021" ? "kim2021_inf"
                           : divisor == "sharp" ? "sharp_l2_inf"
                                                : divisor;
  const auto entries = catalog();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const CatalogEntry& known) {
    return known.name == name && known.subject == Subject::attention;
  });
  require(
      entry != entries.end(),
      "divisor_bound: divisor must be kim2021, sharp, two or the name of a bound of attention in "
      "the catalogue, got '{}'",
      divisor);
  return entry->evaluate(setting);
}

ResidualAttention::ResidualAttention(MultiHead layer, Mask mask)
    : layer_(std::move(layer)), mask_(std::move(mask)) {
  require_valid(layer_);
  require(layer_.output_width() == layer_.width(),
          "ResidualAttention: the output must have the {} features of the input, got {}",
          layer_.width(), layer_.output_width());
}

ResidualAttention ResidualAttention::contractive(MultiHead layer, Index tokens,
                                                 const ContractiveOptions& options, Mask mask) {
  const double c = options.factor;
  require(c > 0.0 && c < 1.0, "contractive: factor must be between 0 and 1, got {}", c);
  ResidualAttention g(std::move(layer), std::move(mask));
  g.bound_ = divisor_bound(g.layer_, tokens, options.divisor, g.mask_);
  const Bound& bound = g.bound_;
  require(bound.holds, "contractive: {} must hold to divide by it, but {}",
          bound.name.empty() ? options.divisor : bound.name, bound.reason);
  require(bound.value == 0.0 || std::isfinite(bound.log10_value),
          "contractive: {} gives no finite constant: {}", bound.name, bound.reason);
  // Rounded down, γ L ≤ c holds in real numbers.
  g.gain_ = bound.value == 0.0 ? c : next_down(c / bound.value);
  require(g.gain_ > 0.0 && std::isfinite(g.gain_),
          "contractive: factor/bound must be a positive double, got {}/1e{:.6g} ({})", c,
          bound.log10_value, bound.name);
  g.contraction_ = c;
  g.norm_ = bound.norm;
  g.tokens_ = tokens;
  return g;
}

ResidualAttention ResidualAttention::undivided(MultiHead layer, double gain, Mask mask, Norm norm) {
  require(std::isfinite(gain), "undivided: gain must be finite, got {}", gain);
  ResidualAttention g(std::move(layer), std::move(mask));
  g.gain_ = gain;
  g.norm_ = norm;
  g.tokens_ = g.mask_.tokens();
  g.bound_.reason = "F is not divided by a bound";
  return g;
}

Matrix ResidualAttention::branch(const ConstMatrixRef& x) const {
  require(tokens_ == 0 || x.rows() == tokens_,
          "ResidualAttention: x must have the {} tokens that it is made for, got {}", tokens_,
          x.rows());
  return gain_ * attend(layer_, x, mask_);
}

Matrix ResidualAttention::forward(const ConstMatrixRef& x) const {
  return x + branch(x);
}

}  // namespace lipsa
