#include "lipsa/model/lstm.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "lipsa/core/parallel.hpp"
#include "piece_checks.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

struct Shape {
  Index B, n, D, K;
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "B=" << s.B << " n=" << s.n << " D=" << s.D << " K=" << s.K;
}

/// One of everything, wide, tall, more sequences than run at once.
const std::vector<Shape> shapes{{1, 1, 1, 1}, {3, 1, 2, 4},  {2, 5, 1, 3},
                                {1, 7, 6, 1}, {35, 3, 2, 2}, {3, 30, 5, 8}};

Lstm random_lstm(Rng& rng, Index D, Index K) {
  const auto weight = [&](Index rows) -> Matrix {
    return normal_matrix(rng, rows, 4 * K) / std::sqrt(static_cast<double>(rows));
  };
  Lstm lstm;
  lstm.W_X = weight(D);
  lstm.W_H = weight(K);
  lstm.b = normal_matrix(rng, 4 * K, 1);
  return lstm;
}

double sigma(double a) {
  return 1.0 / (1.0 + std::exp(-a));
}

/// The equations, one sequence, one unit at a time.
Matrix by_the_equations(const Lstm& lstm, const Matrix& x, Index n) {
  const Index K = lstm.hidden_width();
  Matrix h(x.rows(), K);
  for (Index start = 0; start < x.rows(); start += n) {
    Vector state = Vector::Zero(K);
    Vector last = Vector::Zero(K);
    for (Index t = start; t < start + n; ++t) {
      const Vector a =
          lstm.W_X.transpose() * x.row(t).transpose() + lstm.W_H.transpose() * last + lstm.b;
      for (Index k = 0; k < K; ++k) {
        state(k) = sigma(a(K + k)) * state(k) + sigma(a(k)) * std::tanh(a(2 * K + k));
        last(k) = sigma(a(3 * K + k)) * std::tanh(state(k));
      }
      h.row(t) = last.transpose();
    }
  }
  return h;
}

TEST_CASE("LstmAt: two tokens of one unit by hand", "[model]") {
  Lstm lstm;
  lstm.W_X = (Matrix(1, 4) << 0.5, -1.0, 2.0, 0.25).finished();
  lstm.W_H = (Matrix(1, 4) << 1.0, 0.5, -0.5, 3.0).finished();
  lstm.b = (Vector(4) << 0.1, 0.2, 0.3, 0.4).finished();
  const Matrix x = (Matrix(2, 1) << 1.5, -0.5).finished();
  const double c1 = sigma(0.85) * std::tanh(3.3);
  const double h1 = sigma(0.775) * std::tanh(c1);
  const double c2 = sigma(0.7 + 0.5 * h1) * c1 + sigma(-0.15 + h1) * std::tanh(-0.7 - 0.5 * h1);
  const double h2 = sigma(0.275 + 3.0 * h1) * std::tanh(c2);
  const LstmAt at(lstm, x, 2);
  CHECK(at.output()(0, 0) == Approx(h1).epsilon(1e-15));
  CHECK(at.output()(1, 0) == Approx(h2).epsilon(1e-15));
  const LstmAt apart(lstm, x, 1);  // the same rows as two sequences: nothing is carried over
  const double c = sigma(-0.15) * std::tanh(-0.7);
  CHECK(apart.output()(1, 0) == Approx(sigma(0.275) * std::tanh(c)).epsilon(1e-15));
}

