#include "lipsa/bounds/sharp_l2.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/kim2021.hpp"
#include "lipsa/bounds/lambert.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

TEST_CASE("sharp_l2_core_inf: the values of the tables", "[bounds]") {
  const auto [n, d, value] = GENERATE(table<Index, Index, double>({{1, 1, 1.0},
                                                                   {2, 1, 1.7414996737957593},
                                                                   {3, 1, 2.2922442926812865},
                                                                   {10, 1, 4.417932458251975},
                                                                   {100, 1, 10.094831642015984},
                                                                   {101, 1, 10.122765998695867},
                                                                   {1000, 1, 17.065500077261127},
                                                                   {1001, 1, 17.068704354778266},
                                                                   {5, 1, 3.107792},
                                                                   {3, 2, 2.663510},
                                                                   {5, 2, 3.689902},
                                                                   {4, 2, 3.222488},
                                                                   {3, 4, 3.194290}}));
  CAPTURE(n, d);
  const bool digits = d == 1 && n != 5;
  CHECK(sharp_l2_core_inf(n, d).value() == Approx(value).epsilon(0).margin(digits ? 2e-14 : 6e-7));
}

TEST_CASE("sharp_l2_core_inf: is attained for odd n by one token between two clusters",
          "[bounds]") {
  const Index n = GENERATE(3, 5, 101);
  const Index d = GENERATE(1, 2, 4);
  CAPTURE(n, d);
  // F is the core map when W_Q = I d^¼, W_V = A_h⁻¹ = I: s W_Q W_Qᵀ = I.
  const double root = std::sqrt(static_cast<double>(d));
  const MultiHead layer{.kind = AttentionKind::l2,
                        .W_Q = std::sqrt(root) * Matrix::Identity(d, d),
                        .W_V = Matrix::Identity(d, d)};
  const double kappa = 2.0 * (1.0 + root);
  const double w = lambert_w(static_cast<double>(n - 1) * std::exp(-1.0 - 2.0 / kappa));
  Vector y = Vector::Ones(d);
  y(0) += root;
  y *= std::sqrt(1.0 + w + 2.0 / kappa) / y.norm();
  Matrix x = Matrix::Zero(n, d);
  for (Index i = 1; i < n; ++i) {
    x.row(i) = (i % 2 == 0 ? 1.0 : -1.0) * y.transpose();
  }
  const double norm = Jacobian(layer, x).norm_inf().value;
  const double bound = sharp_l2_core_inf(n, d).value();
  CHECK(norm <= bound * (1.0 + 1e-13));  // norm has its own rounding
  CHECK(norm >= bound * (1.0 - 1e-12));
}

TEST_CASE("sharp_l2_inf: never above kim2021_inf, in floating point too", "[bounds]") {
  Rng rng(2);
  for (const Index d : {1, 2, 3, 64, 4096}) {
    const MultiHead layer{.kind = AttentionKind::l2,
                          .W_Q = normal_matrix(rng, 2, d),
                          .W_V = normal_matrix(rng, 2, 3)};
    for (const Index n : {Index{1}, Index{2}, Index{3}, Index{1000}, Index{1} << 40U,
                          std::numeric_limits<Index>::max()}) {
      CAPTURE(d, n);
      CHECK(sharp_l2_inf(layer, n) <= kim2021_inf(layer, n));
      CHECK(sharp_l2_inf(layer, n).value() <= kim2021_inf(layer, n).value());
      CHECK(sharp_l2_inf(layer, n).log10_value() <= kim2021_inf(layer, n).log10_value());
    }
  }
}

TEST_CASE("sharp_l2_inf: one token gives the norm of the linear map, tight for the core",
          "[bounds]") {
  CHECK(sharp_l2_inf(test::unit_layer(AttentionKind::l2), 1).value() == Approx(1.0).epsilon(1e-12));
  Rng rng(4);
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, {1, 3, 2, 2, 4, 3});
  const double norm = Jacobian(layer, Matrix::Ones(1, 3)).norm_inf().value;
  CHECK(norm <= sharp_l2_inf(layer, 1).value());
  CHECK(sharp_l2_inf(layer, 1) == kim2021_inf(layer, 1));
}

TEST_CASE("sharp_l2: refuses what is no count", "[bounds]") {
  CHECK_THROWS_WITH(sharp_l2_core_inf(0, 1), "sharp_l2_core_inf: tokens must be at least 1, got 0");
  CHECK_THROWS_WITH(sharp_l2_core_inf(2, 0),
                    "sharp_l2_core_inf: head_width must be at least 1, got 0");
}

}  // namespace
}  // namespace lipsa
