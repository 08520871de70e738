#include "lipsa/train/adam.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "files.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

struct Piece {
  Matrix W{};
  Vector b{};
  double gain = 0.0;
};

template <MaybeConst<Piece> P, class F>
void for_each_parameter(P& piece, const F& f) {
  visit_parameter(f, "W", piece.W);
  visit_parameter(f, "b", piece.b);
  visit_parameter(f, "gain", piece.gain);
}

Piece random_piece(Rng& rng, Index rows = 3, Index cols = 2) {
  Piece piece{.W = normal_matrix(rng, rows, cols)};
  piece.b = normal_matrix(rng, 4, 1);
  piece.gain = rng.normal();
  return piece;
}

bool same(const Piece& a, const Piece& b) {
  return a.W == b.W && a.b == b.b && a.gain == b.gain;
}

TEST_CASE("learning_rate: rises to the warm-up step, then falls as its root", "[train]") {
  const LearningRate rate{
      .kind = LearningRate::Kind::warm_up, .gamma = 1.0, .width = 512, .warm_up = 4000};
  // 512^-1/2 4000^-1/2
  CHECK(learning_rate(rate, 4000) == Approx(6.987712429686843e-4).epsilon(1e-15));
  CHECK(learning_rate(rate, 1000) == Approx(learning_rate(rate, 4000) / 4).epsilon(1e-15));
  CHECK(learning_rate(rate, 16000) == Approx(learning_rate(rate, 4000) / 2).epsilon(1e-15));
  CHECK(learning_rate(rate, 3999) < learning_rate(rate, 4000));
  CHECK(learning_rate(rate, 4001) < learning_rate(rate, 4000));
  CHECK(learning_rate({.kind = LearningRate::Kind::warm_up, .gamma = 0.4, .width = 1, .warm_up = 1},
                      25) == Approx(0.08).epsilon(1e-15));
  CHECK(learning_rate({.gamma = 0.25}, 1) == 0.25);
  CHECK(learning_rate({.gamma = 0.25}, 1000000) == 0.25);
}

TEST_CASE("learning_rate: refuses what is out of range", "[train]") {
  CHECK_THROWS_WITH(learning_rate({}, 0), "learning_rate: step must be at least 1, got 0");
  CHECK_THROWS_AS(learning_rate({.gamma = 0.0}, 1), std::invalid_argument);
  CHECK_THROWS_AS(learning_rate({.gamma = std::nan("")}, 1), std::invalid_argument);
  CHECK_THROWS_AS(learning_rate({.kind = LearningRate::Kind::warm_up, .warm_up = 0}, 1),
                  std::invalid_argument);
  CHECK_THROWS_AS(learning_rate({.kind = LearningRate::Kind::warm_up, .width = 0}, 1),
                  std::invalid_argument);
}

TEST_CASE("Adam: steps are those of the sums that its recurrences stand for", "[train]") {
  const AdamOptions options{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3};
  const double rate = 0.1;
  Rng rng(3);
  Piece piece = random_piece(rng);
  const Piece start = piece;
  Adam adam(piece, options);
  std::vector<Piece> gradients;
  for (int t = 0; t < 6; ++t) {
    gradients.push_back(random_piece(rng));
    CHECK(adam.step(piece, gradients.back(), rate).taken);
  }
  CHECK(adam.steps() == 6);

  // x_t = x_0 - rate sum over s of m̂_s/(√v̂_s + ε), with m̂_s = Σ_r β₁^(s-r) g_r / Σ_r β₁^(s-r).
  const auto expected = [&](double x, const auto& gradient_of) {
    for (std::size_t s = 0; s < gradients.size(); ++s) {
      double m = 0.0;
      double v = 0.0;
      double weight_m = 0.0;
      double weight_v = 0.0;
      for (std::size_t r = 0; r <= s; ++r) {
        const double g = gradient_of(gradients[r]);
        const auto age = static_cast<double>(s - r);
        m += std::pow(options.beta1, age) * g;
        v += std::pow(options.beta2, age) * g * g;
        weight_m += std::pow(options.beta1, age);
        weight_v += std::pow(options.beta2, age);
      }
      x -= rate * (m / weight_m) / (std::sqrt(v / weight_v) + options.epsilon);
    }
    return x;
  };
  for (Index k = 0; k < 6; ++k) {
    CHECK(piece.W(k / 2, k % 2) == Approx(expected(start.W(k / 2, k % 2), [&](const Piece& g) {
                                     return g.W(k / 2, k % 2);
                                   })).epsilon(1e-13));
  }
  CHECK(piece.b(3) ==
        Approx(expected(start.b(3), [](const Piece& g) { return g.b(3); })).epsilon(1e-13));
  CHECK(piece.gain ==
        Approx(expected(start.gain, [](const Piece& g) { return g.gain; })).epsilon(1e-13));
}

