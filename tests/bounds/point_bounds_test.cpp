/// \file
/// The golden layers of the catalogue of bounds, at a point, around it and on the ball it spans.
#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
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

}  // namespace
}  // namespace lipsa
