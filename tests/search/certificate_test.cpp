#include "lipsa/search/certificate.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "files.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "random_problems.hpp"
#include "search/arb.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

double next_up_of(double x) {
  return std::nextafter(x, std::numeric_limits<double>::infinity());
}
double next_down_of(double x) {
  return std::nextafter(x, -std::numeric_limits<double>::infinity());
}

/// |x|_p of a token matrix, as computed.
double norm_of(const Matrix& x, Norm p) {
  switch (p) {
    case Norm::one:
      return x.cwiseAbs().sum();
    case Norm::two:
      return x.norm();
    case Norm::inf:
      return x.cwiseAbs().maxCoeff();
    case Norm::max_token:
      return x.rowwise().norm().maxCoeff();
  }
  return 0.0;
}

/// Kim et al.'s printed 2-norm is refuted by this: |J(0)|_2 = 25, theory of the catalogue entry.
Witness printed_2(double exceeds) {
  Witness w{.form = WitnessForm::direction,
            .layer = test::unit_layer(AttentionKind::l2),
            .norm = Norm::two,
            .exceeds = exceeds,
            .x = Matrix::Zero(2, 1),
            .y = Matrix::Ones(2, 1)};
  w.layer.W_Q(0, 0) = 5.0;
  return w;
}

TEST_CASE("verify: the layer that refutes the printed 2-norm, to the last bit", "[search]") {
  CHECK(verify(printed_2(20.17)).outcome == Outcome::proved);
  const Verdict close = verify(printed_2(next_down_of(25.0)));
  CHECK(close.outcome == Outcome::proved);
  CHECK(close.ratio_lower_bound == 25.0);
  CHECK(close.ratio_lower_text == "25");
  CHECK(close.ratio_upper_text == "25");
  const Verdict equal = verify(printed_2(25.0));
  CHECK(equal.outcome == Outcome::refuted);  // > is strict
  CHECK(equal.reason == "the ratio is at most 25");
  CHECK(equal.bits == 64);
  CHECK(verify(printed_2(next_up_of(25.0))).outcome == Outcome::refuted);
}

TEST_CASE("verify: a bound that is named must lie at or below K", "[search]") {
  Witness w = printed_2(20.0);
  w.bound = "kim2021_2_printed";
  const double bound =
      find_entry(w.bound).evaluate({.layer = w.layer, .mask = w.mask, .tokens = 2}).value;
  CHECK_THAT(verify(w).reason,
             Contains("K = 20 lies below the bound kim2021_2_printed, which is 20.168"));
  CHECK(verify(w).outcome == Outcome::refuted);
  w.exceeds = next_down_of(bound);
  CHECK(verify(w).outcome == Outcome::refuted);
  w.exceeds = bound;
  CHECK(verify(w).outcome == Outcome::proved);

  w.bound = "kim2021_2";  // 74.7, a true bound
  CHECK(verify(w).outcome == Outcome::refuted);
  w.exceeds = 75.0;
  CHECK_THAT(verify(w).reason, Contains("the ratio is at most 25"));
  w.bound = "kim2021_inf";
  CHECK_THAT(verify(w).reason, Contains("speaks of the norm inf, the witness of 2"));
  w.bound = "dot_not_lipschitz_2";
  CHECK_THAT(verify(w).reason, Contains("does not speak of this layer"));
  w.bound = "kim2021";
  CHECK_THROWS_AS(verify(w), std::invalid_argument);
}

