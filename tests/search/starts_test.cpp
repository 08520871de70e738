#include "lipsa/search/starts.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "lipsa/attention/jacobian.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::kinds;
using test::random_layer;
using test::unit_layer;

const NamedTokens& named(const std::vector<NamedTokens>& starts, const std::string& name) {
  for (const NamedTokens& start : starts) {
    if (start.name == name) {
      return start;
    }
  }
  throw std::out_of_range(name);
}

TEST_CASE("analytic_starts: three clusters attain the sharp L2 constant in d dimensions",
          "[search]") {
  const auto [n, d, constant] = GENERATE(table<Index, Index, double>(
      {{3, 1, 2.292244}, {5, 1, 3.107792}, {3, 2, 2.663510}, {5, 2, 3.689902}, {3, 4, 3.194290}}));
  CAPTURE(n, d);
  MultiHead layer{.kind = AttentionKind::l2};
  layer.W_Q = Matrix::Identity(d, d);
  layer.W_V = Matrix::Identity(d, d);
  layer.scale = 1.0;  // the core map itself: z = x, value map I
  const Matrix x = named(analytic_starts(layer, Mask::none(), n), "three-clusters").x;
  CHECK(Jacobian(layer, x).norm_inf().value == Approx(constant).epsilon(1e-6));
}

TEST_CASE("analytic_starts: zero-and-opposite makes dot-product attention grow with R²",
          "[search]") {
  const auto radius = GENERATE(1.0, 1e2, 1e4);
  const MultiHead layer = unit_layer(AttentionKind::dot);
  const Matrix x = named(analytic_starts(layer, Mask::none(), 3, radius), "zero-and-opposite").x;
  const Matrix j = Jacobian(layer, x).dense();
  CHECK(j(0, 0) == Approx(1.0 / 3.0 + 2.0 * radius * radius / 3.0).epsilon(1e-9));
}

TEST_CASE("analytic_starts: the eigenvector start is the extremal input of Castin et al.",
          "[search]") {
  MultiHead layer{.kind = AttentionKind::dot};
  layer.W_Q = Vector(Eigen::Vector2d(2.0, -1.0)).asDiagonal();
  layer.W_K = Matrix::Identity(2, 2);
  layer.W_V = Matrix::Identity(2, 2);
  layer.scale = 1.0;
  const Matrix x = named(analytic_starts(layer, Mask::none(), 5, 1.5), "eigenvector").x;
  Matrix expected = Matrix::Zero(5, 2);
  expected.col(1).setConstant(1.5);
  expected(0, 1) = -1.5;
  CHECK((x.cwiseAbs() - expected.cwiseAbs()).norm() <= 1e-12);
  CHECK(x(0, 1) * x(1, 1) < 0.0);
}

TEST_CASE("analytic_starts: the mirror makes untied L2 attention grow with R²", "[search]") {
  MultiHead layer = unit_layer(AttentionKind::l2_untied);
  layer.W_K *= 0.6;
  const auto norm = [&](double radius) {
    const Matrix x = named(analytic_starts(layer, Mask::none(), 2, radius), "mirror").x;
    return Jacobian(layer, x).norm_inf().value;
  };
  CHECK(norm(1e4) / norm(1e3) == Approx(100.0).epsilon(1e-3));
}

TEST_CASE("analytic_starts: stay in the ball, are finite, and are named apart", "[search]") {
  const auto kind = GENERATE(from_range(kinds));
  const auto causal = GENERATE(false, true);
  CAPTURE(to_string(kind), causal);
  Rng rng(61);
  for (const test::Shape& shape : test::shapes) {
    CAPTURE(shape);
    const MultiHead layer = random_layer(rng, kind, shape);
    const auto starts =
        analytic_starts(layer, causal ? Mask::causal() : Mask::none(), shape.n, 0.5);
    CHECK(starts.empty() == (kind == AttentionKind::cosine || kind == AttentionKind::sigmoid));
    std::set<std::string> names;
    for (const NamedTokens& start : starts) {
      names.insert(start.name);
      CHECK(start.x.rows() == shape.n);
      CHECK(start.x.rowwise().norm().maxCoeff() <= 0.5);
    }
    CHECK(names.size() == starts.size());
  }
}

TEST_CASE("probe_token: the first of tokens that may be permuted, the last of causal l2",
          "[search]") {
  for (const AttentionKind kind : kinds) {
    CAPTURE(to_string(kind));
    CHECK(probe_token(kind, Mask::none(), 5) == 0);
    CHECK(probe_token(kind, Mask::causal(), 5) == (kind == AttentionKind::l2 ? 4 : -1));
  }
}

TEST_CASE("project_to_ball: inside with rounding covered, no further than needed", "[search]") {
  const auto D = GENERATE(Index{1}, Index{2}, Index{1024}, Index{4096});
  const auto radius = GENERATE(1e-300, 1.0, 1e300);
  CAPTURE(D, radius);
  Rng rng(62);
  Matrix x = normal_matrix(rng, 4, D) * (radius / std::sqrt(static_cast<double>(D)));
  x.row(0).setConstant(2.0 * radius / std::sqrt(static_cast<double>(D)));
  x.row(1) *= 1e-3;
  const Matrix before = x;
  project_to_ball(x, radius);
  CHECK(x.row(1) == before.row(1));
  for (Index i = 0; i < 4; ++i) {
    long double square = 0.0L;
    for (Index a = 0; a < D; ++a) {
      const auto scaled = static_cast<long double>(x(i, a)) / static_cast<long double>(radius);
      square += scaled * scaled;
    }
    CHECK(square <= 1.0L);
  }
  CHECK(x.row(0).stableNorm() >= radius * (1.0 - 1e-11));
}

TEST_CASE("analytic_starts: weights of zero give none, or finite ones", "[search]") {
  for (const AttentionKind kind : kinds) {
    MultiHead layer = unit_layer(kind);
    layer.W_Q.setZero();
    layer.W_K.setZero();
    for (const NamedTokens& start : analytic_starts(layer, Mask::none(), 4)) {
      CHECK(start.x.allFinite());
    }
  }
}

}  // namespace
}  // namespace lipsa
