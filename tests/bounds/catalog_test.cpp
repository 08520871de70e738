#include "lipsa/bounds/catalog.hpp"

#include <Eigen/SVD>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/kim2021.hpp"
#include "lipsa/bounds/sharp_l2.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

Mask hiding_self(Index n, Index token) {
  Mask::Visible visible = Mask::Visible::Constant(n, n, true);
  visible(token, token) = false;
  return Mask::arbitrary(std::move(visible));
}

TEST_CASE("catalog: names are unique and every entry is documented", "[bounds]") {
  std::set<std::string_view> names;
  for (const CatalogEntry& entry : catalog()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK_FALSE(entry.name.empty());
    CHECK_FALSE(entry.statement.empty());
    CHECK((!entry.proof.empty() || !entry.refutation.empty()));
    CHECK_FALSE(entry.source.empty());
    CHECK((entry.kind != BoundKind::misapplied || !entry.refutation.empty()));
    CHECK(entry.formula != nullptr);
    CHECK(&find_entry(entry.name) == &entry);
  }
}

TEST_CASE("catalog: the order is that of the files and of the entries in them", "[bounds]") {
  const std::vector<std::string_view> expected{"castin2024_ball",
                                               "castin2024_mean_field",
                                               "castin2024_mean_field_causal",
                                               "castin2024_code",
                                               "dot_ball_2_sum",
                                               "dot_ball_2_concat",
                                               "dot_ball_triangle_2",
                                               "dot_ball_max_token_sum",
                                               "dot_ball_max_token_concat",
                                               "dot_ball_inf",
                                               "dot_ball_1",
                                               "dot_point_2",
                                               "havens2024_point",
                                               "havens2024_point_centred",
                                               "havens2024_from_point",
                                               "hu2024_specformer",
                                               "hu2024_specformer_printed",
                                               "kim2021_inf",
                                               "kim2021_inf_printed",
                                               "kim2021_2",
                                               "kim2021_2_printed",
                                               "kim2021_inf_without_A",
                                               "kim2021_inf_untied",
                                               "l2_2_sum",
                                               "l2_2_concat",
                                               "l2_2_fused",
                                               "l2_2_interpolated",
                                               "l2_max_token_sum",
                                               "l2_max_token_concat",
                                               "l2_inf_rows",
                                               "l2_1_columns",
                                               "large2024_unit",
                                               "newhouse2025",
                                               "newhouse2025_eq23",
                                               "layer_norm_2",
                                               "layer_norm_max_token",
                                               "layer_norm_1",
                                               "layer_norm_inf",
                                               "rms_norm_2",
                                               "rms_norm_max_token",
                                               "rms_norm_1",
                                               "rms_norm_inf",
                                               "dot_not_lipschitz_1",
                                               "dot_not_lipschitz_2",
                                               "dot_not_lipschitz_inf",
                                               "l2_untied_not_lipschitz_1",
                                               "l2_untied_not_lipschitz_2",
                                               "l2_untied_not_lipschitz_inf",
                                               "qi2023_cosine",
                                               "nair2025_cosine",
                                               "cosine_2",
                                               "cosine_max_token",
                                               "ramapuram2025_ball",
                                               "ramapuram2025_point",
                                               "sharp_l2_inf",
                                               "softmax_half_1",
                                               "softmax_half_2",
                                               "softmax_half_inf",
                                               "softmax_gao2017",
                                               "softmax_quarter",
                                               "softmax_secular_2",
                                               "softmax_yudin2025_2",
                                               "softmax_trace_2",
                                               "softmax_nair2025_1",
                                               "softmax_nair2025_inf",
                                               "yudin2025_point",
                                               "yudin2025_ball"};
  std::vector<std::string_view> names;
  for (const CatalogEntry& entry : catalog()) {
    names.push_back(entry.name);
  }
  CHECK(names == expected);
}

TEST_CASE("find_entry: an unknown name is refused with those there are", "[bounds]") {
  CHECK_THROWS_WITH(find_entry("kim2021"),
                    Catch::StartsWith("find_entry: name must be one of "
                                      "castin2024_ball, castin2024_mean_field, ") &&
                        Catch::EndsWith("yudin2025_ball, got 'kim2021'"));
}