TEST_CASE("Adam: a gradient that stays moves by rate |g|/(|g| + epsilon) each step", "[train]") {
  const double g = GENERATE(-3.0, 1e-8, 1e-100, 1e150, 0.0);
  CAPTURE(g);
  Piece piece{.W = Matrix::Zero(1, 1)};
  Adam adam(piece);
  for (int t = 1; t <= 50; ++t) {
    const AdamStep step = adam.step(piece, {.W = Matrix::Constant(1, 1, g)}, 0.5);
    CHECK(step.gradient_norm == std::abs(g));
    CHECK(step.taken);
    CHECK(piece.W(0, 0) == Approx(-0.5 * t * g / (std::abs(g) + 1e-8)).epsilon(1e-12));
  }
}

TEST_CASE("Adam: comes to rest at the minimum of a quadratic form", "[train]") {
  Rng rng(5);
  const Matrix a = normal_matrix(rng, 8, 4);
  const Vector scale = (Vector(4) << 0.3, 1.0, 3.0, 10.0).finished();
  const Matrix hessian = scale.asDiagonal() * (a.transpose() * a) * scale.asDiagonal();
  const Vector minimum = normal_matrix(rng, 4, 1);
  Piece piece{.b = Vector::Zero(4)};
  Adam adam(piece);
  for (Index t = 1; t <= 20000; ++t) {
    const Vector gradient = hessian * (piece.b - minimum);
    const double rate = 0.05 * std::pow(0.9990, static_cast<double>(t));
    REQUIRE(adam.step(piece, {.b = gradient}, rate).taken);
  }
  CHECK((piece.b - minimum).norm() < 1e-6);
}

TEST_CASE("Adam: a clipped gradient has the norm asked for, others stay as they are", "[train]") {
  Rng rng(7);
  Piece clipped = random_piece(rng);
  Piece expected = clipped;
  const Piece gradient = random_piece(rng);
  const double norm = std::sqrt(gradient.W.squaredNorm() + gradient.b.squaredNorm() +
                                gradient.gain * gradient.gain);
  Piece half = gradient;
  half.W *= 0.5;
  half.b *= 0.5;
  half.gain *= 0.5;
  const AdamOptions plain{.epsilon = 0.1};  // or steps would not see the size of a gradient
  AdamOptions clip = plain;
  clip.clip_norm = norm / 2.0;
  Adam with(clipped, clip);
  Adam without(expected, plain);
  CHECK(with.step(clipped, gradient, 0.1).gradient_norm == Approx(norm).epsilon(1e-15));
  CHECK(without.step(expected, half, 0.1).taken);
  CHECK((clipped.W - expected.W).norm() < 1e-15);
  CHECK(clipped.gain == Approx(expected.gain).epsilon(1e-14));
  CHECK(with.step(clipped, half, 0.1).taken);  // at the limit, up to rounding
  CHECK(without.step(expected, half, 0.1).taken);
  CHECK((clipped.b - expected.b).norm() < 1e-14);
}

TEST_CASE("Adam: a gradient that is no number, or whose square is none, changes nothing",
          "[train]") {
  const double bad = GENERATE(std::nan(""), HUGE_VAL, -HUGE_VAL, 1e155, -1e300);
  CAPTURE(bad);
  Rng rng(9);
  Piece piece = random_piece(rng);
  Adam adam(piece);
  REQUIRE(adam.step(piece, random_piece(rng), 0.1).taken);
  const Piece before = piece;
  Safetensors state;
  adam.store(state);
  Piece gradient = random_piece(rng);
  gradient.W(2, 1) = bad;
  const AdamStep step = adam.step(piece, gradient, 0.1);
  CHECK_FALSE(step.taken);
  CHECK_FALSE(step.gradient_norm < 1e154);
  CHECK(std::isfinite(step.gradient_norm) == std::isfinite(bad));
  CHECK(same(piece, before));
  Safetensors after;
  adam.store(after);
  for (const auto& [name, array] : state.tensors) {
    CHECK(after.tensors.at(name).data == array.data);
  }
  CHECK(adam.steps() == 1);

  // Clipped, the large ones are as good as any.
  Adam clipping(piece, {.clip_norm = 1.0});
  CHECK(clipping.step(piece, gradient, 0.1).taken == std::isfinite(bad));
}

