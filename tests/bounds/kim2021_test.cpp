#include "lipsa/bounds/kim2021.hpp"

#include <Eigen/SVD>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <tuple>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/sharp_l2.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using Formula = UpRounded (*)(const MultiHead&, Index);

UpRounded inf_formula(const MultiHead& layer, Index n) {
  return kim2021_inf(layer, n);
}
UpRounded printed_formula(const MultiHead& layer, Index n) {
  return kim2021_2_printed(layer, n);
}

double dense_norm(const Matrix& a) {
  return Eigen::JacobiSVD<Eigen::MatrixXd>(a).singularValues()(0);
}

TEST_CASE("kim2021_inf: unit weights give the values of figure 2", "[bounds]") {
  const MultiHead layer = test::unit_layer(AttentionKind::l2);
  const auto [n, value] = GENERATE(table<Index, double>({{2, 2.114},
                                                         {3, 2.852},
                                                         {10, 5.404},
                                                         {64, 10.229},
                                                         {100, 11.515},
                                                         {288, 14.710},
                                                         {1000, 18.682}}));
  CAPTURE(n);
  CHECK(kim2021_inf(layer, n).value() == Approx(value).margin(5e-4));
  CHECK(kim2021_inf(layer, n, PhiInverse::as_printed) > kim2021_inf(layer, n));
}

TEST_CASE("kim2021_2: the printed exponent is refuted by W_Q = 5, the corrected one is not",
          "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  layer.W_Q(0, 0) = 5.0;
  const double norm = dense_norm(Jacobian(layer, Matrix::Zero(2, 1)).dense());
  CHECK(norm == Approx(25.0).epsilon(1e-14));
  CHECK(kim2021_2_printed(layer, 2, PhiInverse::exact).value() == Approx(14.95).margin(5e-3));
  CHECK(kim2021_2_printed(layer, 2).value() == Approx(20.17).margin(5e-3));
  CHECK(kim2021_2(layer, 2).value() == Approx(74.74).margin(1e-2));
  CHECK(norm > kim2021_2_printed(layer, 2).value());
}

TEST_CASE("kim2021_2: one head of norms 3 and 3 gives products of squares, no sum", "[bounds]") {
  const MultiHead layer{.kind = AttentionKind::l2,
                        .W_Q = 3.0 * Matrix::Identity(4, 4),
                        .W_V = 3.0 * Matrix::Identity(4, 4),
                        .W_O = Matrix::Identity(4, 4)};
  const double core = 2.0 / 2.0 * (4.0 * 0.60355 + 1.0);  // √n/√d (4 W(3/e) + 1)
  CHECK(kim2021_2_printed(layer, 4, PhiInverse::exact).value() ==
        Approx(core * std::sqrt(9.0 * 9.0)).epsilon(1e-4));
  CHECK(kim2021_2(layer, 4).value() == Approx(core * std::sqrt(81.0 * 9.0)).epsilon(1e-4));
}

TEST_CASE("kim2021_inf: by hand, each norm of the side the weights act from", "[bounds]") {
  // One token: J = (W_Q W_Qᵀ W_V W_O)ᵀ with every norm attained, 4 · 3 · 2 · 11.
  const MultiHead layer{.kind = AttentionKind::l2,
                        .W_Q = Matrix{{1.0}, {3.0}},
                        .W_V = Matrix{{0.0}, {2.0}},
                        .W_O = Matrix{{5.0, 7.0, 11.0}}};
  CHECK(Jacobian(layer, Matrix::Ones(1, 2)).norm_inf().value == Approx(264.0).epsilon(1e-14));
  CHECK(kim2021_inf(layer, 1).value() == Approx(264.0).epsilon(1e-12));
  CHECK(kim2021_inf(layer, 1).value() >= 264.0);
}

