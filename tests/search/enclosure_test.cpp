#include "lipsa/search/enclosure.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/lambert.hpp"
#include "lipsa/linalg/norms.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

TEST_CASE("enclose_local_norm: holds the norm of the Jacobian, and is narrow", "[search]") {
  const auto kind = GENERATE(from_range(test::kinds));
  const auto which = GENERATE(Mask::Kind::none, Mask::Kind::causal, Mask::Kind::arbitrary);
  const bool plain = GENERATE(false, true);
  for (const test::Shape& shape : {test::Shape{1, 3, 2, 2, 4, 3}, test::Shape{2, 1, 1, 1, 1, 1},
                                   test::Shape{5, 4, 2, 3, 1, 4}, test::Shape{7, 2, 3, 5, 2, 6}}) {
    Rng rng(94, static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(which));
    MultiHead layer = test::random_layer(rng, kind, shape, !plain);
    if (plain) {
      layer.W_O = {};
      layer.scale = 0.37;
    }
    const Mask mask = which == Mask::Kind::none     ? Mask::none()
                      : which == Mask::Kind::causal ? Mask::causal()
                                                    : test::random_mask(rng, shape.n);
    const Matrix x = normal_matrix(rng, shape.n, shape.D);
    CAPTURE(shape, to_string(kind), to_string(which), plain);
    const Jacobian jacobian(layer, x, mask);
    const Enclosure inf = enclose_local_norm(layer, x, mask, Norm::inf);
    const Enclosure one = enclose_local_norm(layer, x, mask, Norm::one);
    CHECK(inf.upper - inf.lower <= 4e-16 * inf.upper);
    CHECK(one.upper - one.lower <= 4e-16 * one.upper);
    CHECK(jacobian.norm_inf().value == Approx(inf.lower).epsilon(1e-13));
    CHECK(jacobian.norm_1().value == Approx(one.lower).epsilon(1e-13));
    const Enclosure rough = enclose_local_norm(layer, x, mask, Norm::inf, 32);
    CHECK(rough.lower <= inf.lower);
    CHECK(rough.upper >= inf.upper);
  }
}

TEST_CASE("enclose_local_norm: a value that is known", "[search]") {
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  layer.W_Q(0, 0) = 5.0;
  const Enclosure norm = enclose_local_norm(layer, Matrix::Zero(2, 1), Mask::none(), Norm::inf);
  CHECK(norm.lower == 25.0);  // J = 25/2 in each entry
  CHECK(norm.upper == 25.0);
  CHECK_THROWS_WITH(enclose_local_norm(layer, Matrix::Zero(2, 1), Mask::none(), Norm::two),
                    Contains("norm must be 1 or inf, got 2"));
  CHECK_THROWS_WITH(enclose_local_norm(layer, Matrix::Zero(2, 2), Mask::none(), Norm::inf),
                    Contains("x must be finite with at least one row and 1 columns, got 2 x 2"));
  CHECK_THROWS_AS(enclose_local_norm(layer, Matrix::Zero(2, 1), Mask::none(), Norm::inf, 8),
                  std::invalid_argument);
}

TEST_CASE("enclose_local_norm: cosine and sigmoid values that are known", "[search]") {
  MultiHead cosine = test::unit_layer(AttentionKind::cosine);
  cosine.epsilon = 0.25;
  const Enclosure at_zero = enclose_local_norm(cosine, Matrix::Zero(2, 1), Mask::none(), Norm::inf);
  CHECK(at_zero.lower == 2.0);  // 1/√ε, half from each token
  CHECK(at_zero.upper == 2.0);

  MultiHead sigmoid = test::unit_layer(AttentionKind::sigmoid);
  sigmoid.score_bias = -65536.0;
  const Matrix x = Matrix::Constant(1, 1, 256.0);  // S + β = 0: P = 1/2 and P' = 1/4
  const Enclosure half = enclose_local_norm(sigmoid, x, Mask::none(), Norm::one);
  CHECK(half.lower == 32768.5);
  CHECK(half.upper == 32768.5);
  sigmoid.score_bias = 1e5;
  const Enclosure full = enclose_local_norm(sigmoid, x, Mask::none(), Norm::one);
  CHECK(full.lower > 1.0 - 1e-15);
  CHECK(full.upper < 1.0 + 1e-15);
  sigmoid.score_bias = -65536.0 - 500.0;
  const Enclosure little = enclose_local_norm(sigmoid, x, Mask::none(), Norm::one);
  CHECK(little.lower == Approx(131073.0 * std::exp(-500.0)).epsilon(1e-13));
  CHECK(little.upper <= std::nextafter(little.lower, 1.0));
}

