#include "lipsa/model/stack.hpp"

#include <catch2/catch.hpp>

#include "dense_norms.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "piece_checks.hpp"
#include "random_pieces.hpp"

namespace lipsa {
namespace {

TEST_CASE("StackAt: every derivative", "[model]") {
  const auto placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  const auto kind = GENERATE(from_range(test::kinds));
  const auto blocks = GENERATE(Index{0}, Index{2});
  const auto whole = GENERATE(true, false);
  CAPTURE(to_string(placement), to_string(kind), blocks, whole);
  Rng rng(1);
  Stack stack = test::random_stack(rng, {.placement = placement, .attention = kind}, blocks, 7);
  if (!whole) {
    stack.final_norm.reset();
    stack.output.reset();
  }
  const Matrix x = normal_matrix(rng, 10, 4);
  const StackAt at(stack, x, 5);
  CHECK(at.output_width() == (whole ? 7 : 4));
  CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
  CHECK(test::input_derivative_error([&](const Matrix& at_x) { return StackAt(stack, at_x, 5); }, x,
                                     rng) <= test::difference_tolerance);
  CHECK(test::backward_error(
            stack, [&](const Stack& s) { return StackAt(s, x, 5); }, rng) <=
        test::difference_tolerance);
}

TEST_CASE("StackAt: is its blocks, one after the other", "[model]") {
  Rng rng(2);
  const Stack stack = test::random_stack(rng, {.placement = NormPlacement::pre}, 3, 5);
  Matrix x = normal_matrix(rng, 10, 4);
  const StackAt at(stack, x, 5);
  for (const Block& block : stack.blocks) {
    x = BlockAt(block, x, 5).output();
  }
  x = LayerNormAt(*stack.final_norm, x).output();
  CHECK(at.output() == LinearAt(*stack.output, x).output());
}

TEST_CASE("StackAt: |J|_2 of a network by products is that of the dense matrix", "[model]") {
  const auto kind = GENERATE(AttentionKind::dot, AttentionKind::l2);
  Rng rng(3);
  const Stack stack = test::random_stack(rng, {.attention = kind}, 3, 9);
  const StackAt at(stack, normal_matrix(rng, 18, 4), 18);
  const JacobianOperator jacobian(at);
  CHECK(jacobian.rows() == 162);  // 18 tokens of 9
  CHECK(jacobian.cols() == 72);
  Matrix j(jacobian.rows(), jacobian.cols());
  Vector row(jacobian.cols());
  for (Index r = 0; r < j.rows(); ++r) {
    jacobian.apply_adjoint(Vector::Unit(j.rows(), r), row);
    j.row(r) = row.transpose();
  }
  const SpectralNorm norm = spectral_norm(jacobian);
  CHECK(norm.converged());
  CHECK(norm.value == Approx(test::dense_norm(j)).epsilon(1e-9));
}

TEST_CASE("StackAt: of a batch the norm is the largest of its sequences", "[model]") {
  Rng rng(4);
  const Stack stack = test::random_stack(rng, {}, 2, 5);
  const Matrix x = normal_matrix(rng, 12, 4);
  double largest = 0.0;
  for (const Index s : {0, 4, 8}) {
    const StackAt one(stack, x.middleRows(s, 4), 4);
    largest = std::max(largest, spectral_norm(JacobianOperator(one)).value);
  }
  const StackAt at(stack, x, 4);
  CHECK(spectral_norm(JacobianOperator(at)).value == Approx(largest).epsilon(1e-9));
}

TEST_CASE("StackAt: blocks drop entries of their own", "[model]") {
  Rng rng(5);
  Stack stack = test::random_stack(rng, {}, 2, 5);
  for (Block& block : stack.blocks) {
    block.dropout = 0.5;
  }
  stack.blocks[1] = stack.blocks[0];
  const Matrix x = normal_matrix(rng, 10, 4);
  const DropoutStream stream{.seed = 1, .step = 1, .site = 1};
  Matrix y = BlockAt(stack.blocks[0], x, 5, stream).output();
  y = BlockAt(stack.blocks[1], y, 5, DropoutStream{.seed = 1, .step = 1, .site = 3}).output();
  CHECK(StackAt(stack, x, 5, stream).output() == LinearAt(*stack.output, y).output());
}

TEST_CASE("StackAt: names of its arrays, and what it refuses", "[model]") {
  Rng rng(6);
  const Stack stack = test::random_stack(rng, {.placement = NormPlacement::pre}, 2, 5);
  const auto list = parameters(stack);
  CHECK(list.front().name == "blocks.0.attention.W_Q");
  CHECK(list.back().name == "output.b");
  Stack gradient = zeros_like(stack);
  gradient.blocks.pop_back();
  const StackAt at(stack, normal_matrix(rng, 10, 4), 5);
  CHECK_THROWS_WITH(at.backward(Matrix::Ones(10, 5), gradient),
                    "StackAt: gradient must have the pieces of the stack, 2 blocks, got 1");
}

}  // namespace
}  // namespace lipsa
