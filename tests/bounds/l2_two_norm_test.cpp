#include "lipsa/bounds/l2_two_norm.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "dense_norms.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/bounds/lambert.hpp"
#include "lipsa/model/initial_weights.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using test::block_norms;
using test::dense_norm;
using test::measurement_error;

/// What the mask of `visible` tokens says, counted here.
L2Core core_of(const Mask& mask, Index n) {
  Index seen = 1;
  Index seeing = 1;
  Index others = 0;
  for (Index i = 0; i < n; ++i) {
    Index row = 0;
    Index column = 0;
    for (Index j = 0; j < n; ++j) {
      row += mask.visible(i, j) ? 1 : 0;
      column += mask.visible(j, i) ? 1 : 0;
    }
    seen = std::max(seen, row);
    seeing = std::max(seeing, column);
    others = std::max(others, column - (mask.visible(i, i) ? 1 : 0));
  }
  return l2_core(n, seen, seeing, others,
                 mask.kind() == Mask::Kind::none     ? ColumnRule::unmasked
                 : mask.kind() == Mask::Kind::causal ? ColumnRule::causal
                                                     : ColumnRule::counted);
}

/// The core map g(Z) = P(Z) Z at Z: P and q_ij = |z_i − z_j|², written out.
struct CoreMap {
  Matrix P, q;
};

CoreMap core_map(const Matrix& z, const Mask& mask) {
  const Index n = z.rows();
  CoreMap map{Matrix::Zero(n, n), Matrix(n, n)};
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      map.q(i, j) = (z.row(i) - z.row(j)).squaredNorm();
    }
    double least = std::numeric_limits<double>::infinity();
    for (Index j = 0; j < n; ++j) {
      least = mask.visible(i, j) ? std::min(least, map.q(i, j)) : least;
    }
    for (Index j = 0; j < n; ++j) {
      map.P(i, j) = mask.visible(i, j) ? std::exp(least - map.q(i, j)) : 0.0;
    }
    const double sum = map.P.row(i).sum();
    map.P.row(i) /= sum > 0.0 ? sum : 1.0;
  }
  return map;
}

/// F is the core map when W_Q = I d^¼ and W_V = I: s W_Q W_Qᵀ = I.
MultiHead core_layer(Index d) {
  return {.kind = AttentionKind::l2,
          .W_Q = std::pow(static_cast<double>(d), 0.25) * Matrix::Identity(d, d),
          .W_V = Matrix::Identity(d, d)};
}

/// Token 0 is seen by all, every other token by itself and at random by a few.
Mask star_mask(Rng& rng, Index n) {
  Mask::Visible visible(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      visible(i, j) = i == j || j == 0 || rng.uniform() < 1.0 / static_cast<double>(n);
    }
  }
  return Mask::arbitrary(std::move(visible));
}

/// A centre and n − 1 orthogonal leaves at squared distance ½ ln n: the centre's column of P is
/// long.
Matrix centre_and_leaves(Index n) {
  Matrix z = Matrix::Zero(n, std::max<Index>(n - 1, 1));
  for (Index i = 1; i < n; ++i) {
    z(i, i - 1) = std::sqrt(0.5 * std::log(static_cast<double>(n)));
  }
  return z;
}

/// One token among others at squared distance c + 1: it has Σ_j P_ij q_ij = c.
Matrix one_among_others(Index n) {
  Matrix z = Matrix::Constant(n, 1, std::sqrt(1.0 + phi_inverse(static_cast<double>(n - 1))));
  z(0, 0) = 0.0;
  return z;
}

/// Normal tokens of sizes over three orders of magnitude, in clusters, and the two above.
Matrix random_tokens(Rng& rng, Index n) {
  const auto choice = rng.next() % 6;
  if (choice == 0) {
    return rng.uniform(0.5, 1.5) * centre_and_leaves(n);
  }
  if (choice == 1) {
    return rng.uniform(0.9, 1.1) * one_among_others(n);
  }
  const Index d = 1 + static_cast<Index>(rng.next() % 4);
  Matrix z = std::pow(10.0, rng.uniform(-1.5, 1.5)) * normal_matrix(rng, n, d);
  if (choice == 2) {
    for (Index i = 2; i < n; ++i) {
      z.row(i) = z.row(i % 2) + 0.1 * normal_matrix(rng, 1, d);
    }
  }
  return z;
}

