#include "lipsa/attention/mask.hpp"

#include "core/check.hpp"

namespace lipsa {

Mask Mask::arbitrary(Visible visible) {
  require(visible.rows() == visible.cols(), "Mask: visible must be square, got {} x {}",
          visible.rows(), visible.cols());
  Mask mask(Kind::arbitrary);
  mask.visible_ = std::move(visible);
  return mask;
}

std::vector<Index> Mask::blind_tokens(Index n) const {
  std::vector<Index> blind;
  if (kind_ == Kind::arbitrary) {
    for (Index i = 0; i < n; ++i) {
      if (!visible_.row(i).any()) {
        blind.push_back(i);
      }
    }
  }
  return blind;
}

std::string_view to_string(Mask::Kind kind) {
  switch (kind) {
    case Mask::Kind::none:
      return "none";
    case Mask::Kind::causal:
      return "causal";
    case Mask::Kind::arbitrary:
      return "arbitrary";
  }
  return "unknown";
}

}  // namespace lipsa