TEST_CASE("bounds_for: what the catalogue says of tied L2 attention", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  layer.W_Q(0, 0) = 5.0;
  const Mask mask = Mask::causal();
  const BoundSetting setting{layer, mask, 2};

  const auto inf = bounds_for(setting, Norm::inf);
  REQUIRE(inf.size() == 4);
  CHECK(inf[0].name == "kim2021_inf");
  CHECK(inf[0].holds);
  CHECK(inf[0].value == kim2021_inf(layer, 2).value());
  CHECK(inf[0].log10_value == kim2021_inf(layer, 2).log10_value());
  CHECK(inf[1].value == kim2021_inf(layer, 2, PhiInverse::as_printed).value());
  CHECK(inf[3].value == sharp_l2_inf(layer, 2).value());
  CHECK(best_bound(setting, Norm::inf).name == "sharp_l2_inf");

  const auto two = bounds_for(setting, Norm::two);
  REQUIRE(two.size() == 6);
  CHECK(two[0].kind == BoundKind::corrected);
  CHECK_FALSE(two[1].holds);
  CHECK(two[1].kind == BoundKind::as_printed);
  CHECK(two[1].value == kim2021_2_printed(layer, 2).value());
  CHECK(two[1].refuted);
  CHECK_THAT(two[1].reason, Catch::StartsWith("refuted: "));
  CHECK(best_bound(setting, Norm::two).name == "l2_2_sum");
  CHECK(best_bound(setting, Norm::one).name == "l2_1_columns");
}

TEST_CASE("CatalogEntry: a layer outside the theorem gets no number", "[bounds]") {
  const Mask open = Mask::none();
  const Mask hiding = hiding_self(3, 1);
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  for (const CatalogEntry& entry : catalog()) {
    if (entry.attention != AttentionKind::l2) {
      continue;
    }
    CAPTURE(entry.name);
    const auto reason = [&](const BoundSetting& setting) {
      const Bound bound = entry.evaluate(setting);
      CHECK_FALSE(bound.holds);
      CHECK(std::isnan(bound.value));
      CHECK(std::isnan(bound.log10_value));
      return bound.reason;
    };
    CHECK(reason({layer, hiding, 3}) == "token 1 sees other tokens and not itself");
    CHECK(reason({test::unit_layer(AttentionKind::dot), open, 3}) ==
          "it speaks of l2 attention, the layer is dot");
    CHECK(reason({test::unit_layer(AttentionKind::l2_untied), open, 3}) ==
          "it speaks of l2 attention, the layer is l2-untied");
    if (entry.name.ends_with("_printed")) {
      MultiHead scaled = layer;
      scaled.scale = 0.5;
      CHECK(reason({scaled, open, 3}) == "it is printed for the scale 1/sqrt(d)");
    }
  }
  const Bound best = best_bound({layer, hiding, 3}, Norm::inf);
  CHECK_FALSE(best.holds);
  CHECK(best.reason ==
        "no bound of the catalogue holds; kim2021_inf: token 1 sees other tokens and not itself; "
        "kim2021_inf_printed: token 1 sees other tokens and not itself; "
        "l2_inf_rows: token 1 sees other tokens and not itself; "
        "sharp_l2_inf: token 1 sees other tokens and not itself");
}

TEST_CASE("CatalogEntry: a blind token and zero weights are within the theorems", "[bounds]") {
  Mask::Visible visible = Mask::Visible::Constant(9, 9, false);
  visible.matrix().diagonal().setConstant(true);
  visible(0, 0) = false;
  visible(4, 5) = true;
  const Mask mask = Mask::arbitrary(visible);
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  const Bound sharp = find_entry("sharp_l2_inf").evaluate({layer, mask, 9});
  CHECK(sharp.holds);
  CHECK(sharp.value == sharp_l2_inf(layer, 2).value());  // no token sees more than two
  layer.W_V.setZero();
  const Bound zero = best_bound({layer, mask, 9}, Norm::two);
  CHECK(zero.holds);
  CHECK(zero.value == 0.0);
  CHECK(zero.log10_value == -std::numeric_limits<double>::infinity());
}