TEST_CASE("l2_core_2: the values of the table without a mask", "[bounds]") {
  const auto row = GENERATE(table<Index, double, double>({{1, 1.0, 1.0},
                                                          {2, 2.30306528605, 2.303},
                                                          {3, 3.25784065771, 3.258},
                                                          {8, 6.38262472127, 6.383},
                                                          {16, 9.57469781105, 9.575},
                                                          {64, 19.8330614182, 19.833},
                                                          {100, 23.9793832499, 23.979},
                                                          {1000, 58.4104057748, 58.410},
                                                          {1000000, 590.35001485, 590.350}}));
  const Index n = std::get<0>(row);
  CAPTURE(n);
  const double value = l2_core_2(l2_core(n, n, n, n - 1, ColumnRule::unmasked)).value();
  CHECK(value == Approx(std::get<1>(row)).epsilon(3e-12));
  CHECK(value == Approx(std::get<2>(row)).epsilon(0).margin(5.1e-4));
}

TEST_CASE("l2_core: its pieces and values with a causal mask", "[bounds]") {
  const auto row = GENERATE(
      table<Index, double, double, double>({{1, 1.0, 0.0, 1.0},
                                            {2, 2.0, 0.278464542761, 2.52807173342},
                                            {3, 2.44948974278, 0.556929085522, 3.50685122483},
                                            {16, 5.65685424949, 4.17696814142, 9.95311204106},
                                            {64, 11.313708499, 17.5432661939, 20.7017765237},
                                            {1000, 44.72135955, 154.462103757, 67.7892894269}}));
  const Index n = std::get<0>(row);
  CAPTURE(n);
  const L2Core core = l2_core(n, n, n, n - 1, ColumnRule::causal);
  CHECK(core.columns.value() == Approx(std::get<1>(row)).epsilon(3e-12));
  CHECK(core.moment.value() == Approx(std::get<2>(row)).epsilon(3e-12));
  CHECK(l2_core_2(core).value() == Approx(std::get<3>(row)).epsilon(3e-12));
  CHECK(core.c.value() == upper_bound_phi_inverse(static_cast<double>(n - 1)));
  CHECK(core.tokens == UpRounded(static_cast<double>(n)));
}

TEST_CASE("l2_core: a mask is counted, here one token that all see", "[bounds]") {
  const Index n = GENERATE(2, 5, 50, 5000);
  CAPTURE(n);
  // Others see themselves and token 0: two tokens.
  const auto count = static_cast<double>(n);
  const L2Core core = l2_core(n, 2, n, n - 1, ColumnRule::counted);
  CHECK(core.c.value() == upper_bound_phi_inverse(1.0));
  CHECK(core.columns == UpRounded(count));
  CHECK(core.moment.value() ==
        Approx(std::min((count - 1.0) * 0.27846454276107, phi_inverse(count - 1.0) * (count + 1.0)))
            .epsilon(1e-12));
  CHECK(l2_core_2(core).value() <=
        std::sqrt(count) * (4.0 * 0.27846454276107 + 1.0) * (1.0 + 1e-13));
  // Each token is seen by two, one of them sees all.
  const L2Core fan = l2_core(n, n, 2, 1, ColumnRule::counted);
  CHECK(fan.c.value() == upper_bound_phi_inverse(count - 1.0));
  CHECK(fan.columns == UpRounded(2.0));
  CHECK(fan.moment.value() == Approx(0.27846454276107).epsilon(1e-12));
  // The same where these two are others, as of a token that sees nothing.
  CHECK(l2_core(n, n, 2, std::min<Index>(2, n - 1), ColumnRule::counted).moment.value() ==
        Approx((n > 2 ? 2.0 : 1.0) * 0.27846454276107).epsilon(1e-12));
  // Tokens that see nothing but themselves: the identity.
  CHECK(l2_core_2(l2_core(n, 1, 1, 0, ColumnRule::counted)) == UpRounded(1.0));
}

TEST_CASE("l2_core: sqrt(n) is left where a mask is arbitrary", "[bounds]") {
  const L2Core open = l2_core(1000, 1000, 1000, 999, ColumnRule::unmasked);
  const L2Core causal = l2_core(1000, 1000, 1000, 999, ColumnRule::causal);
  const L2Core counted = l2_core(1000, 1000, 1000, 999, ColumnRule::counted);
  CHECK(open.columns < causal.columns);
  CHECK(causal.columns < counted.columns);
  CHECK(open.moment < causal.moment);
  CHECK(causal.moment < counted.moment);
  CHECK(l2_core_2(open) < l2_core_2(causal));
  CHECK(l2_core_2(causal) < l2_core_2(counted));
}