TEST_CASE("LstmAt: with open gates and no recurrence it sums, and so does its Jacobian",
          "[model]") {
  // σ(40) is 1 in double: h_t = tanh(Σ_{s ≤ t} tanh(x_s W)).
  Rng rng(1);
  const Index n = 6;
  Lstm lstm;
  lstm.W_X = Matrix::Zero(3, 8);
  lstm.W_X.middleCols(4, 2) = normal_matrix(rng, 3, 2);
  lstm.W_H = Matrix::Zero(2, 8);
  lstm.b = Vector::Constant(8, 40.0);
  lstm.b.segment(4, 2).setZero();
  const Matrix x = normal_matrix(rng, n, 3);
  const Matrix v = normal_matrix(rng, n, 3);
  const Matrix W = lstm.W_X.middleCols(4, 2);
  const Matrix g = (x * W).array().tanh();
  const Matrix dg = (1.0 - g.array().square()) * (v * W).array();
  const LstmAt at(lstm, x, n);
  const Matrix jv = at.apply(v);
  for (Index t = 0; t < n; ++t) {
    const Eigen::RowVectorXd h = g.topRows(t + 1).colwise().sum().array().tanh();
    CHECK((at.output().row(t) - h).norm() < 1e-15);
    const Eigen::RowVectorXd dh =
        (1.0 - h.array().square()) * dg.topRows(t + 1).colwise().sum().array();
    CHECK((jv.row(t) - dh).norm() < 1e-14);
  }
}

TEST_CASE("LstmAt: is what the equations say, at every shape", "[model]") {
  const Shape s = GENERATE(from_range(shapes));
  CAPTURE(s);
  Rng rng(2);
  const Lstm lstm = random_lstm(rng, s.D, s.K);
  const Matrix x = normal_matrix(rng, s.B * s.n, s.D);
  const LstmAt at(lstm, x, s.n);
  CHECK(at.rows() == s.B * s.n);
  CHECK(at.input_width() == s.D);
  CHECK(at.output_width() == s.K);
  CHECK((at.output() - by_the_equations(lstm, x, s.n)).cwiseAbs().maxCoeff() < 1e-13);
}

TEST_CASE("LstmAt: derivatives agree with each other and with differences", "[model]") {
  const Shape s = GENERATE(from_range(shapes));
  CAPTURE(s);
  Rng rng(3);
  const Lstm lstm = random_lstm(rng, s.D, s.K);
  const Matrix x = normal_matrix(rng, s.B * s.n, s.D);
  CHECK(test::adjoint_error(LstmAt(lstm, x, s.n), rng) < test::adjoint_tolerance);
  const auto at_x = [&](const Matrix& point) { return LstmAt(lstm, point, s.n); };
  CHECK(test::input_derivative_error(at_x, x, rng) < test::difference_tolerance);
  const auto at_weights = [&](const Lstm& weights) { return LstmAt(weights, x, s.n); };
  CHECK(test::backward_error(lstm, at_weights, rng) < test::difference_tolerance);
}

/// An LstmAt with one entry of one derivative off by a millionth.
struct Faulty {
  enum class Fault { none, apply, adjoint, W_X, W_H, b };
  Fault fault;
  LstmAt at;

  Index rows() const { return at.rows(); }
  Index input_width() const { return at.input_width(); }
  Index output_width() const { return at.output_width(); }
  const Matrix& output() const { return at.output(); }
  Matrix apply(const Matrix& v) const {
    Matrix jv = at.apply(v);
    jv(2, 1) += fault == Fault::apply ? 1e-6 * v(0, 0) : 0.0;
    return jv;
  }
  Matrix apply_adjoint(const Matrix& u) const {
    Matrix gx = at.apply_adjoint(u);
    gx(1, 0) += fault == Fault::adjoint ? 1e-6 * u(3, 0) : 0.0;
    return gx;
  }
  Matrix backward(const Matrix& u, Lstm& gradient) const {
    at.backward(u, gradient);
    gradient.W_X(0, 1) += fault == Fault::W_X ? 1e-6 * u(0, 0) : 0.0;
    gradient.W_H(0, 0) += fault == Fault::W_H ? 1e-6 * u(0, 0) : 0.0;
    gradient.b(2) += fault == Fault::b ? 1e-6 * u(0, 0) : 0.0;
    return apply_adjoint(u);
  }
};