TEST_CASE("certify_spectral_norm: says yes above the norm and no below", "[search]") {
  Rng rng(95);
  const auto [rows, cols] =
      GENERATE(table<Index, Index>({{1, 1}, {1, 7}, {5, 5}, {9, 4}, {3, 20}, {40, 40}}));
  const double size = GENERATE(1.0, 1e-200, 1e200);
  const Matrix w = size * normal_matrix(rng, rows, cols);
  CAPTURE(rows, cols, size);
  const double above = certified_upper_bound_spectral_norm(w);
  // Where the norm is a double, 1 × 1, it is its own bound.
  CHECK(certify_spectral_norm(w, std::nextafter(above, std::numeric_limits<double>::infinity())));
  CHECK_FALSE(certify_spectral_norm(w, above * (1.0 - 1e-12)));
  CHECK_FALSE(certify_spectral_norm(w, above * (1.0 - 1e-3)));
  CHECK_FALSE(certify_spectral_norm(w, 0.0));
  CHECK(certify_spectral_norm(w, above * 2.0));
  CHECK(above <= upper_bound_spectral_norm(w) * (1.0 + 1e-12));
}

TEST_CASE("certified_upper_bound_spectral_norm: no step of the ladder is taken on trust",
          "[search]") {
  Rng rng(97);
  for (int trial = 0; trial < 300; ++trial) {
    const Matrix w = Matrix::Identity(9, 6) + 1e-3 * normal_matrix(rng, 9, 6);
    const double above = certified_upper_bound_spectral_norm(w);
    CHECK(certify_spectral_norm(w, std::nextafter(above, 10.0)));
    CHECK_FALSE(certify_spectral_norm(w, above * (1.0 - 1e-11)));
  }
}

TEST_CASE("certify_spectral_norm: norms that are known (case A7)", "[search]") {
  const auto [a, b, norm] =
      GENERATE(table<double, double, double>({{2, 2, 2}, {1, -1, 1}, {4, 1, 4}}));
  const Matrix w = Eigen::Vector2d(a, b).asDiagonal();
  CHECK(certify_spectral_norm(w, std::nextafter(norm, 10.0)));
  CHECK_FALSE(certify_spectral_norm(w, norm));  // it is not below itself
  CHECK_FALSE(certify_spectral_norm(w, std::nextafter(norm, 0.0)));
  CHECK(certified_upper_bound_spectral_norm(w) <= norm * (1.0 + 1e-14));
  const Matrix zero = Matrix::Zero(2, 2);
  CHECK(certified_upper_bound_spectral_norm(zero) == 0.0);
  CHECK(certified_upper_bound_spectral_norm(Matrix(0, 3)) == 0.0);
  CHECK(certify_spectral_norm(zero, std::numeric_limits<double>::denorm_min()));
  CHECK_THROWS_AS(certify_spectral_norm(w, std::numeric_limits<double>::infinity()),
                  std::invalid_argument);
}

TEST_CASE("enclose_phi_inverse: golden values", "[search]") {
  const auto [n, value, digits] = GENERATE(table<double, double, double>({
      {2, 0.27846454276107, 1e-14},
      {10, 1.10100, 1e-5},
      {100, 2.62865, 1e-5},
      {1000, 4.42050, 1e-5},
      {1e308, 701.64278422203517, 1e-13},
  }));
  CAPTURE(n);
  const Enclosure c = enclose_phi_inverse(n - 1.0);
  CHECK(c.lower == Approx(value).margin(digits));
  CHECK(c.upper == std::nextafter(c.lower, 1e9));
  CHECK(upper_bound_phi_inverse(n - 1.0) >= c.upper);
  CHECK(upper_bound_phi_inverse(n - 1.0) <= c.upper * (1.0 + 16 * 2.3e-16));
}