TEST_CASE("l2_core_2: never above sqrt(n) (4c + 1), nor without a mask above the closed form",
          "[bounds]") {
  std::vector<Index> counts;
  for (Index n = 1; n <= 3000; n += 1 + n / 20) {
    counts.push_back(n);
  }
  counts.insert(counts.end(), {Index{1} << 20U, Index{1} << 40U, Index{1} << 60U});
  for (const Index n : counts) {
    CAPTURE(n);
    const auto count = static_cast<double>(n);
    const double c = phi_inverse(count - 1.0);
    const double plain = std::sqrt(count) * (4.0 * c + 1.0) * (1.0 + 1e-13);
    const double closed = std::pow(count, 0.25) + c * std::sqrt(8.0 * (std::sqrt(count) + 2.0));
    for (const ColumnRule rule : {ColumnRule::unmasked, ColumnRule::causal, ColumnRule::counted}) {
      CHECK(l2_core_2(l2_core(n, n, n, n - 1, rule)).value() <= plain);
    }
    CHECK(l2_core_2(l2_core(n, n, n, n - 1, ColumnRule::unmasked)).value() <=
          closed * (1.0 + 1e-13));
  }
}

TEST_CASE("l2_core: its pieces are above what P and q of random tokens sum to", "[bounds]") {
  double rows_ratio = 0.0;
  double columns_ratio = 0.0;
  double moment_ratio = 0.0;
  for (const Index n : {1, 2, 3, 5, 9, 24, 70, 200}) {
    for (std::uint64_t seed = 1; seed <= (n < 100 ? 60U : 12U); ++seed) {
      Rng rng(seed, static_cast<std::uint64_t>(n));
      const Matrix z = random_tokens(rng, n);
      for (const Mask& mask :
           {Mask::none(), Mask::causal(), test::random_mask(rng, n), star_mask(rng, n)}) {
        CAPTURE(n, seed, to_string(mask.kind()));
        const L2Core core = core_of(mask, n);
        const CoreMap map = core_map(z, mask);
        const Matrix pq = map.P.cwiseProduct(map.q);
        const double allowed = 1.0 + measurement_error;
        const double rows = pq.rowwise().sum().maxCoeff();
        const double columns = map.P.colwise().sum().maxCoeff();
        const double moment = pq.colwise().sum().maxCoeff();
        CHECK(rows <= core.c.value() * allowed);
        CHECK(columns <= core.columns.value() * allowed);
        CHECK(moment <= core.moment.value() * allowed);
        if (n > 1) {
          rows_ratio = std::max(rows_ratio, rows / core.c.value());
          columns_ratio = std::max(columns_ratio, columns / core.columns.value());
          moment_ratio = std::max(moment_ratio, moment / core.moment.value());
        }
      }
    }
  }
  CHECK(rows_ratio > 0.98);  // the trials come near enough to mean something
  CHECK(columns_ratio > 0.98);
  CHECK(moment_ratio > 0.6);
}

TEST_CASE("l2_core: of a token that sees nothing, all who see it count in the moment", "[bounds]") {
  // Token 0 sees nothing, so that whoever sees it is another; formerly one too few was counted.
  Mask::Visible visible = Mask::Visible::Constant(2, 2, true);
  visible(0, 0) = visible(0, 1) = false;
  const Mask mask = Mask::arbitrary(visible);
  const CoreMap map = core_map(one_among_others(2), mask);
  const double moment = map.P(1, 0) * map.q(1, 0);
  CHECK(core_of(mask, 2).moment.value() >= moment);
  CHECK(core_of(mask, 2).moment.value() <= moment * (1.0 + measurement_error));
  const MultiHead layer = core_layer(1);
  CHECK(find_entry("l2_2_sum").evaluate({.layer = layer, .mask = mask, .tokens = 2}).value ==
        Approx(l2_core_2(core_of(mask, 2)).value()).epsilon(1e-12));
}

TEST_CASE("l2_core: c is attained by one token among others", "[bounds]") {
  const Index n = GENERATE(2, 3, 10, 100);
  CAPTURE(n);
  const CoreMap map = core_map(one_among_others(n), Mask::none());
  const double moment = map.P.row(0).dot(map.q.row(0));
  const double c = l2_core(n, n, n, n - 1, ColumnRule::unmasked).c.value();
  CHECK(moment <= c * (1.0 + measurement_error));
  CHECK(moment >= c * (1.0 - measurement_error));
}

TEST_CASE("l2_core: the columns of a centre among leaves are long, sqrt(n) is the right power",
          "[bounds]") {
  const Index n = GENERATE(10, 100, 400);
  CAPTURE(n);
  const CoreMap map = core_map(centre_and_leaves(n), Mask::none());
  const double columns = l2_core(n, n, n, n - 1, ColumnRule::unmasked).columns.value();
  CHECK(map.P.col(0).sum() <= columns);
  CHECK(map.P.col(0).sum() >= 0.45 * columns);
}

