#include "lipsa/invert/inverse.hpp"

#include <Eigen/LU>
#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/core/parallel.hpp"
#include "lipsa/model/initial_weights.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using Catch::Contains;
using test::Shape;
using test::vec;

/// f(x) = x B on rows, or any other in one line.
ResidualMap linear(const Matrix& b, double contraction = std::nan("")) {
  return {.branch = [b](const ConstMatrixRef& x) -> Matrix { return x * b; },
          .contraction = contraction};
}

const std::vector<Shape> square_shapes{{1, 3, 2, 2, 4, 3}, {2, 1, 1, 1, 1, 1}, {5, 4, 2, 3, 1, 4},
                                       {1, 1, 1, 1, 1, 1}, {3, 6, 3, 2, 2, 6}, {40, 2, 2, 1, 2, 2}};

TEST_CASE("invert: contractive attention comes back to 1e-10, within the bound it states",
          "[invert]") {
  const auto shape = GENERATE(from_range(square_shapes));
  const auto divisor = GENERATE("kim2021", "sharp", "two");
  const auto c = GENERATE(0.5, 0.9);
  const auto depth = GENERATE(0, 3);
  CAPTURE(shape, divisor, c, depth);
  Rng rng(1);
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, shape);
  std::vector<Matrix> inputs{normal_matrix(rng, shape.n, shape.D),
                             Matrix::Constant(shape.n, shape.D, 3.0),
                             Matrix::Zero(shape.n, shape.D), normal_matrix(rng, shape.n, shape.D)};
  inputs.back().row(0) *= 1e3;
  for (const Mask& mask : {Mask::none(), Mask::causal()}) {
    const auto g =
        ResidualAttention::contractive(layer, shape.n, {.factor = c, .divisor = divisor}, mask);
    for (const Matrix& x : inputs) {
      const Matrix y = g.forward(x);
      const Inverse back = invert(g, y, {.anderson = depth});
      CAPTURE(x, back.error_upper_bound, back.iterations);
      CHECK((back.termination == InverseTermination::converged ||
             back.termination == InverseTermination::stalled));
      const double error = (back.x - x).cwiseAbs().maxCoeff();
      CHECK(error <= 1e-10);
      CHECK(back.error_upper_bound >= 0.0);
      // Worst-case rounding, of scores as large as tokens, times 1/(1 − c).
      CHECK(back.error_upper_bound <= 2e-12 * (1.0 + x.cwiseAbs().maxCoeff()));
      // x is the inverse of g(x), and y is it within rounding, which the bound of x covers.
      CHECK(error <= back.error_upper_bound + upper_bound_inverse_error(g, x, y));
      CHECK(static_cast<std::size_t>(back.iterations) == back.steps.size());
    }
  }
}

TEST_CASE("upper_bound_inverse_error: sees a planted error, in every norm, and is tight",
          "[invert]") {
  const auto divisor = GENERATE("sharp", "two", "l2_1_columns", "l2_max_token_sum");
  CAPTURE(divisor);
  Rng rng(2);
  const Shape shape{5, 4, 2, 3, 2, 4};
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, shape);
  const auto g =
      ResidualAttention::contractive(layer, shape.n, {.factor = 0.5, .divisor = divisor});
  const Matrix x = normal_matrix(rng, shape.n, shape.D);
  const Matrix y = g.forward(x);
  CHECK(upper_bound_inverse_error(g, x, y) < 1e-12);
  const Matrix shift = 1e-3 * normal_matrix(rng, shape.n, shape.D);
  double planted = 0.0;
  switch (g.norm()) {
    case Norm::one:
      planted = shift.cwiseAbs().sum();
      break;
    case Norm::two:
      planted = shift.norm();
      break;
    case Norm::inf:
      planted = shift.cwiseAbs().maxCoeff();
      break;
    case Norm::max_token:
      planted = shift.rowwise().norm().maxCoeff();
      break;
  }
  const double bound = upper_bound_inverse_error(g, x + shift, y);
  CHECK(bound >= planted * (1.0 - 1e-9));
  CHECK(bound <= planted * 3.0 + 1e-9);  // (1 + c)/(1 − c)
}