TEST_CASE("LstmAt: the checks of its derivatives see a millionth in one entry", "[model]") {
  using Fault = Faulty::Fault;
  const auto fault =
      GENERATE(Fault::none, Fault::apply, Fault::adjoint, Fault::W_X, Fault::W_H, Fault::b);
  CAPTURE(static_cast<int>(fault));
  Rng rng(4);
  const Lstm lstm = random_lstm(rng, 2, 2);
  const Matrix x = normal_matrix(rng, 4, 2);
  const auto at_x = [&](const Matrix& point) { return Faulty{fault, LstmAt(lstm, point, 2)}; };
  const auto at_weights = [&](const Lstm& weights) { return Faulty{fault, LstmAt(weights, x, 2)}; };
  CHECK((test::adjoint_error(at_x(x), rng) < test::adjoint_tolerance) ==
        (fault != Fault::apply && fault != Fault::adjoint));
  CHECK((test::input_derivative_error(at_x, x, rng) < test::difference_tolerance) ==
        (fault != Fault::apply));
  CHECK((test::backward_error(lstm, at_weights, rng) < test::difference_tolerance) ==
        (fault != Fault::W_X && fault != Fault::W_H && fault != Fault::b));
}

TEST_CASE("LstmAt: a batch of three is three batches of one", "[model]") {
  Rng rng(5);
  const Index n = 9;
  const Lstm lstm = random_lstm(rng, 4, 6);
  const Matrix x = normal_matrix(rng, 3 * n, 4);
  const Matrix v = normal_matrix(rng, 3 * n, 4);
  const Matrix u = normal_matrix(rng, 3 * n, 6);
  const LstmAt all(lstm, x, n);
  Lstm gradient = zeros_like(lstm);
  const Matrix gx = all.backward(u, gradient);
  Lstm sum = zeros_like(lstm);
  for (Index b = 0; b < 3; ++b) {
    const LstmAt one(lstm, x.middleRows(b * n, n), n);
    const auto differs = [&](const Matrix& whole, const Matrix& part) {
      return (whole.middleRows(b * n, n) - part).cwiseAbs().maxCoeff();
    };
    CHECK(differs(all.output(), one.output()) < 1e-14);
    CHECK(differs(all.apply(v), one.apply(v.middleRows(b * n, n))) < 1e-13);
    CHECK(differs(gx, one.backward(u.middleRows(b * n, n), sum)) < 1e-13);
  }
  CHECK((gradient.W_X - sum.W_X).cwiseAbs().maxCoeff() < 1e-12);
  CHECK((gradient.W_H - sum.W_H).cwiseAbs().maxCoeff() < 1e-12);
  CHECK((gradient.b - sum.b).cwiseAbs().maxCoeff() < 1e-12);
}

TEST_CASE("LstmAt: no token sees a later one, and NaN goes no other way", "[model]") {
  Rng rng(6);
  const Lstm lstm = random_lstm(rng, 2, 3);
  Matrix x = normal_matrix(rng, 8, 2);
  const Matrix before = LstmAt(lstm, x, 4).output();
  x(2, 1) = std::numeric_limits<double>::quiet_NaN();
  const Matrix after = LstmAt(lstm, x, 4).output();
  CHECK(after.topRows(2) == before.topRows(2));
  CHECK(after.middleRows(2, 2).array().isNaN().all());
  CHECK(after.bottomRows(4) == before.bottomRows(4));
}

TEST_CASE("LstmAt: zero weights, equal tokens and a huge token stay finite", "[model]") {
  const Lstm none{.W_X = Matrix::Zero(2, 12), .W_H = Matrix::Zero(3, 12), .b = Vector::Zero(12)};
  Rng rng(7);
  const Matrix x = normal_matrix(rng, 6, 2);
  CHECK(LstmAt(none, x, 3).output() == Matrix::Zero(6, 3));  // g = tanh(0)
  CHECK(LstmAt(none, x, 3).apply(x) == Matrix::Zero(6, 3));

  const Lstm lstm = random_lstm(rng, 2, 3);
  Matrix wild = Matrix::Ones(6, 2);
  wild.row(4) *= 1e300;
  const LstmAt at(lstm, wild, 3);
  CHECK((at.output().row(0) - at.output().row(3)).norm() < 1e-15);
  CHECK(at.output().cwiseAbs().maxCoeff() <= 1.0);
  CHECK(at.apply(x).allFinite());
  CHECK(at.apply_adjoint(at.output()).allFinite());
}

