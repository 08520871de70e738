#include "lipsa/bounds/qi2023.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "dense_norms.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::measurement_error;

TEST_CASE("qi2023: by hand", "[bounds]") {
  // q = 2, k = 3, v = 5, τ = 7, 1/√ε = 11, n = 4.
  CHECK(qi2023_cosine(2.0, 3.0, 5.0, 7.0, 11.0, 4).value() ==
        11.0 * (2.0 * 4.0 * 3.0 * 7.0 * 3.0 + 2.0 * 3.0 * 7.0 * 2.0 + 2.0 * 4.0 * 5.0));
  CHECK(nair2025_cosine(2.0, 3.0, 5.0, 7.0, 11.0, 4).value() ==
        11.0 * (16.0 * 7.0 * 3.0 + 4.0 * 7.0 * 2.0 + 2.0 * 4.0 * 5.0));
  CHECK(cosine_2(2.0, 3.0, 5.0, 7.0, 11.0, 1.5, 4).value() ==
        11.0 * (1.5 * 5.0 + 0.5 * 7.0 * 4.0 * 5.0));
  CHECK(cosine_max_token(2.0, 3.0, 5.0, 7.0, 11.0).value() == 11.0 * (5.0 + 7.0 * 5.0));
}

TEST_CASE("qi2023: each published bound is above the next, ours is the least", "[bounds]") {
  Rng rng(12);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto draw = [&] { return UpRounded(std::pow(10.0, rng.uniform(-3.0, 3.0))); };
    const UpRounded q = draw();
    const UpRounded k = draw();
    const UpRounded v = draw();
    const UpRounded tau = draw();
    const UpRounded root = draw();
    const Index n = 1 + static_cast<Index>(std::pow(10.0, rng.uniform(0.0, 5.0)));
    CAPTURE(n);
    const UpRounded nair = nair2025_cosine(q, k, v, tau, root, n);
    CHECK(nair <= qi2023_cosine(q, k, v, tau, root, n));
    CHECK(cosine_2(q, k, v, tau, root, sqrt(UpRounded(static_cast<double>(n))), n) <= nair);
  }
}

TEST_CASE("qi2023: the entries by hand, heads added with their rows of W_O", "[bounds]") {
  // Two heads of d = d_v = 1 with W_O 2 and 3, ε = 1/4: 1/√ε = 2.
  const MultiHead layer{.kind = AttentionKind::cosine,
                        .heads = 2,
                        .W_Q = Matrix{{2.0, 4.0}},
                        .W_K = Matrix{{3.0, 1.0}},
                        .W_V = Matrix{{5.0, 6.0}},
                        .W_O = Matrix{{2.0}, {3.0}},
                        .scale = 0.5,
                        .epsilon = 0.25};
  const Mask open = Mask::none();
  const Mask causal = Mask::causal();
  const auto value = [&](const char* name, const Mask& mask) {
    const Bound bound = find_entry(name).evaluate({.layer = layer, .mask = mask, .tokens = 4});
    CAPTURE(name, bound.reason);
    CHECK(bound.holds);
    return bound.value;
  };
  const auto of_heads = [](double first, double second) {
    return Approx(2.0 * (2.0 * first + 3.0 * second)).epsilon(1e-12);
  };
  CHECK(value("qi2023_cosine", open) == of_heads(24.0 * 0.5 * 3.0 + 6.0 * 0.5 * 2.0 + 8.0 * 5.0,
                                                 24.0 * 0.5 * 1.0 + 6.0 * 0.5 * 4.0 + 8.0 * 6.0));
  CHECK(value("nair2025_cosine", open) == of_heads(16.0 * 0.5 * 3.0 + 4.0 * 0.5 * 2.0 + 8.0 * 5.0,
                                                   16.0 * 0.5 * 1.0 + 4.0 * 0.5 * 4.0 + 8.0 * 6.0));
  const double beta = std::exp(0.5);  // √min(4, e^(2 s))
  CHECK(value("cosine_2", open) == of_heads(beta * 5.0 + 5.0, beta * 6.0 + 5.0));
  CHECK(value("cosine_2", causal) == of_heads(2.0 * 5.0 + 5.0, 2.0 * 6.0 + 5.0));
  CHECK(value("cosine_max_token", causal) == of_heads(5.0 + 2.5, 6.0 + 2.5));
}

TEST_CASE("cosine_2, cosine_max_token: attained by tokens at zero, whose values change most",
          "[bounds]") {
  MultiHead layer = test::unit_layer(AttentionKind::cosine);
  layer.W_Q.setZero();
  layer.W_K.setZero();
  layer.scale = 1e-9;
  const Mask open = Mask::none();
  const Index n = GENERATE(1, 5);
  CAPTURE(n);
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = n};
  const double norm = test::dense_norm(Jacobian(layer, Matrix::Zero(n, 1)).dense());
  CHECK(norm == Approx(1.0 / std::sqrt(0.1)).epsilon(1e-13));
  for (const char* name : {"cosine_2", "cosine_max_token"}) {
    const double bound = find_entry(name).evaluate(setting).value;
    CHECK(bound >= norm * (1.0 - 1e-15));
    CHECK(bound <= norm * (1.0 + 1e-8));
  }
}

TEST_CASE("qi2023: above the norms of J of cosine attention for every shape, mask and bias",
          "[bounds]") {
  const auto shape = GENERATE(from_range(test::shapes));
  const auto seed = GENERATE(range(1U, 9U));
  CAPTURE(shape, seed);
  Rng rng(seed, 9);
  MultiHead layer = test::random_layer(rng, AttentionKind::cosine, shape, seed % 2 == 0);
  layer.epsilon = std::pow(10.0, rng.uniform(-3.0, 1.0));
  layer.scale = std::pow(10.0, rng.uniform(-1.0, 1.0));
  // Tokens as short as √ε change most.
  const Matrix x =
      std::sqrt(layer.epsilon) * rng.uniform(0.0, 2.0) * normal_matrix(rng, shape.n, shape.D);
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, shape.n)}) {
    CAPTURE(to_string(mask.kind()));
    const Matrix j = Jacobian(layer, x, mask).dense();
    const double norm = test::dense_norm(j);
    const BoundSetting setting{.layer = layer, .mask = mask, .tokens = shape.n};
    const bool open = mask.kind() == Mask::Kind::none;
    for (const char* name : {"qi2023_cosine", "nair2025_cosine", "cosine_2"}) {
      CAPTURE(name);
      const Bound bound = find_entry(name).evaluate(setting);
      const bool published = std::string_view(name) != "cosine_2";
      CHECK(bound.holds == (open || !published));
      if (bound.holds) {
        CHECK(norm <= bound.value * (1.0 + measurement_error));
      } else {
        CHECK(std::isnan(bound.value));
        CHECK(bound.reason == "it speaks of attention without masks");
      }
    }
    const Bound bound = find_entry("cosine_max_token").evaluate(setting);
    CHECK(bound.holds);
    CHECK(test::dense_max_token(j, shape.D_out, shape.D) <=
          bound.value * (1.0 + measurement_error));
  }
}

}  // namespace
}  // namespace lipsa