TEST_CASE("upper_bound_inverse_error: attained where attention is linear, so no percent less holds",
          "[invert]") {
  // One token: F(x) = s w_q² w_v w_o x = −x, and kim2021_inf is exactly 1: g(x) = (1 − c) x.
  MultiHead layer = test::unit_layer(AttentionKind::l2);
  layer.W_O = -Matrix::Ones(1, 1);
  const auto g = ResidualAttention::contractive(layer, 1, {.factor = 0.5});
  const double x =
      upper_bound_inverse_error(g, Matrix::Constant(1, 1, 1.25), Matrix::Constant(1, 1, 0.5));
  CHECK(x >= 0.25);  // g(1) = 0.5
  CHECK(0.99 * x < 0.25);
  const Inverse back = invert(g, Matrix::Constant(1, 1, 0.5), {.max_iterations = 10});
  CHECK(back.termination == InverseTermination::step_limit);
  const double error = std::abs(back.x(0, 0) - 1.0);
  CHECK(error == Approx(std::pow(0.5, 11)).epsilon(1e-9));
  CHECK(back.error_upper_bound >= error);
  CHECK(back.error_upper_bound * 0.99 < error);
  CHECK(back.error_estimate == Approx(error).epsilon(1e-9));
}

TEST_CASE("upper_bound_inverse_error: NaN without a proof, infinite where nothing is known",
          "[invert]") {
  Rng rng(3);
  MultiHead layer = test::random_layer(rng, AttentionKind::l2, {3, 2, 1, 2, 2, 2});
  const Matrix x = normal_matrix(rng, 3, 2);
  const auto undivided = ResidualAttention::undivided(layer, 0.1);
  CHECK(std::isnan(upper_bound_inverse_error(undivided, x, x)));
  CHECK(std::isnan(invert(undivided, x).error_upper_bound));
  const auto g = ResidualAttention::contractive(layer, 3);
  CHECK(std::isinf(upper_bound_inverse_error(g, 1e200 * x, x)));
  CHECK_THROWS_AS(upper_bound_inverse_error(g, x, Matrix::Zero(2, 2)), std::invalid_argument);
  CHECK_THROWS_AS(upper_bound_inverse_error(g, Matrix::Constant(3, 2, NAN), x),
                  std::invalid_argument);
}

TEST_CASE("invert: a linear map as LU inverts it, with a claimed or an observed rate", "[invert]") {
  const auto norm = GENERATE(Norm::one, Norm::two, Norm::inf, Norm::max_token);
  const auto claimed = GENERATE(true, false);
  const auto depth = GENERATE(0, 2, 5);
  CAPTURE(to_string(norm), claimed, depth);
  Rng rng(4);
  Matrix b = normal_matrix(rng, 6, 6);
  b *= 0.8 / b.cwiseAbs().rowwise().sum().maxCoeff();
  b = Matrix(0.5 * (b + b.transpose()));  // then every norm of x ↦ x B is at most 0.8 · 6^½
  b *= 0.7 / b.norm();                    // and that of rows at most 0.7 in the 2-norm
  ResidualMap map = linear(b);
  map.norm = norm;
  const double a = b.cwiseAbs().rowwise().sum().maxCoeff();
  if (claimed && a < 1.0) {
    map.contraction = norm == Norm::two || norm == Norm::max_token ? 0.7 : a;
  }
  const Matrix y = normal_matrix(rng, 3, 6);
  const Matrix exact = y * (Matrix::Identity(6, 6) + b).inverse();
  const Inverse found = invert(map, y, {.tolerance = 1e-11, .anderson = depth});
  CHECK(found.converged());
  CHECK((found.x - exact).cwiseAbs().maxCoeff() < 2e-11);
  CHECK(found.error_estimate <= 1e-11);
  CHECK(found.rate_estimate > 0.0);
  CHECK(found.rate_estimate < 0.8);
  CHECK(std::isnan(found.error_upper_bound));
}

TEST_CASE("invert: the a-posteriori error is attained by f(x) = -a x, which fixes its formula",
          "[invert]") {
  const auto a = GENERATE(0.1, 0.5, 0.9);
  const auto steps = GENERATE(1, 2, 10);
  CAPTURE(a, steps);
  const Matrix y{{1.0 - a}};  // x* = 1
  const Inverse found = invert(linear(Matrix{{-a}}, a), y, {.max_iterations = steps});
  const double error = std::abs(found.x(0, 0) - 1.0);
  CHECK(found.error_estimate == Approx(error).epsilon(1e-10));
  CHECK(found.error_estimate * 0.99 < error);
  CHECK(found.steps.size() == static_cast<std::size_t>(steps));
  const Inverse unclaimed = invert(linear(Matrix{{-a}}), y, {.max_iterations = steps});
  if (steps == 1) {
    CHECK(std::isnan(unclaimed.error_estimate));
    CHECK(std::isnan(unclaimed.rate_estimate));
  } else {
    CHECK(unclaimed.rate_estimate == Approx(a).epsilon(1e-6));  // 1e-16 of steps of 1e-10
    CHECK(unclaimed.error_estimate == Approx(error).epsilon(1e-5));
  }
}

