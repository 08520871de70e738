#include "lipsa/model/piece.hpp"

#include <catch2/catch.hpp>

#include "lipsa/core/rng.hpp"
#include "lipsa/linalg/linear_operator.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "lipsa/model/stack.hpp"

namespace lipsa {
namespace {

static_assert(LinearisedPiece<AttentionAt>);
static_assert(LinearisedPiece<LinearAt>);
static_assert(LinearisedPiece<ActivationAt>);
static_assert(LinearisedPiece<LayerNormAt>);
static_assert(LinearisedPiece<FeedForwardAt>);
static_assert(LinearisedPiece<DropoutAt>);
static_assert(LinearisedPiece<AttentionLayerAt>);
static_assert(LinearisedPiece<BlockAt>);
static_assert(LinearisedPiece<StackAt>);
static_assert(LinearOperator<JacobianOperator<LinearAt>>);

TEST_CASE("JacobianOperator: of a linear piece it is W, once a token", "[model]") {
  Rng rng(1);
  const Linear linear{.W = normal_matrix(rng, 3, 2)};
  const LinearAt at(linear, Matrix::Zero(4, 3));
  const JacobianOperator jacobian(at);
  CHECK(jacobian.rows() == 8);
  CHECK(jacobian.cols() == 12);
  const Vector v = normal_matrix(rng, 12, 1);
  Vector jv(8);
  jacobian.apply(v, jv);
  for (Index t = 0; t < 4; ++t) {
    const Vector expected = linear.W.transpose() * v.segment(3 * t, 3);
    CHECK((jv.segment(2 * t, 2) - expected).norm() <= 1e-14);
  }
  const DenseOperator dense(linear.W);
  CHECK(spectral_norm(jacobian).value == Approx(spectral_norm(dense).value).epsilon(1e-12));
}

}  // namespace
}  // namespace lipsa