TEST_CASE("verify: dot-product attention grows with the square of the radius", "[search]") {
  const double t = GENERATE(1.0, 1e3, 1e8, 0x1p300);
  CAPTURE(t);
  Witness w{.form = WitnessForm::direction,
            .layer = test::unit_layer(AttentionKind::dot),
            .norm = Norm::inf,
            .x = Matrix::Zero(3, 1),
            .y = Matrix::Zero(3, 1)};
  w.x(1, 0) = t;
  w.x(2, 0) = -t;
  w.y(0, 0) = 1.0;
  // J_11 = 1/3 + 2 t²/3, and the other entries of that column are tiny or smaller.
  w.exceeds = 0.33 + 0.6666 * t * t;
  CHECK(verify(w).outcome == Outcome::proved);
  w.exceeds = 0.34 + 0.6667 * t * t;
  CHECK(verify(w).outcome == Outcome::refuted);

  Witness pair = w;
  pair.form = WitnessForm::pair;
  pair.y = w.x;
  pair.y(0, 0) = 1e-9 / t;
  pair.exceeds = 0.33 + 0.6666 * t * t;
  CHECK(verify(pair).outcome == Outcome::proved);
  pair.exceeds = 0.34 + 0.6667 * t * t;
  CHECK(verify(pair).outcome == Outcome::refuted);

  pair.exceeds = 0.1;
  pair.radius = t;
  CHECK(verify(pair).outcome == Outcome::proved);
  pair.radius = next_down_of(t);
  CHECK_THAT(verify(pair).reason, Contains("token 1 of X lies outside the radius"));
}

TEST_CASE("verify: the radius is compared exactly", "[search]") {
  Witness w = printed_2(1.0);
  w.layer.W_Q = Matrix::Ones(2, 1);
  w.layer.W_V = Matrix::Ones(2, 1);
  w.layer.W_O = Matrix::Ones(1, 2);
  w.x = Matrix::Zero(2, 2);
  w.y = Matrix::Ones(2, 2);
  w.x.row(0) << 3.0, 4.0;
  w.radius = 5.0;
  CHECK(verify(w).outcome != Outcome::refuted);
  w.x(0, 1) = next_up_of(4.0);  // the length rounds to 5
  CHECK(verify(w).outcome == Outcome::refuted);
  w.form = WitnessForm::pair;
  w.y = w.x;
  w.x(0, 1) = 4.0;
  CHECK_THAT(verify(w).reason, Contains("token 0 of Y lies outside the radius 5"));
}

TEST_CASE("verify: untied L2 attention is not Lipschitz", "[search]") {
  Witness w{.form = WitnessForm::direction,
            .layer = test::unit_layer(AttentionKind::l2_untied),
            .norm = Norm::inf,
            .exceeds = 1599.0,
            .x = Matrix(2, 1),
            .y = Matrix(2, 1)};
  w.layer.W_K(0, 0) = 0.6;
  w.x << 100.0, 100.0 * 1.4 / 0.6;
  w.y << 0.0, 1.0;
  const Verdict verdict = verify(w);
  CHECK(verdict.outcome == Outcome::proved);
  CHECK(verdict.ratio_lower_bound == Approx(1599.5).epsilon(1e-9));
  w.form = WitnessForm::pair;
  w.y = w.x;
  w.y(1, 0) += 0x1p-20;
  CHECK(verify(w).outcome == Outcome::proved);
  w.exceeds = 1599.6;
  CHECK(verify(w).outcome == Outcome::refuted);
}

TEST_CASE("verify: pairs that are closer than doubles can tell apart raise the precision",
          "[search]") {
  Rng rng(91);
  const auto kind = GENERATE(from_range(test::kinds));
  Witness w{.layer = test::random_layer(rng, kind, {3, 2, 1, 2, 2, 2}), .exceeds = 1e-3};
  w.x = normal_matrix(rng, 3, 2);
  w.x(0, 0) = 0.0;
  w.y = w.x;
  w.y(0, 0) = 0x1p-900;
  const Verdict verdict = verify(w);
  CHECK(verdict.outcome == Outcome::proved);
  CHECK(verdict.bits == 1024);
  const Jacobian jacobian(w.layer, w.x);
  const Matrix j = jacobian.dense();
  CHECK(verdict.ratio_lower_bound == Approx(j.col(0).norm()).epsilon(1e-12));
  const Verdict cut = verify(w, {.max_bits = 512});
  CHECK(cut.outcome == Outcome::undecided);
  CHECK(cut.bits == 512);
  CHECK_THAT(cut.reason, Contains("512 bits"));
}