TEST_CASE("enclose_lambert_w: holds the estimate and lies below the upper bound", "[search]") {
  const double y = GENERATE(1e-300, 1e-8, 0.1, 1.0, 2.718281828459045, 1e10, 1e308);
  CAPTURE(y);
  const Enclosure w = enclose_lambert_w(y);
  CHECK(w.lower < w.upper);
  CHECK(w.upper <= std::nextafter(std::nextafter(w.lower, 1e9), 1e9));
  CHECK(lambert_w(y) == Approx(w.lower).epsilon(1e-14));
  CHECK(upper_bound_lambert_w(y) >= w.upper);
  CHECK(enclose_lambert_w(0.0).lower == 0.0);
  CHECK(enclose_lambert_w(0.0).upper == 0.0);
  CHECK_THROWS_AS(enclose_lambert_w(-1.0), std::invalid_argument);
  CHECK_THROWS_AS(enclose_phi_inverse(std::numeric_limits<double>::infinity()),
                  std::invalid_argument);
}

TEST_CASE("certified_bound: lies at or below the value of the catalogue, and close to it",
          "[search]") {
  const std::string name =
      GENERATE("kim2021_inf", "kim2021_inf_printed", "kim2021_2", "kim2021_2_printed",
               "sharp_l2_inf", "l2_2_sum", "castin2024_ball", "castin2024_mean_field",
               "dot_ball_2_sum", "dot_ball_max_token_sum", "cosine_max_token");
  const auto which = GENERATE(Mask::Kind::none, Mask::Kind::causal, Mask::Kind::arbitrary);
  const bool plain = GENERATE(false, true);
  const double size = GENERATE(1.0, 1e-30, 1e30);
  const CatalogEntry& entry = find_entry(name);
  for (const test::Shape& shape : test::shapes) {
    Rng rng(96, static_cast<std::uint64_t>(which));
    MultiHead layer = test::random_layer(rng, entry.attention, shape, !plain);
    layer.W_Q *= size;
    if (plain) {
      layer.W_O = {};
    }
    if (plain && entry.kind != BoundKind::as_printed) {
      layer.scale = 0.37;
    }
    if (name.rfind("castin", 0) == 0) {
      layer.b_Q = {};
    }
    const Mask mask = which == Mask::Kind::none     ? Mask::none()
                      : which == Mask::Kind::causal ? Mask::causal()
                                                    : test::random_mask(rng, shape.n);
    CAPTURE(shape, name, to_string(which), plain, size);
    BoundSetting setting{.layer = layer, .mask = mask, .tokens = shape.n};
    if (entry.domain == Domain::token_ball) {
      CHECK_FALSE(certified_bound(setting, name));
      setting.radius = 0.8;
    }
    const auto certified = certified_bound(setting, name);
    const double value = entry.evaluate(setting).value;
    if (std::isnan(value)) {  // the mean field has no masks
      CHECK(name == "castin2024_mean_field");
      CHECK(which != Mask::Kind::none);
      CHECK_FALSE(certified);
      continue;
    }
    REQUIRE(certified);
    CHECK(*certified <= value);
    CHECK(*certified >= value * (1.0 - 1e-9));
  }
}