TEST_CASE("invert: a map that is not contractive is found out and stopped, with its rate",
          "[invert]") {  // case D1
  const auto depth = GENERATE(0, 2);
  CAPTURE(depth);
  const Matrix y{{1.0, -2.0}};
  SECTION("growth") {
    const Inverse found = invert(linear(Matrix{{3.0, 1.0}, {0.0, 2.0}}), y);
    CHECK(found.termination == InverseTermination::not_contractive);
    CHECK(found.iterations <= 12);
    CHECK(found.rate_estimate > 2.0);
    CHECK(found.rate_estimate < 4.0);
    CHECK(std::isinf(found.error_estimate));
  }
  SECTION("a rotation, whose steps stay equal") {
    const Inverse found = invert(linear(Matrix{{0.0, 1.0}, {-1.0, 0.0}}), y);
    CHECK(found.termination == InverseTermination::not_contractive);
    CHECK(found.rate_estimate == Approx(1.0));
  }
  SECTION("growth from a start next to the solution") {
    const ResidualMap map{.branch = [](const ConstMatrixRef& x) -> Matrix {
      return 2.0 * (x.array() - 1.0) + 1e-12;
    }};
    const Inverse found = invert(map, Matrix{{1.0, 1.0}});
    CHECK(found.termination == InverseTermination::not_contractive);
    CHECK(found.rate_estimate == Approx(2.0).epsilon(1e-2));
  }
  SECTION("a claim that is false") {
    const Inverse found = invert(linear(Matrix{{-2.0, 0.0}, {0.0, 0.1}}, 0.5), y);
    CHECK(found.termination == InverseTermination::not_contractive);
    CHECK(std::isinf(found.error_estimate));
  }
  SECTION("growth beyond double") {
    const Inverse found = invert(linear(1e60 * Matrix::Identity(2, 2)), y);
    CHECK(found.termination == InverseTermination::not_contractive);
    CHECK(found.iterations <= 7);
  }
  SECTION("dot-product attention far out") {
    const MultiHead layer = initial_layer(parse_initialiser("glorot"), AttentionKind::dot, 8, 2, 1);
    Rng rng(5);
    const auto g = ResidualAttention::undivided(layer, 0.9);
    const Inverse found =
        invert(g, g.forward(10.0 * normal_matrix(rng, 12, 8)), {.anderson = depth});
    CHECK(found.termination == InverseTermination::not_contractive);
    CHECK(found.rate_estimate > 0.5);
    CHECK(found.iterations < 100);
  }
}

TEST_CASE("invert: NaN, infinities and overflow end it, and are named", "[invert]") {
  const Matrix y{{1.0, 2.0}};
  const auto constant = [](double value) {
    return ResidualMap{.branch = [value](const ConstMatrixRef& x) -> Matrix {
      return Matrix::Constant(x.rows(), x.cols(), value);
    }};
  };
  CHECK(invert(constant(std::nan("")), y).termination == InverseTermination::non_finite);
  CHECK(invert(constant(INFINITY), y).termination == InverseTermination::non_finite);
  CHECK(invert(constant(1e308), Matrix{{-1e308}}).termination == InverseTermination::non_finite);
  const auto g = ResidualAttention::undivided(test::unit_layer(AttentionKind::dot), 0.5);
  CHECK(invert(g, Matrix{{1e200}, {-1e200}}).termination == InverseTermination::non_finite);
  const Inverse two = invert(constant(0.5), y);
  CHECK(two.converged());
  CHECK(two.iterations == 2);
  CHECK(two.error_estimate == 0.0);
  CHECK(two.x == Matrix{{0.5, 1.5}});
  CHECK(invert(constant(0.0), y).iterations == 1);
}

TEST_CASE("invert: with no tolerance it goes on to the level of rounding, and says so",
          "[invert]") {
  Rng rng(6);
  Matrix b = normal_matrix(rng, 5, 5);
  b *= 0.5 / b.norm();
  const Matrix y = normal_matrix(rng, 4, 5);
  const Inverse found = invert(linear(b), y, {.tolerance = 0.0});
  CHECK((found.termination == InverseTermination::stalled || found.converged()));
  CHECK((found.x - y * (Matrix::Identity(5, 5) + b).inverse()).cwiseAbs().maxCoeff() < 1e-14);
  CHECK(found.rate_estimate < 0.6);
  CHECK(found.error_estimate < 1e-14);
}