TEST_CASE("verify: scores beyond 1e100", "[search]") {
  Witness w{.form = WitnessForm::direction,
            .layer = test::unit_layer(AttentionKind::dot),
            .norm = Norm::inf,
            .exceeds = 0.9,
            .x = Matrix(2, 1),
            .y = Matrix::Ones(2, 1)};
  w.x << 1e150, -1e150;  // each attends to itself alone: J = I
  const Verdict verdict = verify(w);
  CHECK(verdict.outcome == Outcome::proved);
  CHECK(verdict.ratio_lower_bound > 1.0 - 1e-15);
  CHECK(verdict.ratio_upper_bound < 1.0 + 1e-15);
  w.exceeds = 1.1;
  CHECK(verify(w).outcome == Outcome::refuted);
}

TEST_CASE("verify: sigmoid attention at scores of 1e5 either way", "[search]") {
  Witness w{.form = WitnessForm::direction,
            .layer = test::unit_layer(AttentionKind::sigmoid),
            .norm = Norm::inf,
            .exceeds = 0.9,
            .x = Matrix(2, 1),
            .y = Matrix::Ones(2, 1)};
  w.x << 320.0, -320.0;  // each attends to itself with weight 1, to the other with none: J = I
  CHECK(verify(w).outcome == Outcome::proved);
  CHECK(verify(w).ratio_lower_bound > 1.0 - 1e-15);
  CHECK(verify(w).ratio_upper_bound < 1.0 + 1e-15);
  w.exceeds = 1.1;
  CHECK(verify(w).outcome == Outcome::refuted);
  w.form = WitnessForm::pair;
  w.y = w.x;
  w.y(0, 0) = next_up_of(320.0);
  CHECK(verify(w).outcome == Outcome::refuted);
  w.exceeds = 0.9;
  CHECK(verify(w).outcome == Outcome::proved);

  // One token, keys -x: |J| = (2 u - 1) exp(-u) up to exp(-2u), here at u = 1e4
  w = {.form = WitnessForm::direction,
       .layer = w.layer,
       .norm = Norm::inf,
       .x = Matrix::Constant(1, 1, 100.0),
       .y = Matrix::Ones(1, 1)};
  w.layer.W_K(0, 0) = -1.0;
  CHECK(verify(w).outcome == Outcome::proved);
  CHECK(verify(w).ratio_lower_text == "2.2708541822429407e-4339");
  CHECK(verify(w).ratio_upper_text == "2.2708541822429408e-4339");
  w.x(0, 0) = 1e100;
  CHECK(verify(w).ratio_upper_text == "1e-30000");
}

TEST_CASE("verify: cosine attention of one token, whose derivative is known", "[search]") {
  // eps/(x^2 + eps)^(3/2) = 16/125
  Witness w{.form = WitnessForm::direction,
            .layer = test::unit_layer(AttentionKind::cosine),
            .norm = Norm::two,
            .exceeds = next_down_of(0.128),
            .x = Matrix::Constant(1, 1, 3.0),
            .y = Matrix::Ones(1, 1)};
  w.layer.epsilon = 16.0;
  CHECK(verify(w).outcome == Outcome::proved);
  w.exceeds = next_up_of(0.128);
  CHECK(verify(w).outcome == Outcome::refuted);
  w.exceeds = 0.0;
  w.x(0, 0) = 0x1p600;
  CHECK(verify(w).ratio_lower_text == "2.2393799603103759e-541");
  w.form = WitnessForm::pair;
  w.y = -w.x;  // 2 x / 2 x, both of length 1
  w.exceeds = 0x1p-599;
  CHECK(verify(w).outcome == Outcome::refuted);
  w.exceeds = 0x1p-600 * (1.0 - 1e-15);
  CHECK(verify(w).outcome == Outcome::proved);
}

TEST_CASE("verify: what is no witness at all is refuted with a reason", "[search]") {
  Witness w = printed_2(0.0);
  w.y.setZero();
  CHECK(verify(w).outcome == Outcome::refuted);
  CHECK(verify(w).reason == "V = 0");
  w.form = WitnessForm::pair;
  w.x(0, 0) = -0.0;
  CHECK(verify(w).reason == "X = Y");
  CHECK_THROWS_WITH(verify(w, {.min_bits = 8}), Contains("min_bits must be at least 32, got 8"));
  CHECK_THROWS_WITH(verify(w, {.max_bits = 32}), Contains("max_bits must be from min_bits = 64"));
  w.exceeds = -1.0;
  CHECK_THROWS_AS(verify(w), std::invalid_argument);
}