TEST_CASE("LstmAt: the same bits whatever the number of threads", "[model]") {
  Rng rng(8);
  const Lstm lstm = random_lstm(rng, 30, 40);
  const Matrix x = normal_matrix(rng, 50 * 20, 30);
  const Matrix u = normal_matrix(rng, 50 * 20, 40);
  const auto run = [&](Index threads) {
    const ThreadLimit limit(threads);
    const LstmAt at(lstm, x, 20);
    Lstm gradient = zeros_like(lstm);
    const Matrix gx = at.backward(u, gradient);
    return std::tuple{Matrix(at.output()), at.apply(x), gx, gradient.W_X, gradient.W_H, gradient.b};
  };
  CHECK(run(1) == run(4));
}

TEST_CASE("initial_lstm: uniform gates of Glorot's width, and the state kept at first", "[model]") {
  Rng rng(9);
  const Lstm lstm = initial_lstm(30, 50, rng);
  CHECK(lstm.W_X.rows() == 30);
  CHECK(lstm.W_H.rows() == 50);
  const auto fits = [](const Matrix& W, double limit) {
    const double variance = W.squaredNorm() / static_cast<double>(W.size());
    return W.cwiseAbs().maxCoeff() <= limit &&
           std::abs(variance / (limit * limit / 3.0) - 1.0) < 0.05;
  };
  CHECK(fits(lstm.W_X, std::sqrt(6.0 / 80)));
  CHECK(fits(lstm.W_H, std::sqrt(6.0 / 100)));
  CHECK(lstm.b.segment(50, 50) == Vector::Ones(50));
  CHECK(lstm.b.sum() == 50.0);
  CHECK_THROWS_AS(initial_lstm(0, 1, rng), std::invalid_argument);
  CHECK_THROWS_AS(initial_lstm(1, 0, rng), std::invalid_argument);
}

TEST_CASE("LstmAt: refuses shapes that do not fit", "[model]") {
  Rng rng(10);
  const Lstm lstm = random_lstm(rng, 2, 3);
  const Matrix x = normal_matrix(rng, 6, 2);
  CHECK_THROWS_WITH(LstmAt(lstm, x, 4), Contains("x must have a multiple of 4 rows"));
  CHECK_THROWS_AS(LstmAt(lstm, x, 0), std::invalid_argument);
  CHECK_THROWS_AS(LstmAt(lstm, Matrix(0, 2), 1), std::invalid_argument);
  CHECK_THROWS_WITH(LstmAt(lstm, Matrix::Ones(6, 3), 2), Contains("x must have 2 columns"));
  Lstm bad = lstm;
  bad.b = Vector::Ones(11);
  CHECK_THROWS_WITH(LstmAt(bad, x, 2), Contains("must have 4 K = 12 columns"));
  bad = lstm;
  bad.W_X = Matrix::Ones(2, 11);
  CHECK_THROWS_AS(LstmAt(bad, x, 2), std::invalid_argument);
  CHECK_THROWS_AS(LstmAt(Lstm{}, x, 2), std::invalid_argument);
  const LstmAt at(lstm, x, 2);
  CHECK_THROWS_AS(at.apply(Matrix::Ones(6, 3)), std::invalid_argument);
  CHECK_THROWS_AS(at.apply_adjoint(Matrix::Ones(5, 3)), std::invalid_argument);
  CHECK_THROWS_AS(at.backward(at.output(), bad), std::invalid_argument);
}

}  // namespace
}  // namespace lipsa
