#include "lipsa/model/feed_forward.hpp"

#include <catch2/catch.hpp>

#include "piece_checks.hpp"
#include "random_pieces.hpp"

namespace lipsa {
namespace {

TEST_CASE("FeedForwardAt: every derivative", "[model]") {
  const auto activation = GENERATE(Activation::relu, Activation::gelu);
  const auto [rows, D, hidden] =
      GENERATE(table<Index, Index, Index>({{1, 1, 1}, {6, 3, 12}, {40, 5, 2}}));
  CAPTURE(to_string(activation), rows, D, hidden);
  Rng rng(1);
  const FeedForward piece = test::random_feed_forward(rng, D, hidden, activation);
  const Matrix x = normal_matrix(rng, rows, D);
  const FeedForwardAt at(piece, x);
  CHECK(test::adjoint_error(at, rng) <= test::adjoint_tolerance);
  CHECK(test::input_derivative_error([&](const Matrix& at_x) { return FeedForwardAt(piece, at_x); },
                                     x, rng) <= test::difference_tolerance);
  CHECK(test::backward_error(
            piece, [&](const FeedForward& p) { return FeedForwardAt(p, x); }, rng) <=
        test::difference_tolerance);
}

TEST_CASE("FeedForwardAt: by hand", "[model]") {
  const FeedForward piece{.in = {.W = (Matrix(1, 2) << 1.0, -1.0).finished()},
                          .activation = Activation::relu,
                          .out = {.W = (Matrix(2, 1) << 2.0, 3.0).finished()}};
  const FeedForwardAt at(piece, (Matrix(2, 1) << 5.0, -7.0).finished());
  CHECK(at.output() == (Matrix(2, 1) << 10.0, 21.0).finished());
  CHECK(at.apply(Matrix::Ones(2, 1)) == (Matrix(2, 1) << 2.0, -3.0).finished());
}

}  // namespace
}  // namespace lipsa