TEST_CASE("l2_core_2, l2_core_rows, l2_core_columns: above the norms of the core map's Jacobian",
          "[bounds]") {
  double worst = 0.0;
  for (const Index n : {1, 2, 3, 6, 14}) {
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      Rng rng(seed, 100 + static_cast<std::uint64_t>(n));
      const Matrix z = random_tokens(rng, n);
      const Index d = z.cols();
      for (const Mask& mask :
           {Mask::none(), Mask::causal(), test::random_mask(rng, n), star_mask(rng, n)}) {
        CAPTURE(n, d, seed, to_string(mask.kind()));
        const L2Core core = core_of(mask, n);
        const Matrix j = Jacobian(core_layer(d), z, mask).dense();
        const Matrix blocks = block_norms(j, d, d);
        const double allowed = 1.0 + measurement_error;
        CHECK(dense_norm(j) <= l2_core_2(core).value() * allowed);
        CHECK(dense_norm(j) <= l2_core_interpolated(core, 2.0).value() * allowed);
        for (const double p : {1.0, 1.5, 3.0, 10.0}) {  // of random vectors, p over tokens
          const Vector v = normal_matrix(rng, n * d, 1);
          const Matrix jv = (j * v).reshaped<Eigen::RowMajor>(n, d);
          const auto length = [&](const Matrix& x) {
            return x.rowwise().norm().lpNorm<Eigen::Infinity>() *
                   std::pow((x.rowwise().norm() /
                             std::max(1e-300, x.rowwise().norm().lpNorm<Eigen::Infinity>()))
                                .array()
                                .pow(p)
                                .sum(),
                            1.0 / p);
          };
          CHECK(length(jv) <= l2_core_interpolated(core, p).value() * allowed *
                                  length(v.reshaped<Eigen::RowMajor>(n, d)));
        }
        CHECK(blocks.rowwise().sum().maxCoeff() <= l2_core_rows(core).value() * allowed);
        CHECK(blocks.colwise().sum().maxCoeff() <= l2_core_columns(core).value() * allowed);
        CHECK(test::dense_max_token(j, d, d) <= l2_core_rows(core).value() * allowed);
        if (n > 1) {
          worst = std::max(worst, blocks.rowwise().sum().maxCoeff() / l2_core_rows(core).value());
        }
      }
    }
  }
  CHECK(worst > 0.7);
}

TEST_CASE("l2_core_rows, l2_core_columns, l2_core_interpolated: by hand", "[bounds]") {
  const L2Core core{.c = 3.0, .columns = 4.0, .moment = 12.0, .tokens = 1e6};
  CHECK(l2_core_rows(core).value() == 13.0);
  CHECK(l2_core_columns(core).value() == 4.0 + 6.0 + 24.0 + 2.0 * 12.0);
  CHECK(l2_core_2(core).value() == 2.0 + 6.0 + 2.0 * 6.0);
  CHECK(l2_core_interpolated(core, 2.0).value() == Approx(std::sqrt(13.0 * 58.0)).epsilon(1e-14));
  const double third = std::pow(13.0, 2.0 / 3.0) * std::cbrt(58.0);
  CHECK(l2_core_interpolated(core, 3.0).value() >= third * (1.0 - 1e-15));
  CHECK(l2_core_interpolated(core, 3.0).value() <= third * (1.0 + 1e-13));
  CHECK(l2_core_interpolated(core, 1.0).value() == Approx(58.0).epsilon(1e-13));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(l2_core_interpolated(core, infinity).value() == Approx(13.0).epsilon(1e-13));
  CHECK_THROWS_AS(l2_core_interpolated(core, 0.5), std::invalid_argument);
  const L2Core few{.c = 3.0, .columns = 4.0, .moment = 12.0, .tokens = 1.0};
  CHECK(l2_core_2(few).value() == 13.0);
}

