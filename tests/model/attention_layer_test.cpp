#include "lipsa/model/attention_layer.hpp"

#include <catch2/catch.hpp>

#include "piece_checks.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

TEST_CASE("AttentionLayerAt: scaled attention, with the gradient in its gain", "[model]") {
  const auto kind = GENERATE(from_range(test::kinds));
  CAPTURE(to_string(kind));
  Rng rng(1);
  const AttentionLayer layer{.weights = test::random_layer(rng, kind, {5, 4, 2, 3, 2, 6}),
                             .mask = Mask::causal(),
                             .gain = GENERATE(0.4, 1.0, 0.0)};
  const Matrix x = normal_matrix(rng, 10, 4);
  const AttentionLayerAt at(layer, x, 5);
  for (const Index s : {0, 5}) {
    const Matrix alone = attend(layer.weights, x.middleRows(s, 5), layer.mask);
    CHECK((at.output().middleRows(s, 5) - layer.gain * alone).norm() <= 1e-14 * alone.norm());
  }
  CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
  const auto make = [&](const AttentionLayer& l) { return AttentionLayerAt(l, x, 5); };
  CHECK(test::backward_error(layer, make, rng) <= test::difference_tolerance);

  const Matrix u = normal_matrix(rng, 10, 6);
  AttentionLayer gradient = zeros_like(layer);
  gradient.gain = 0.0;
  at.backward(u, gradient);
  const Matrix slope = test::central_difference([&](double t) -> Matrix {
    AttentionLayer moved = layer;
    moved.gain += t;
    return make(moved).output();
  });
  CHECK(std::abs(gradient.gain - u.cwiseProduct(slope).sum()) <=
        test::difference_tolerance * u.norm() * slope.norm());
}

}  // namespace
}  // namespace lipsa