TEST_CASE("invert: run_on takes every step, and the observer sees each x", "[invert]") {
  const auto depth = GENERATE(0, 2);
  const Matrix y{{0.5}};
  std::vector<double> seen;
  const InverseOptions options{.max_iterations = 60,
                               .anderson = depth,
                               .run_on = true,
                               .observer = [&](Index k, const ConstMatrixRef& x) {
                                 CHECK(static_cast<std::size_t>(k) == seen.size());
                                 seen.push_back(x(0, 0));
                               }};
  const Inverse found = invert(linear(Matrix{{-0.5}}), y, options);
  CHECK(found.converged());
  CHECK(found.iterations == 60);
  REQUIRE(seen.size() == 61);
  CHECK(seen.front() == 0.5);
  CHECK(seen.back() == Approx(1.0).epsilon(1e-14));
  seen.clear();
  InverseOptions growing = options;
  growing.max_iterations = 25;
  CHECK(invert(linear(Matrix{{-2.0}}), y, growing).termination ==
        InverseTermination::not_contractive);
  CHECK(seen.size() == 26);
}

TEST_CASE("invert: acceleration solves a linear problem of low rank in as many steps", "[invert]") {
  Rng rng(7);
  const Matrix b = 0.95 * Vector(Eigen::Vector3d(1.0, -0.7, 0.3)).asDiagonal();
  const Matrix y = normal_matrix(rng, 1, 3);
  const Inverse plain = invert(linear(b, 0.95), y);
  const Inverse fast = invert(linear(b, 0.95), y, {.anderson = 3});
  CHECK(plain.converged());
  CHECK(fast.converged());
  CHECK(fast.iterations <= 7);
  CHECK(plain.iterations > 200);
  CHECK((fast.x - plain.x).cwiseAbs().maxCoeff() < 1e-12);
}

TEST_CASE("invert: acceleration halves the iterations for attention that contracts slowly",
          "[invert]") {
  const MultiHead layer = initial_layer(parse_initialiser("glorot"), AttentionKind::dot, 16, 4, 3);
  const auto g = ResidualAttention::undivided(layer, 0.7);
  Rng rng(8);
  const Matrix y = g.forward(uniform_matrix(rng, 16, 16, -1.0, 1.0));
  const Inverse plain = invert(g, y);
  const Inverse fast = invert(g, y, {.anderson = 5});
  CAPTURE(plain.iterations, fast.iterations, plain.rate_estimate);
  CHECK(plain.converged());
  CHECK(fast.converged());
  CHECK(2 * fast.iterations <= plain.iterations);
}

TEST_CASE("invert: the same bits whatever the number of threads", "[invert]") {
  Rng rng(9);
  const Shape shape{40, 6, 3, 2, 2, 6};
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, shape);
  const auto g = ResidualAttention::contractive(layer, shape.n);
  const Matrix y = normal_matrix(rng, shape.n, shape.D);
  const auto run = [&](Index threads) {
    const ThreadLimit limit(threads);
    return invert(g, y, {.anderson = 2});
  };
  const Inverse one = run(1);
  const Inverse two = run(2);
  CHECK(one.x == two.x);
  CHECK(one.error_upper_bound == two.error_upper_bound);
  CHECK(one.steps == two.steps);
}

TEST_CASE("invert: refuses what is out of range", "[invert]") {
  const Matrix y{{1.0}};
  const ResidualMap map = linear(Matrix{{0.5}});
  const auto refused = [&](const ResidualMap& of, const Matrix& at, const InverseOptions& options) {
    try {
      (void)invert(of, at, options);
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(refused(map, y, {.max_iterations = -1}), Contains("max_iterations"));
  CHECK_THAT(refused(map, y, {.tolerance = -1.0}), Contains("tolerance"));
  CHECK_THAT(refused(map, y, {.tolerance = INFINITY}), Contains("tolerance"));
  CHECK_THAT(refused(map, y, {.anderson = 51}), Contains("anderson must be from 0 to 50, got 51"));
  CHECK_THAT(refused(map, y, {.patience = 0}), Contains("patience"));
  CHECK_THAT(refused({}, y, {}), Contains("f must not be empty"));
  CHECK_THAT(refused(linear(Matrix{{0.5}}, 1.0), y, {}), Contains("contraction"));
  CHECK_THAT(refused(map, Matrix(0, 1), {}), Contains("y must be finite"));
  CHECK_THAT(refused(map, Matrix{{NAN}}, {}), Contains("y must be finite"));
  CHECK_THAT(refused({.branch = [](const ConstMatrixRef&) { return Matrix(2, 2); }}, y, {}),
             Contains("f must keep the shape, got 2 x 2 from 1 x 1"));
  const auto g = ResidualAttention::contractive(test::unit_layer(AttentionKind::l2), 3);
  CHECK_THROWS_WITH(invert(g, Matrix::Ones(2, 1)), Contains("3 tokens"));
  CHECK_THROWS_WITH(invert(g, Matrix::Ones(3, 2)), Contains("1 features"));
  const Inverse none = invert(map, y, {.max_iterations = 0});
  CHECK(none.x.size() == 0);
  CHECK(none.termination == InverseTermination::step_limit);
}

}  // namespace
}  // namespace lipsa