TEST_CASE("best_bound: compares by logarithm where values overflow", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  layer.W_Q(0, 0) = 1e300;
  const Mask mask = Mask::none();
  const Bound best = best_bound({layer, mask, 100}, Norm::inf);
  CHECK(best.name == "sharp_l2_inf");
  CHECK(best.value == std::numeric_limits<double>::infinity());
  CHECK(best.log10_value == Approx(600.0 + std::log10(10.0948316)).epsilon(1e-9));
}

TEST_CASE("BoundSetting: refuses what is no setting", "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  const Mask open = Mask::none();
  const Mask three = hiding_self(3, 0);
  CHECK_THROWS_WITH(bounds_for({layer, open, 0}, Norm::inf),
                    "BoundSetting: tokens must be at least 1, got 0");
  CHECK_THROWS_WITH(bounds_for({layer, three, 4}, Norm::inf),
                    "BoundSetting: mask must be made for 4 tokens, got 3");
  CHECK_THROWS_WITH(best_bound({layer, open, 4, 0.0}, Norm::inf),
                    "BoundSetting: radius must be positive, got 0");
  CHECK_THROWS_AS(best_bound({layer, open, 4, std::nan("")}, Norm::inf), std::invalid_argument);
  layer.W_V(0, 0) = std::nan("");
  CHECK_THROWS_WITH(find_entry("kim2021_inf").evaluate({layer, open, 4}),
                    Catch::Contains("W_V must be finite"));
}

TEST_CASE("best_bound: what is known from X alone is no constant of the ball around it",
          "[bounds]") {
  // |J| reaches 19.98 at |X'|_F = 1, and pairs with X = 0 have ratios of at most 11.
  const Matrix eye = Matrix::Identity(2, 2);
  const MultiHead layer{.W_Q = Matrix{{-19.186470068907685, -5.616050405591661},
                                      {-5.610500196479284, 19.195092331012805}},
                        .W_K = eye,
                        .W_V = eye,
                        .W_O = eye,
                        .scale = 1.0};
  const Mask mask = Mask::none();
  const Matrix centre = Matrix::Zero(2, 2);
  const Matrix x{{0.5575483931, -0.4190551655}, {-0.5737192046, 0.4293935629}};
  REQUIRE(x.norm() < 1.0001);
  const BoundSetting ball{
      .layer = layer, .mask = mask, .tokens = 2, .x = &centre, .around = 1.0001};
  const double norm = Jacobian(layer, x).dense().jacobiSvd().singularValues()(0);
  const Bound from = find_entry("havens2024_from_point").evaluate(ball);
  CHECK(from.holds);
  CHECK(from.value < norm);
  const Bound best = best_bound(ball, Norm::two);
  CHECK(best.domain == Domain::around_point);
  CHECK(best.value >= norm);
}

TEST_CASE("BoundSetting: a token outside the radius by any amount is refused", "[bounds]") {
  // At n = D = 1 the bound of sigmoid attention is attained, so that no slack would be sound.
  const Matrix one = Matrix::Ones(1, 1);
  const MultiHead layer{.kind = AttentionKind::sigmoid,
                        .W_Q = one,
                        .W_K = one,
                        .W_V = one,
                        .scale = 1.0,
                        .score_bias = -5.0};
  const Mask mask = Mask::none();
  const Matrix x = Matrix::Constant(1, 1, 1.0 + 9e-10);
  CHECK_THROWS_WITH(best_bound({layer, mask, 1, 1.0, &x}, Norm::two),
                    Catch::Contains("radius must hold for the tokens of x"));
  const Matrix inside = one;
  const Bound bound = find_entry("ramapuram2025_ball").evaluate({layer, mask, 1, 1.0, &inside});
  CHECK(bound.holds);
  CHECK(bound.value >= Jacobian(layer, inside).dense()(0, 0));
}

TEST_CASE("CatalogEntry: tokens too large for squares of products leave the other bounds alone",
          "[bounds]") {
  const MultiHead layer = test::unit_layer(AttentionKind::dot);
  const Mask mask = Mask::none();
  const Matrix x{{1e308}, {-1e308}};
  const BoundSetting setting{layer, mask, 2, 1.1e308, &x};
  CHECK(find_entry("yudin2025_point").evaluate(setting).reason ==
        "a coordinate of X is above 1e100");
  CHECK(find_entry("castin2024_ball").evaluate(setting).holds);
  CHECK(find_entry("castin2024_mean_field").evaluate(setting).log10_value ==
        std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace lipsa
