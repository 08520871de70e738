/// \file
/// The golden layers of the catalogue of bounds, at a point, around it and on the ball it spans.
#include <catch2/catch.hpp>
#include <cmath>

#include "dense_norms.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/bounds/havens2024.hpp"
#include "lipsa/bounds/hu2024.hpp"
#include "lipsa/bounds/yudin2025.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

/// One head with the scores x_iᵀ A x_j and the values X V.
MultiHead head_of(const Matrix& a, const Matrix& v) {
  return {.W_Q = a, .W_K = Matrix::Identity(a.cols(), a.cols()), .W_V = v, .scale = 1.0};
}

struct Golden {
  MultiHead layer{};
  Matrix x{};
  double norm = 0.0;
  double norm_causal = 0.0;
  double yudin = 0.0;
  double yudin_causal = 0.0;
  double fine = 0.0;
  double fine_causal = 0.0;
  double castin = 0.0;
  double mean_field = 0.0;
  double triangle = 0.0;
  double specformer = 0.0;
};

Golden first() {
  return {.layer = head_of(Matrix{{1.0, 0.5}, {-0.5, 1.0}}, Matrix::Identity(2, 2)),
          .x = Matrix{{1.0, 0.0}, {0.0, 1.0}, {-1.0, 0.5}},
          .norm = 1.5922516210136985,
          .norm_causal = 1.4024768624702837,
          .yudin = 3.300267234825527,
          .yudin_causal = 2.8185644185346366,
          .fine = 3.300267234825527,
          .fine_causal = 2.75451995376645,
          .castin = 9.22886098064111,
          .mean_field = 84.97225529071228,
          .triangle = 5.550207884885882,
          .specformer = 46.603325561245896};
}

Golden second() {
  return {
      .layer = head_of(Vector{{1.0, -0.5, 0.25, -1.0}}.asDiagonal(),
                       Matrix{{1, 2, 0, 0}, {0, 1, 0, -1}, {.5, 0, 1, 0}}.transpose()),
      .x =
          Matrix{
              {1, 0, .5, -.5}, {0, 1, -1, .25}, {.5, .5, .5, .5}, {-1, 0, 0, 1}, {.25, -.75, 1, 0}},
      .norm = 2.5220422081845464,
      .norm_causal = 3.537975868471014,
      .yudin = 10.016465732272577,
      .yudin_causal = 14.039052665261352,
      .fine = 6.597367941278859,
      .fine_causal = 9.468642859244529,
      .castin = 41.34988126351007,
      .mean_field = 1093.0163083824261,
      .triangle = 21.902015533867566,
      .specformer = 616.0393249836411};
}

double value(const char* name, const BoundSetting& setting) {
  const Bound bound = find_entry(name).evaluate(setting);
  CAPTURE(name, bound.reason);
  CHECK(bound.holds);
  return bound.value;
}

TEST_CASE("bounds at a point: the golden layers, to the digits printed", "[bounds]") {
  const Golden g = GENERATE(first(), second());
  double longest = 0.0;
  for (Index i = 0; i < g.x.rows(); ++i) {
    longest = std::max(longest, upper_bound_norm_frobenius(g.x.row(i)));
  }
  const Mask open = Mask::none();
  const Mask causal = Mask::causal();
  const BoundSetting at{
      .layer = g.layer, .mask = open, .tokens = g.x.rows(), .radius = longest, .x = &g.x};
  const BoundSetting at_causal{
      .layer = g.layer, .mask = causal, .tokens = g.x.rows(), .radius = longest, .x = &g.x};
  const auto close = [](double x) { return Approx(x).epsilon(3e-12); };
  CHECK(spectral_norm(Jacobian(g.layer, g.x)).value == close(g.norm));
  CHECK(spectral_norm(Jacobian(g.layer, g.x, causal)).value == close(g.norm_causal));
  CHECK(value("yudin2025_point", at) == close(g.yudin));
  CHECK(value("yudin2025_point", at_causal) == close(g.yudin_causal));
  CHECK(value("havens2024_point", at) == close(g.fine));
  CHECK(value("havens2024_point", at_causal) == close(g.fine_causal));
  CHECK(value("castin2024_ball", at) == close(g.castin));
  CHECK(value("castin2024_ball", at_causal) == close(g.castin));
  CHECK(value("castin2024_mean_field", at) == close(g.mean_field));
  CHECK(value("dot_ball_triangle_2", at) == close(g.triangle));
  CHECK(value("hu2024_specformer", at) == close(g.specformer));
  for (const Bound& bound : bounds_for(at, Norm::two)) {
    CAPTURE(bound.name, bound.reason);
    CHECK((bound.refuted || bound.value >= g.norm || !bound.holds));
  }
  CHECK(best_bound(at, Norm::two).value >= g.norm);
  CHECK(best_bound(at, Norm::two).value <= g.fine);
}

