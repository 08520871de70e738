#include "lipsa/model/dropout.hpp"

#include "core/same_shapes.hpp"
#include "linalg/row_products.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {

DropoutAt::DropoutAt(double rate, const DropoutStream& stream, Matrix x)
    : factor_(1.0 / (1.0 - rate)), kept_(x.rows(), x.cols()) {
  require(rate >= 0.0 && rate < 1.0, "DropoutAt: rate must be in [0, 1), got {}", rate);
  for_row_pieces(x.rows(), [&](Index first, Index count) {
    for (Index i = first; i < first + count; ++i) {
      // "dropout": apart from the streams of weights and searches
      Rng rng(stream.seed, 0x64726f706f757400U ^ (stream.step << 32U),
              (stream.site << 32U) + static_cast<std::uint64_t>(i));
      for (Index a = 0; a < x.cols(); ++a) {
        kept_(i, a) = rng.uniform() > rate;
      }
    }
  });
  output_ = apply(std::move(x));
}

Matrix DropoutAt::apply(Matrix dx) const {
  require_shape("DropoutAt", "dx or dy", dx, rows(), input_width());
  for_row_pieces(rows(), [&](Index first, Index count) {
    auto part = dx.middleRows(first, count).array();
    part = kept_.middleRows(first, count).select(factor_ * part, 0.0);
  });
  return dx;
}

}  // namespace lipsa