TEST_CASE("The bounds of tied L2 attention scale with each weight by its degree", "[bounds]") {
  Rng rng(5);
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, {6, 4, 2, 3, 1, 5});
  const auto row = GENERATE(table<Formula, double>(
      {{inf_formula, 2.0}, {kim2021_2, 2.0}, {printed_formula, 1.0}, {sharp_l2_inf, 2.0}}));
  const Formula formula = std::get<0>(row);
  const double degree = std::get<1>(row);
  const double factor = GENERATE(1e-3, 7.0);
  CAPTURE(degree, factor);
  const double value = formula(layer, 6).value();
  const auto ratio = [&](auto change) {
    MultiHead changed = layer;
    change(changed);
    return formula(changed, 6).value() / value;
  };
  CHECK(ratio([&](MultiHead& l) { l.W_Q *= factor; }) ==
        Approx(std::pow(factor, degree)).epsilon(1e-12));
  CHECK(ratio([&](MultiHead& l) { l.W_V *= factor; }) == Approx(factor).epsilon(1e-12));
  CHECK(ratio([&](MultiHead& l) { l.W_O *= factor; }) == Approx(factor).epsilon(1e-12));
  CHECK(ratio([&](MultiHead& l) { l.scale = factor / std::sqrt(3.0); }) ==
        Approx(factor).epsilon(1e-12));
  CHECK(ratio([&](MultiHead& l) { l.W_V.setZero(); }) == 0.0);
  CHECK(ratio([&](MultiHead& l) { l.b_Q *= factor, l.b_V *= factor, l.b_O *= factor; }) == 1.0);
  CHECK(ratio([&](MultiHead& l) { l.W_O.resize(0, 0), l.b_O.resize(0); }) ==
        Approx(ratio([&](MultiHead& l) {
          l.W_O.setIdentity(2, 2), l.b_O.resize(0);
        })).epsilon(1e-12));
}

TEST_CASE("The bounds of tied L2 attention outlive the range of double", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  const double shift = GENERATE(200.0, -200.0);
  layer.W_Q(0, 0) = layer.W_V(0, 0) = layer.W_O(0, 0) = std::pow(10.0, shift);
  const double factor = std::sqrt(2.0) * (4.0 * 0.27846454276107 + 1.0);
  const UpRounded two = kim2021_2(layer, 2);
  CHECK(two.log10_value() == Approx(4.0 * shift + std::log10(factor)).epsilon(1e-12));
  CHECK(kim2021_inf(layer, 2).log10_value() ==
        Approx(4.0 * shift + std::log10(2.1138581710443)).epsilon(1e-12));
  CHECK(two.value() == (shift > 0.0 ? std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::denorm_min()));
}

TEST_CASE("The bounds of tied L2 attention are above |J(X)| for every shape and mask", "[bounds]") {
  const auto shape = GENERATE(from_range(test::shapes));
  const auto seed = GENERATE(range(1U, 6U));
  CAPTURE(shape, seed);
  Rng rng(seed);
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, shape);
  const Matrix x = rng.uniform(0.1, 3.0) * normal_matrix(rng, shape.n, shape.D);
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, shape.n)}) {
    CAPTURE(to_string(mask.kind()));
    const Jacobian jacobian(layer, x, mask);
    CHECK(jacobian.norm_inf().value <= sharp_l2_inf(layer, shape.n).value());
    CHECK(dense_norm(jacobian.dense()) <= kim2021_2(layer, shape.n).value());
  }
}

TEST_CASE("kim2021: refuses another kind of attention and no tokens", "[bounds]") {
  const MultiHead layer = test::unit_layer(AttentionKind::dot);
  CHECK_THROWS_WITH(kim2021_inf(layer, 2), "kim2021_inf: layer must be of kind l2, got dot");
  CHECK_THROWS_WITH(kim2021_2(test::unit_layer(AttentionKind::l2), 0),
                    "kim2021_2: tokens must be at least 1, got 0");
}

}  // namespace
}  // namespace lipsa