TEST_CASE("havens2024_weights_term: by hand", "[bounds]") {
  CHECK(havens2024_weights_term(3.0, 4.0, 2.0, 5.0, 7.0, 0.5, 0.25) == UpRounded(17.0));
  CHECK(havens2024_weights_term(3.0, 4.0, 2.0, 5.0, 7.0, 0.0, 0.5) == UpRounded(17.5));
  CHECK(havens2024_weights_term(3.0, 4.0, 2.0, 5.0, 7.0, 9.0, 0.0) == UpRounded(0.0));
}

TEST_CASE("havens2024_from_point: the formula by hand, on tokens with mean zero", "[bounds]") {
  // D = 1, x = (1, -1), A = 2, W = 3, b = s W_K b_Q = 2: XA + b = (4, 0), XAT = (2, -2).
  const MultiHead layer{.W_Q = Matrix{{2.0}},
                        .W_K = Matrix{{1.0}},
                        .W_V = Matrix{{3.0}},
                        .b_Q = Vector::Constant(1, 2.0),
                        .scale = 1.0};
  const Matrix x{{1.0}, {-1.0}};
  const Mask open = Mask::none();
  const double around = GENERATE(0.0, 0.125, 2.0);
  CAPTURE(around);
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 2, .x = &x, .around = around};
  const double root = std::sqrt(2.0);
  const double p = test::dense_norm(Jacobian(layer, x).attention_weights(0));
  CHECK(value("havens2024_from_point", setting) ==
        Approx(3.0 * p + 0.5 * (4.0 + 2.0 * root + 2.0 * around) * (3.0 * root + 3.0 * around))
            .epsilon(1e-12));
}

TEST_CASE("havens2024: attained without scores, heads and values taken together", "[bounds]") {
  Rng rng(4);
  MultiHead layer = test::random_layer(rng, AttentionKind::dot, {5, 3, 3, 2, 2, 4}, false);
  layer.W_Q.setZero();
  const Matrix x = normal_matrix(rng, 5, 3);
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, 5)}) {
    CAPTURE(to_string(mask.kind()));
    const BoundSetting setting{.layer = layer, .mask = mask, .tokens = 5, .x = &x};
    const double norm = test::dense_norm(Jacobian(layer, x, mask).dense());
    CHECK(norm < 0.9 * value("yudin2025_point", setting));  // which adds heads
    for (const char* name :
         {"havens2024_point", "havens2024_point_centred", "havens2024_from_point"}) {
      CAPTURE(name);
      CHECK(value(name, setting) >= norm * (1.0 - test::measurement_error));
      CHECK(value(name, setting) <= norm * (1.0 + 1e-10));
    }
  }
}

TEST_CASE("havens2024: above |J| at X, and what X moves to stays within the bound from X",
          "[bounds]") {
  const auto shape = GENERATE(from_range(test::shapes));
  const auto seed = GENERATE(range(1U, 5U));
  CAPTURE(shape, seed);
  Rng rng(seed, 11);
  const MultiHead layer = test::random_layer(rng, AttentionKind::dot, shape, seed % 2 == 0);
  Matrix x = std::pow(10.0, rng.uniform(-1.0, 0.5)) * normal_matrix(rng, shape.n, shape.D);
  if (seed == 3) {
    x.rowwise() += 10.0 * normal_matrix(rng, 1, shape.D).row(0);
  }
  const double around = std::pow(10.0, rng.uniform(-3.0, 1.0));
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, shape.n)}) {
    CAPTURE(to_string(mask.kind()), around);
    const BoundSetting at{.layer = layer, .mask = mask, .tokens = shape.n, .x = &x};
    const BoundSetting from{
        .layer = layer, .mask = mask, .tokens = shape.n, .x = &x, .around = around};
    const double norm = test::dense_norm(Jacobian(layer, x, mask).dense());
    const double plain = value("havens2024_point", at);
    const double centred = value("havens2024_point_centred", at);
    CHECK(norm <= centred * (1.0 + test::measurement_error));
    CHECK(centred <= plain * (1.0 + 1e-10));
    CHECK(centred <= value("havens2024_from_point", at) * (1.0 + 1e-10));
    const double constant = value("havens2024_from_point", from);
    CHECK(constant >= value("havens2024_from_point", at));
    const Matrix y = attend(layer, x, mask);
    for (int draw = 0; draw < 10; ++draw) {
      Matrix step = normal_matrix(rng, shape.n, shape.D);
      step *= around / step.norm() * (draw % 2 == 0 ? 1.0 : rng.uniform());
      const double gain = (attend(layer, x + step, mask) - y).norm() / step.norm();
      CHECK(gain <= constant * (1.0 + 1e-9));  // differences cancel
    }
    CHECK_FALSE(find_entry("havens2024_point").evaluate(from).holds);
  }
}

}  // namespace
}  // namespace lipsa
