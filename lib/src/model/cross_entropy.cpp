#include "lipsa/model/cross_entropy.hpp"

#include <cmath>

#include "core/check.hpp"
#include "linalg/row_products.hpp"

namespace lipsa {

CrossEntropy cross_entropy(Matrix logits, std::span<const Index> targets) {
  const Index V = logits.cols();
  require(static_cast<Index>(targets.size()) == logits.rows(),
          "cross_entropy: targets must be {} as the rows of logits, got {}", logits.rows(),
          targets.size());
  CrossEntropy loss;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    require(targets[i] >= -1 && targets[i] < V,
            "cross_entropy: targets must be -1 or in [0, {}), got {} at {}", V, targets[i], i);
    loss.counted += targets[i] >= 0 ? 1 : 0;
  }
  require(loss.counted >= 1, "cross_entropy: targets must have a row that counts, got {} of -1",
          targets.size());

  const double share = 1.0 / static_cast<double>(loss.counted);
  Vector nats = Vector::Zero(logits.rows());
  for_row_pieces(logits.rows(), [&](Index first, Index count) {
    for (Index i = first; i < first + count; ++i) {
      const Index target = targets[static_cast<std::size_t>(i)];
      auto row = logits.row(i).array();
      if (target < 0) {
        row.setZero();
        continue;
      }
      row -= row.maxCoeff();
      const double of_target = row(target);
      row = row.unaryExpr([](double x) { return std::exp(x); });
      const double total = row.sum();
      nats(i) = std::log(total) - of_target;
      row *= share / total;
      row(target) -= share;
    }
  });
  double sum = 0.0;
  for (const double each : nats) {
    sum += each;
  }
  loss.nats = sum * share;
  loss.gradient = std::move(logits);
  return loss;
}

}  // namespace lipsa