TEST_CASE("verify: the derivative of a softmax", "[search]") {
  Witness w{.form = WitnessForm::softmax,
            .norm = Norm::inf,
            .exceeds = 0.499,
            .x = Matrix::Zero(1, 2),
            .y = Matrix(1, 2)};
  w.y << 1.0, -1.0;
  CHECK(verify(w).outcome == Outcome::proved);  // M = [[1/4, -1/4], [-1/4, 1/4]]
  w.exceeds = 0.5;
  CHECK(verify(w).outcome == Outcome::refuted);
  Rng rng(92);
  for (const Norm norm : {Norm::one, Norm::two, Norm::inf}) {
    w.norm = norm;
    w.x = 3.0 * normal_matrix(rng, 1, 6);
    w.y = normal_matrix(rng, 1, 6);
    Vector p = (w.x.row(0).array() - w.x.maxCoeff()).exp();
    p /= p.sum();
    const Vector v = w.y.row(0);
    const Vector mv = p.asDiagonal() * v - p * p.dot(v);
    const double ratio = norm_of(Matrix(mv.transpose()), norm) / norm_of(w.y, norm);
    CHECK(verify(w).ratio_lower_bound == Approx(ratio).epsilon(1e-13));
  }
}

TEST_CASE("verify: agrees with the Jacobian for every kind, mask and norm", "[search]") {
  const auto kind = GENERATE(from_range(test::kinds));
  const auto which = GENERATE(Mask::Kind::none, Mask::Kind::causal, Mask::Kind::arbitrary);
  const bool plain = GENERATE(false, true);  // no biases, no W_O, a scale of its own
  for (const test::Shape& shape : {test::Shape{1, 3, 2, 2, 4, 3}, test::Shape{5, 4, 2, 3, 1, 4},
                                   test::Shape{4, 6, 1, 2, 3, 2}}) {
    Rng rng(93, static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(which));
    Witness w{.layer = test::random_layer(rng, kind, shape, !plain)};
    if (plain) {
      w.layer.W_O = {};
      w.layer.scale = 0.37;
    }
    w.mask = which == Mask::Kind::none     ? Mask::none()
             : which == Mask::Kind::causal ? Mask::causal()
                                           : test::random_mask(rng, shape.n);
    w.x = normal_matrix(rng, shape.n, shape.D);
    const Matrix v = normal_matrix(rng, shape.n, shape.D);
    CAPTURE(shape, to_string(kind), to_string(which), plain);

    const Jacobian jacobian(w.layer, w.x, w.mask);
    Vector jv(jacobian.rows());
    jacobian.apply(test::vec(v), jv);
    const Matrix derivative = Eigen::Map<const Matrix>(jv.data(), shape.n, w.layer.output_width());
    const double h = 0x1p-20;
    const Matrix step = w.x + h * v;
    const Matrix difference = attend(w.layer, step, w.mask) - attend(w.layer, w.x, w.mask);
    for (const Norm norm : {Norm::one, Norm::two, Norm::inf, Norm::max_token}) {
      CAPTURE(to_string(norm));
      w.norm = norm;
      w.form = WitnessForm::direction;
      w.y = v;
      const Verdict along = verify(w);
      const double ratio = norm_of(derivative, norm) / norm_of(v, norm);
      CHECK(along.ratio_lower_bound == Approx(ratio).epsilon(1e-12));
      CHECK(along.ratio_upper_bound == Approx(ratio).epsilon(1e-12));
      CHECK(along.ratio_lower_bound <= along.ratio_upper_bound);
      w.exceeds = ratio * (1.0 - 1e-12);
      CHECK(verify(w).outcome == Outcome::proved);
      w.exceeds = ratio * (1.0 + 1e-12);
      CHECK(verify(w).outcome == Outcome::refuted);

      // The difference of doubles errs by some 1e-15/h = 1e-9 of the outputs.
      w.form = WitnessForm::pair;
      w.y = step;
      w.exceeds = 0.0;
      const double quotient = norm_of(difference, norm) / norm_of(step - w.x, norm);
      CHECK(verify(w).ratio_lower_bound == Approx(quotient).epsilon(1e-8).margin(1e-9));
    }
  }
}

