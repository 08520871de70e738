#include "lipsa/search/measure.hpp"

#include <Eigen/SVD>
#include <catch2/catch.hpp>

#include "dense_norms.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/core/parallel.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

TEST_CASE("local_norm: the dense Jacobian's norms, with a proven lower bound just below",
          "[search]") {
  const auto kind = GENERATE(from_range(test::kinds));
  const auto p = GENERATE(Norm::one, Norm::two, Norm::inf, Norm::max_token);
  CAPTURE(to_string(kind), to_string(p));
  Rng rng(6);
  const MultiHead layer = test::random_layer(rng, kind, {5, 4, 2, 3, 1, 3});
  const Matrix x = normal_matrix(rng, 5, 4);
  const LocalNorm norm = local_norm(layer, x, Mask::causal(), p);
  const Matrix j = Jacobian(layer, x, Mask::causal()).dense();
  CHECK(norm.status == "converged");
  CHECK(norm.lower_bound <= norm.estimate * (1.0 + 1e-12));
  CHECK(norm.lower_bound >= norm.estimate * (1.0 - 1e-9));
  switch (p) {
    case Norm::one:
      CHECK(norm.estimate == Approx(j.cwiseAbs().colwise().sum().maxCoeff()).epsilon(1e-12));
      break;
    case Norm::inf:
      CHECK(norm.estimate == Approx(j.cwiseAbs().rowwise().sum().maxCoeff()).epsilon(1e-12));
      break;
    case Norm::two:
      CHECK(norm.estimate ==
            Approx(Eigen::JacobiSVD<Matrix>(j).singularValues()(0)).epsilon(1e-11));
      break;
    case Norm::max_token:
      CHECK(norm.estimate <= upper_bound_mixed_operator_norm(j, 3, 4, Norm::inf));
      CHECK(norm.estimate == Approx(test::dense_max_token(j, 3, 4)).epsilon(1e-12));
      break;
  }
}

TEST_CASE("local_norm: the largest token's gain is the same on any number of threads", "[search]") {
  Rng rng(7);
  const MultiHead layer = test::random_layer(rng, AttentionKind::dot, {40, 6, 2, 3, 3, 6});
  const Matrix x = normal_matrix(rng, 40, 6);
  const auto measured = [&](Index threads) {
    const ThreadLimit limit(threads);
    return local_norm(layer, x, Mask::none(), Norm::max_token);
  };
  const LocalNorm alone = measured(1);
  for (int run = 0; run < 5; ++run) {
    const LocalNorm norm = measured(3);
    CHECK(norm.estimate == alone.estimate);
    CHECK(norm.direction == alone.direction);
  }
}

TEST_CASE("local_norm: an overflow is a status, a zero map has norm zero", "[search]") {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  const LocalNorm beyond = local_norm(layer, Matrix{{1e200}, {-1e200}}, Mask::none(), Norm::inf);
  CHECK(beyond.status == "non-finite");
  CHECK(beyond.lower_bound == 0.0);
  layer.W_V.setZero();
  const LocalNorm zero = local_norm(layer, Matrix::Ones(2, 1), Mask::none(), Norm::two);
  CHECK(zero.estimate == 0.0);
  CHECK(zero.lower_bound == 0.0);
}

TEST_CASE("local_norm: a bias of the keys, however large, does nothing to dot-product attention",
          "[search]") {
  MultiHead layer = test::unit_layer(AttentionKind::dot);
  layer.b_Q = Vector::Constant(1, 1.3);
  const Matrix x{{0.3}, {-0.7}, {1.1}};
  const LocalNorm without = local_norm(layer, x, Mask::none(), Norm::one);
  layer.b_K = Vector::Constant(1, 1.37e20);
  const LocalNorm with = local_norm(layer, x, Mask::none(), Norm::one);
  CHECK(with.estimate == Approx(without.estimate).epsilon(1e-13));
  CHECK(with.estimate == Approx(2.9412740192198).epsilon(1e-12));
  CHECK(with.status == "converged");
}

}  // namespace
}  // namespace lipsa