TEST_CASE("certified_bound: numbers of tokens that random layers do not have", "[search]") {
  const Index n = GENERATE(1, 2, 3, 7, 8, 9, 30, 100, 200, 300, 1000, 1000000, 100000000);
  const Mask mask = GENERATE(Mask::none(), Mask::causal());
  const MultiHead l2 = test::unit_layer(AttentionKind::l2);
  const MultiHead dot = test::unit_layer(AttentionKind::dot);
  for (const std::string name : {"l2_2_sum", "dot_ball_2_sum", "castin2024_ball"}) {
    CAPTURE(n, to_string(mask.kind()), name);
    const BoundSetting setting{
        .layer = name[0] == 'l' ? l2 : dot, .mask = mask, .tokens = n, .radius = 0.5};
    const double certified = certified_bound(setting, name).value();
    const double value = find_entry(name).evaluate(setting).value;
    CHECK(certified <= value * (1.0 + 1e-15));  // which may be exact here
    // For causal masks the catalogue adds up a harmonic sum of a million terms at most.
    const bool harmonic = name[0] == 'd' && mask.kind() == Mask::Kind::causal && n > 1000000;
    CHECK(certified >= value * (1.0 - (harmonic ? 0.02 : 1e-9)));
  }
}

TEST_CASE("certified_bound: golden values, and what it does not speak of", "[search]") {
  const MultiHead unit = test::unit_layer(AttentionKind::l2);
  const Mask mask = Mask::none();
  const auto at = [&](Index n, std::string_view name) {
    return certified_bound({.layer = unit, .mask = mask, .tokens = n}, name).value();
  };
  CHECK(at(3, "sharp_l2_inf") == Approx(2.2922442926812865).epsilon(1e-15));
  CHECK(at(1000, "sharp_l2_inf") == Approx(17.065500077261127).epsilon(1e-15));
  CHECK(at(100, "kim2021_inf") == Approx(11.515).margin(5e-4));
  CHECK(at(100, "kim2021_2") == Approx(115.146).margin(5e-4));
  CHECK(at(1, "kim2021_2") == 1.0);
  CHECK(at(1000, "l2_2_sum") == Approx(58.410).margin(5e-4));
  CHECK(at(16, "l2_2_sum") == Approx(9.575).margin(5e-4));
  CHECK(at(2, "l2_2_sum") == Approx(2.303).margin(5e-4));

  MultiHead dot = test::unit_layer(AttentionKind::dot);
  dot.b_Q = Vector::Constant(1, 1.0);
  const BoundSetting ball{.layer = dot, .mask = mask, .tokens = 100, .radius = 0.5};
  // t = 1/4, r = 1/4 + 1/2, c = exp(3/2)
  CHECK(certified_bound(ball, "dot_ball_2_sum").value() ==
        Approx(0.25 + 1.25 * std::exp(0.75)).epsilon(1e-15));
  CHECK(certified_bound(ball, "dot_ball_max_token_sum").value() == Approx(1.5).epsilon(1e-15));
  CHECK_FALSE(certified_bound(ball, "castin2024_ball"));
  dot.b_Q = {};
  CHECK(certified_bound(ball, "castin2024_ball").value() ==
        Approx(std::sqrt(3.0 * (401.0 / 16.0 + 100.0))).epsilon(1e-15));
  CHECK(certified_bound(ball, "castin2024_mean_field").value() ==
        Approx(1.75 * std::exp(0.5)).epsilon(1e-15));

  const BoundSetting setting{.layer = unit, .mask = mask, .tokens = 3};
  CHECK(certified_bound(setting, "kim2021_2_printed").value() ==
        Approx(std::sqrt(3.0) * (1.0 + 4.0 * lambert_w(3.0 / std::exp(1.0)))).epsilon(1e-14));
  CHECK_FALSE(certified_bound(setting, "l2_2_concat"));
  CHECK_FALSE(certified_bound(setting, "dot_not_lipschitz_2"));
  CHECK_THROWS_AS(certified_bound(setting, "kim"), std::invalid_argument);
  CHECK_FALSE(certified_bound({.layer = dot, .mask = mask, .tokens = 3}, "sharp_l2_inf"));
  Mask::Visible others = Mask::Visible::Constant(3, 3, true);
  others(1, 1) = false;
  const Mask hidden = Mask::arbitrary(others);
  CHECK_FALSE(certified_bound({.layer = unit, .mask = hidden, .tokens = 3}, "sharp_l2_inf"));
}

}  // namespace
}  // namespace lipsa