TEST_CASE("verify: a claim changed on purpose is refuted", "[search]") {
  const TemporaryFolder folder;
  const Witness w = printed_2(20.17);
  write_witness(folder / "w.npz", w, {});
  CHECK(verify(read_witness(folder / "w.npz")).outcome == Outcome::proved);
  Witness raised = w;  // K and a digest that fits
  raised.exceeds = 25.5;
  write_witness(folder / "w.npz", raised, {});
  CHECK(verify(read_witness(folder / "w.npz")).outcome == Outcome::refuted);
}

TEST_CASE("verify: a file with one byte changed anywhere proves nothing new", "[search]") {
  const TemporaryFolder folder;
  const Witness w = printed_2(20.17);
  write_witness(folder / "w.npz", w, {});
  const std::string good = get_bytes(folder / "w.npz");
  const auto path = folder / "changed.npz";
  int proved = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    std::filesystem::remove(path);
    put_bytes(path, bytes);
    try {
      const Witness read = read_witness(path);
      if (verify(read).outcome == Outcome::proved) {
        ++proved;  // a date or a flag of the archive: the claim is the same
        CHECK(read.exceeds == w.exceeds);
        CHECK(read.layer.W_Q == w.layer.W_Q);
        CHECK(read.x == w.x);
        CHECK(read.y == w.y);
      }
    } catch (const std::runtime_error&) {
    }
  }
  CAPTURE(good.size());
  CHECK(proved < static_cast<int>(good.size()) / 5);
}

TEST_CASE("Real: decimal numbers are rounded to the side that is asked for", "[search]") {
  Real x(0.1);  // 0.1000000000000000055511151231257827…
  CHECK(x.lower_text() == "0.1");
  CHECK(x.upper_text() == "0.10000000000000001");
  arb_set_ui(x, 1);
  arb_div_ui(x, x, 3, 100);
  CHECK(x.lower_text() == "0.33333333333333333");
  CHECK(x.upper_text() == "0.33333333333333334");
  CHECK(x.lower() == 1.0 / 3.0);
  CHECK(x.upper() == next_up_of(1.0 / 3.0));
  arb_set_ui(x, 2);
  arb_div_ui(x, x, 3000, 100);
  arb_mul_2exp_si(x, x, 2000);
  CHECK(std::stold(x.lower_text()) > 7.6e598L);
  CHECK(x.lower_text().size() == 22);
  CHECK(x.lower() == std::numeric_limits<double>::max());
  CHECK(x.upper() == std::numeric_limits<double>::infinity());
  arb_mul_2exp_si(x, x, -5000);
  CHECK(x.lower() == 0.0);
  CHECK(x.upper() == std::numeric_limits<double>::denorm_min());
  CHECK_THAT(x.lower_text(), Contains("e-907") || Contains("e-906"));
  CHECK(Real(99999999999999999.0).lower_text() == "1e17");
  CHECK(Real(12000.0).lower_text() == "12000");
  CHECK(Real(0.03125).lower_text() == "0.03125");
  CHECK(Real(-1.0).lower_text() == "0");
  CHECK(Real(12345.5).upper_text() == "12345.5");
  CHECK(Real(0x1p-20).lower_text() == "9.5367431640625e-7");
  arb_set_si(x, -3);
  arb_exp(x, x, 64);
  arb_mul_2exp_si(x, x, -400000);
  CHECK(x.lower_text() == "0");
  CHECK(x.upper_text() == "1e-30000");
  arb_inv(x, x, 64);
  CHECK(x.lower_text() == "1e30000");
  CHECK(x.upper_text() == "inf");
  arb_indeterminate(x);
  CHECK(x.lower_text() == "0");
  CHECK(x.upper_text() == "inf");
  CHECK(x.lower() == -std::numeric_limits<double>::infinity());
  CHECK(x.upper() == std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace lipsa
