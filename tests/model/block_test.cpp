#include "lipsa/model/block.hpp"

#include <catch2/catch.hpp>

#include "dense_norms.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "piece_checks.hpp"
#include "random_pieces.hpp"

namespace lipsa {
namespace {

TEST_CASE("BlockAt: every derivative, for every kind of attention and norm", "[model]") {
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  const auto kind = GENERATE(from_range(test::kinds));
  const auto norm = GENERATE(LayerNorm::Kind::layer_norm, LayerNorm::Kind::rms_norm);
  const auto activation = GENERATE(Activation::relu, Activation::gelu);
  const auto dropout = GENERATE(0.0, 0.3);
  CAPTURE(to_string(placement), to_string(kind), norm == LayerNorm::Kind::rms_norm,
          to_string(activation), dropout);
  Rng rng(1);
  Block block = test::random_block(
      rng, {.placement = placement, .attention = kind, .norm = norm, .activation = activation});
  block.dropout = dropout;
  const std::optional<DropoutStream> stream = DropoutStream{.seed = 5};
  const Matrix x = normal_matrix(rng, 10, 4);
  const BlockAt at(block, x, 5, stream);
  CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
  CHECK(test::input_derivative_error(
            [&](const Matrix& at_x) { return BlockAt(block, at_x, 5, stream); }, x, rng) <=
        test::difference_tolerance);
  CHECK(test::backward_error(
            block, [&](const Block& b) { return BlockAt(b, x, 5, stream); }, rng) <=
        test::difference_tolerance);
}

TEST_CASE("BlockAt: one token of one feature, and a wide block", "[model]") {
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  const auto [n, D, H] = GENERATE(table<Index, Index, Index>({{1, 1, 1}, {1, 6, 3}, {70, 2, 1}}));
  CAPTURE(to_string(placement), n, D, H);
  Rng rng(2);
  const Block block = test::random_block(
      rng, {.placement = placement, .norm = LayerNorm::Kind::rms_norm, .D = D, .H = H});
  const Matrix x = normal_matrix(rng, 2 * n, D);
  const auto tokens = n;
  CHECK(test::adjoint_error(BlockAt(block, x, tokens), rng) <= test::adjoint_tolerance);
  CHECK(test::backward_error(
            block, [&](const Block& b) { return BlockAt(b, x, tokens); }, rng) <=
        test::difference_tolerance);
}

TEST_CASE("BlockAt: is the formula, piece by piece", "[model]") {
  Rng rng(3);
  const Block post = test::random_block(rng, {});
  Block pre = post;
  pre.placement = NormPlacement::pre;
  const Matrix x = normal_matrix(rng, 10, 4);
  const auto attention = [&](const Matrix& in) -> Matrix {
    return AttentionLayerAt(post.attention, in, 5).output();
  };
  const auto norm_1 = [&](const Matrix& in) -> Matrix {
    return LayerNormAt(post.attention_norm, in).output();
  };
  const auto norm_2 = [&](const Matrix& in) -> Matrix {
    return LayerNormAt(post.feed_forward_norm, in).output();
  };
  const auto feed_forward = [&](const Matrix& in) -> Matrix {
    return FeedForwardAt(post.feed_forward, in).output();
  };
  Matrix u = norm_1(x + attention(x));
  CHECK(BlockAt(post, x, 5).output() == norm_2(u + feed_forward(u)));
  u = x + attention(norm_1(x));
  CHECK(BlockAt(pre, x, 5).output() == u + feed_forward(norm_2(u)));
}

TEST_CASE("BlockAt: a gradient that is wrong in one array is seen", "[model]") {
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  Rng rng(4);
  const Block block = test::random_block(rng, {.placement = placement});
  const Matrix x = normal_matrix(rng, 10, 4);
  const Matrix u = normal_matrix(rng, 10, 4);
  const auto make = [&](const Block& b) { return BlockAt(b, x, 5); };
  Block gradient = zeros_like(block);
  make(block).backward(u, gradient);
  for (Parameter& array : parameters(gradient)) {
    CAPTURE(array.name);
    array.values(0) += 1e-4;
    CHECK(test::parameter_gradient_error(block, make, u, gradient, rng) >
          test::difference_tolerance);
    array.values(0) -= 1e-4;
  }
}

TEST_CASE("BlockAt: a batch of three is three batches of one", "[model]") {
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  Rng rng(5);
  const Block block =
      test::random_block(rng, {.placement = placement, .attention = AttentionKind::l2});
  const Matrix x = normal_matrix(rng, 12, 4);
  const Matrix u = normal_matrix(rng, 12, 4);
  const BlockAt at(block, x, 4);
  Block gradient = zeros_like(block);
  const Matrix dx = at.backward(u, gradient);
  Block sum = zeros_like(block);
  for (const Index s : {0, 4, 8}) {
    const BlockAt one(block, x.middleRows(s, 4), 4);
    CHECK((one.output() - at.output().middleRows(s, 4)).norm() <= 1e-13 * at.output().norm());
    const Matrix dx_one = one.backward(u.middleRows(s, 4), sum);
    CHECK((dx_one - dx.middleRows(s, 4)).norm() <= 1e-12 * dx.norm());
  }
  const auto together = parameters(gradient);
  const auto apart = parameters(sum);
  for (std::size_t k = 0; k < together.size(); ++k) {
    CAPTURE(together[k].name);
    CHECK((together[k].values - apart[k].values).norm() <=
          1e-12 * (1.0 + together[k].values.norm()));
  }
}

TEST_CASE("BlockAt: dropout off is no dropout", "[model]") {
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  Rng rng(6);
  Block block = test::random_block(rng, {.placement = placement});
  const Matrix x = normal_matrix(rng, 10, 4);
  const Matrix plain = BlockAt(block, x, 5).output();
  CHECK(BlockAt(block, x, 5, DropoutStream{.seed = 1}).output() == plain);  // of rate 0
  block.dropout = 0.5;
  CHECK(BlockAt(block, x, 5).output() == plain);
  const Matrix dropped = BlockAt(block, x, 5, DropoutStream{.seed = 1}).output();
  CHECK((dropped - plain).norm() > 0.1);
  CHECK(BlockAt(block, x, 5, DropoutStream{.seed = 1}).output() == dropped);
}

TEST_CASE("BlockAt: |J|_2 by products is that of the dense matrix", "[model]") {
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  const auto kind = GENERATE(from_range(test::kinds));
  CAPTURE(to_string(placement), to_string(kind));
  Rng rng(7);
  const Block block = test::random_block(rng, {.placement = placement, .attention = kind, .D = 6});
  const BlockAt at(block, normal_matrix(rng, 20, 6), 20);
  const JacobianOperator jacobian(at);
  Matrix j(jacobian.rows(), jacobian.cols());
  Vector column(jacobian.rows());
  for (Index c = 0; c < j.cols(); ++c) {
    jacobian.apply(Vector::Unit(j.cols(), c), column);
    j.col(c) = column;
  }
  const SpectralNorm norm = spectral_norm(jacobian);  // 120 × 120: by Lanczos
  CHECK(norm.converged());
  CHECK(norm.value == Approx(test::dense_norm(j)).epsilon(1e-9));
}

TEST_CASE("BlockAt: the same bits whatever the number of threads", "[model]") {
  Rng rng(8);
  Block block = test::random_block(rng, {.D = 32, .H = 4});
  block.dropout = 0.2;
  const Matrix x = normal_matrix(rng, 300, 32);
  const auto all = [&] {
    const BlockAt at(block, x, 100, DropoutStream{.seed = 3});
    Block gradient = zeros_like(block);
    Matrix dx = at.backward(x, gradient);
    for (const Parameter& array : parameters(gradient)) {
      dx(0, 0) += array.values.sum();
    }
    return dx;
  };
  const Matrix many = all();
  const ThreadLimit limit(1);
  CHECK(all() == many);
}

TEST_CASE("BlockAt: what it refuses, by name", "[model]") {
  Rng rng(9);
  Block block = test::random_block(rng, {});
  const Matrix x = normal_matrix(rng, 10, 4);
  block.feed_forward.out = test::random_linear(rng, 8, 3);
  CHECK_THROWS_WITH(BlockAt(block, x, 5),
                    "BlockAt: feed_forward must give 4 columns as it takes, got 3");
  block.attention.weights.W_O = Matrix::Ones(4, 5);
  block.attention.weights.b_O.resize(0);
  CHECK_THROWS_WITH(BlockAt(block, x, 5),
                    "BlockAt: attention must give 4 columns as it takes, got 5");
}

TEST_CASE("parse_norm_placement: reads what to_string writes", "[model]") {
  CHECK(parse_norm_placement(to_string(NormPlacement::post)) == NormPlacement::post);
  CHECK(parse_norm_placement(to_string(NormPlacement::pre)) == NormPlacement::pre);
  CHECK_THROWS_WITH(parse_norm_placement("none"), "norm placement must be post or pre, got 'none'");
}

}  // namespace
}  // namespace lipsa