TEST_CASE("l2_2: one token gives the norm of the linear map", "[bounds]") {
  Rng rng(9);
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, {1, 3, 1, 2, 4, 3});
  const Mask open = Mask::none();
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 1};
  const double norm = dense_norm(Jacobian(layer, Matrix::Ones(1, 3)).dense());
  for (const char* name : {"l2_2_sum", "l2_2_concat", "l2_2_fused", "l2_2_interpolated"}) {
    CAPTURE(name);
    CHECK(find_entry(name).evaluate(setting).value >= norm);
  }
  // Of orthogonal weights with entries 0 and 1 every factor is one, or is the 5 of W_O.
  const MultiHead plain{.kind = AttentionKind::l2,
                        .heads = 2,
                        .W_Q = Matrix::Identity(4, 4),
                        .W_V = Matrix::Identity(4, 4),
                        .W_O = 5.0 * Matrix::Identity(4, 4),
                        .scale = 1.0};
  const BoundSetting at{.layer = plain, .mask = open, .tokens = 1};
  CHECK(find_entry("l2_2_fused").evaluate(at).value == Approx(5.0).epsilon(1e-12));
  CHECK(find_entry("l2_2_sum").evaluate(at).value == Approx(10.0).epsilon(1e-12));
  CHECK(find_entry("l2_2_concat").evaluate(at).value ==
        Approx(5.0 * std::sqrt(2.0)).epsilon(1e-12));
  CHECK(dense_norm(Jacobian(plain, Matrix::Ones(1, 4)).dense()) == Approx(5.0).epsilon(1e-14));
}

TEST_CASE("l2_2_fused: on Glorot weights of many heads it wins by about sqrt(H)", "[bounds]") {
  const Index H = GENERATE(2, 4, 8, 16);
  const auto seed = GENERATE(1U, 2U);
  CAPTURE(H, seed);
  const MultiHead layer =
      initial_layer({.kind = Initialiser::Kind::glorot}, AttentionKind::l2, 8 * H, H, seed);
  const Mask open = Mask::none();
  const BoundSetting setting{.layer = layer, .mask = open, .tokens = 64};
  const auto value = [&](const char* name) {
    const Bound bound = find_entry(name).evaluate(setting);
    CHECK(bound.holds);
    return bound.value;
  };
  const double fused = value("l2_2_fused");
  const double root = std::sqrt(static_cast<double>(H));
  CAPTURE(value("l2_2_sum") / fused, value("l2_2_concat") / fused);
  CHECK(fused < value("l2_2_sum"));
  CHECK(fused < value("l2_2_concat"));
  CHECK(value("l2_2_sum") / fused > 0.5 * root);
  CHECK(value("l2_2_sum") / fused < 4.0 * root);
}

TEST_CASE("l2: the entries are above the norms of J for every shape and mask", "[bounds]") {
  const auto shape = GENERATE(from_range(test::shapes));
  const auto seed = GENERATE(range(1U, 4U));
  CAPTURE(shape, seed);
  Rng rng(seed, 5);
  const MultiHead layer = test::random_layer(rng, AttentionKind::l2, shape);
  const Matrix x = rng.uniform(0.1, 3.0) * normal_matrix(rng, shape.n, shape.D);
  for (const Mask& mask : {Mask::none(), Mask::causal(), test::random_mask(rng, shape.n)}) {
    CAPTURE(to_string(mask.kind()));
    const Jacobian jacobian(layer, x, mask);
    const Matrix j = jacobian.dense();
    const BoundSetting setting{.layer = layer, .mask = mask, .tokens = shape.n};
    const auto above = [&](const char* name, double norm) {
      CAPTURE(name);
      const Bound bound = find_entry(name).evaluate(setting);
      CHECK(bound.holds);
      CHECK(norm <= bound.value * (1.0 + measurement_error));
    };
    for (const char* name : {"l2_2_sum", "l2_2_concat", "l2_2_fused", "l2_2_interpolated"}) {
      above(name, dense_norm(j));
    }
    for (const char* name : {"l2_max_token_sum", "l2_max_token_concat"}) {
      above(name, test::dense_max_token(j, shape.D_out, shape.D));
    }
    above("l2_inf_rows", jacobian.norm_inf().value);
    above("l2_1_columns", jacobian.norm_1().value);
  }
}

TEST_CASE("l2_core: refuses counts that no mask has", "[bounds]") {
  CHECK_THROWS_WITH(l2_core(0, 1, 1, 0, ColumnRule::unmasked),
                    "l2_core: tokens must be at least 1, got 0");
  CHECK_THROWS_WITH(l2_core(3, 4, 1, 0, ColumnRule::counted),
                    "l2_core: seen and seeing must be in [1, 3], got 4 and 1");
  CHECK_THROWS_WITH(l2_core(3, 3, 2, 0, ColumnRule::counted),
                    "l2_core: others must be in [1, 2], got 0");
  CHECK_THROWS_AS(l2_core(3, 3, 3, 3, ColumnRule::counted), std::invalid_argument);
  CHECK_THROWS_AS(l2_core(3, 0, 1, 0, ColumnRule::counted), std::invalid_argument);
  CHECK_THROWS_AS(l2_core(3, 1, 4, 2, ColumnRule::counted), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