TEST_CASE("Adam: stored and loaded, it goes on to the same bits", "[train]") {
  const TemporaryFolder folder;
  const auto path = folder / "state.safetensors";
  const auto gradient = [](Index t) {
    Rng rng(11, static_cast<std::uint64_t>(t));
    return random_piece(rng);
  };
  Rng rng(13);
  Piece whole = random_piece(rng);
  Piece halves = whole;
  Adam uninterrupted(whole);
  for (Index t = 1; t <= 20; ++t) {
    REQUIRE(uninterrupted.step(whole, gradient(t), 0.01).taken);
  }
  {
    Adam first(halves);
    for (Index t = 1; t <= 9; ++t) {
      REQUIRE(first.step(halves, gradient(t), 0.01).taken);
    }
    Safetensors file;
    first.store(file);
    write_safetensors(path, file);
  }
  Adam second(halves);
  second.load(read_safetensors(path));
  CHECK(second.steps() == 9);
  for (Index t = 10; t <= 20; ++t) {
    REQUIRE(second.step(halves, gradient(t), 0.01).taken);
  }
  CHECK(same(whole, halves));
  Adam fresh(halves);  // the test would see a state that is lost
  for (Index t = 10; t <= 20; ++t) {
    REQUIRE(fresh.step(halves, gradient(t), 0.01).taken);
  }
  CHECK_FALSE(same(whole, halves));
}

TEST_CASE("Adam: a state that does not fit is refused and changes nothing", "[train]") {
  Rng rng(15);
  Piece piece = random_piece(rng);
  Adam adam(piece);
  REQUIRE(adam.step(piece, random_piece(rng), 0.1).taken);
  Safetensors file;
  adam.store(file, "optimiser.");
  CHECK(file.tensors.size() == 7);
  Adam other(piece);
  CHECK_THROWS_WITH(other.load(file, "adam."), Contains("expected a tensor \"adam.steps\""));
  Safetensors bad = file;
  bad.origin = "c.safetensors";
  bad.tensors.at("optimiser.steps") = to_array(1.5);
  CHECK_THROWS_WITH(other.load(bad, "optimiser."),
                    "c.safetensors: tensor \"optimiser.steps\": expected a whole number from 0, "
                    "found 1.5");
  bad = file;
  bad.tensors.at("optimiser.v.b").data[1] = -1.0;
  CHECK_THROWS_AS(other.load(bad, "optimiser."), std::runtime_error);
  bad = file;
  bad.tensors.erase("optimiser.m.gain");
  CHECK_THROWS_AS(other.load(bad, "optimiser."), std::runtime_error);
  CHECK(other.steps() == 0);
  Safetensors state;
  other.store(state);
  CHECK(state.tensors.at("adam.m.W").data == std::vector<double>(6, 0.0));
}

TEST_CASE("Adam: refuses options, rates and shapes that do not fit", "[train]") {
  Rng rng(17);
  Piece piece = random_piece(rng);
  const Piece gradient = random_piece(rng);
  for (const AdamOptions& options :
       {AdamOptions{.beta1 = 1.0}, AdamOptions{.beta2 = -0.1}, AdamOptions{.epsilon = 0.0},
        AdamOptions{.clip_norm = 0.0}, AdamOptions{.clip_norm = std::nan("")}}) {
    CHECK_THROWS_AS(Adam(piece, options), std::invalid_argument);
  }
  Adam adam(piece);
  CHECK_THROWS_AS(adam.step(piece, gradient, -0.1), std::invalid_argument);
  CHECK_THROWS_AS(adam.step(piece, gradient, std::nan("")), std::invalid_argument);
  CHECK_THROWS_WITH(adam.step(piece, Piece{.W = gradient.W, .b = Vector::Ones(3)}, 0.1),
                    Contains("gradients must have names and shapes as at the start"));
  CHECK_THROWS_WITH(adam.step(piece, Piece{.W = gradient.W}, 0.1),
                    "Adam: gradients must be 3 arrays as at the start, got 2");
}

TEST_CASE("Adam: the same bits whatever the number of threads", "[train]") {
  Rng rng(19);
  Piece one = random_piece(rng, 250, 333);
  Piece many = one;
  const Piece gradient = random_piece(rng, 250, 333);
  const auto step = [&](Piece& piece, Index threads) {
    const ThreadLimit limit(threads);
    Adam adam(piece, {.clip_norm = 1.0});
    return adam.step(piece, gradient, 0.1).gradient_norm;
  };
  CHECK(step(one, 1) == step(many, 4));
  CHECK(same(one, many));
}

}  // namespace
}  // namespace lipsa
