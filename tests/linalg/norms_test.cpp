#include "lipsa/linalg/norms.hpp"

#include <Eigen/SVD>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

Matrix make(Index rows, Index cols, std::initializer_list<double> entries) {
  Matrix m(rows, cols);
  std::copy(entries.begin(), entries.end(), m.data());
  return m;
}

/// Entries ±1, orthogonal rows: the spectral norm is √n, exact for n = 4^k.
Matrix hadamard(Index n) {
  Matrix h = Matrix::Ones(1, 1);
  while (h.rows() < n) {
    Matrix next(2 * h.rows(), 2 * h.rows());
    next << h, h, h, -h;
    h = next;
  }
  return h;
}

using Quad = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

/// A lower bound on |A|_2, in exact arithmetic, with 64 bits: the gain ‖A x‖ / ‖x‖ at the leading
/// right vector.
long double gain(const Matrix& a) {
  const Eigen::JacobiSVD<Quad> svd(a.cast<long double>(), Eigen::ComputeThinV);
  const auto x = svd.matrixV().col(0);
  return (a.cast<long double>() * x).norm() / x.norm();
}

TEST_CASE("norms: of small matrices worked by hand", "[linalg]") {
  const Matrix a = make(2, 3, {1, -2, 3, -4, 5, -6});
  CHECK(norm_1(a) == 9.0);
  CHECK(norm_inf(a) == 15.0);
  CHECK(norm_frobenius(make(1, 2, {3, 4})) == 5.0);
  CHECK(mixed_norm(make(2, 2, {3, 4, 0, 12}), Norm::one) == 17.0);
  CHECK(mixed_norm(make(2, 2, {3, 4, 0, 12}), Norm::two) == 13.0);
  CHECK(mixed_norm(make(2, 2, {3, 4, 0, 12}), Norm::inf) == 12.0);
}

TEST_CASE("norms: huge and tiny entries neither overflow nor vanish", "[linalg]") {
  const auto scale = GENERATE(0x1p-1060, 0x1p-1022, 0x1p-600, 0x1p600, 0x1p1018);
  CAPTURE(scale);
  const Matrix a = scale * make(2, 2, {3, 4, 0, 12});
  CHECK(norm_frobenius(a) == 13.0 * scale);
  CHECK(mixed_norm(a, Norm::one) == 17.0 * scale);
  CHECK(norm_1(a) == 16.0 * scale);
  CHECK(upper_bound_norm_frobenius(a) == 13.0 * scale);
  CHECK(upper_bound_spectral_norm(scale * make(2, 2, {3, 4, 0, 0})) >= 5.0 * scale);
}

TEST_CASE("norms: empty and zero matrices have norm zero", "[linalg]") {
  const auto [rows, cols] = GENERATE(table<Index, Index>({{0, 0}, {0, 3}, {3, 0}, {1, 1}, {4, 9}}));
  const Matrix a = Matrix::Zero(rows, cols);
  for (auto* norm : {norm_1, norm_inf, norm_frobenius, upper_bound_norm_1, upper_bound_norm_inf,
                     upper_bound_norm_frobenius, upper_bound_spectral_norm}) {
    CHECK(norm(a) == 0.0);
  }
  for (const Norm p : {Norm::one, Norm::two, Norm::inf}) {
    CHECK(mixed_norm(a, p) == 0.0);
    CHECK(upper_bound_mixed_operator_norm(a, 1, 1, p) == 0.0);
  }
}

TEST_CASE("norms: a NaN or an infinity is refused", "[linalg]") {
  const auto bad =
      GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  Matrix a = Matrix::Identity(3, 3);
  a(1, 2) = bad;
  for (auto* norm : {norm_1, norm_inf, norm_frobenius, upper_bound_norm_1, upper_bound_norm_inf,
                     upper_bound_norm_frobenius, upper_bound_spectral_norm}) {
    CHECK_THROWS_AS(norm(a), std::invalid_argument);
  }
  CHECK_THROWS_AS(mixed_norm(a, Norm::one), std::invalid_argument);
  CHECK_THROWS_WITH(upper_bound_spectral_norm(a),
                    "upper_bound_spectral_norm: matrix must be finite, got an infinity or a NaN");
}

TEST_CASE("Norm: names are read back, others refused", "[linalg]") {
  for (const Norm p : {Norm::one, Norm::two, Norm::inf}) {
    CHECK(parse_norm(to_string(p)) == p);
  }
  CHECK_THROWS_WITH(parse_norm("2 "), "parse_norm: text must be 1, 2, inf or max-token, got '2 '");
}

TEST_CASE("upper bounds: cover sums that round down, and no more", "[linalg]") {
  // 1 + 2^-53 + 2^-53 rounds to 1 in double.
  const Matrix row = make(1, 3, {1.0, 0x1p-53, 0x1p-53});
  CHECK(norm_inf(row) == 1.0);
  CHECK(upper_bound_norm_inf(row) > 1.0);
  CHECK(upper_bound_norm_1(row.transpose()) == upper_bound_norm_inf(row));
  CHECK(upper_bound_norm_inf(row) <= 1.0 + 0x1p-51);
  CHECK(upper_bound_norm_frobenius(make(1, 2, {1.0, 0x1p-27})) > 1.0);
  CHECK(upper_bound_norm_inf(Matrix::Identity(50, 50)) == 1.0);
}

TEST_CASE("upper bounds: the 1-, inf- and Frobenius bounds hold against 64-bit sums", "[linalg]") {
  const auto seed = GENERATE(range(0U, 30U));
  Rng rng(seed);
  const Index rows = 1 + static_cast<Index>(40.0 * rng.uniform());
  const Index cols = 1 + static_cast<Index>(40.0 * rng.uniform());
  const Matrix a = normal_matrix(rng, rows, cols);
  const Quad q = a.cast<long double>();
  const long double one = q.cwiseAbs().colwise().sum().maxCoeff();
  const long double inf = q.cwiseAbs().rowwise().sum().maxCoeff();
  const auto check = [](long double bound, long double truth) {
    CHECK(bound >= truth * (1.0L - 1e-17L));
    CHECK(bound <= truth * (1.0L + 4e-13L));
  };
  check(upper_bound_norm_1(a), one);
  check(upper_bound_norm_inf(a), inf);
  check(upper_bound_norm_frobenius(a), q.norm());
}

struct Known {
  const char* name;
  Matrix a;
  double norm;
};

TEST_CASE("upper_bound_spectral_norm: at or above norms known exactly, within 1e-12", "[linalg]") {
  const Known known = GENERATE(values<Known>(
      {{"2I", 2.0 * Matrix::Identity(5, 5), 2.0},
       {"diag(1,-1)", make(2, 2, {1, 0, 0, -1}), 1.0},
       {"diag(4,1)", make(2, 2, {4, 0, 0, 1}), 4.0},
       {"shift", make(2, 2, {0, 1, 0, 0}), 1.0},
       {"rank one", make(4, 1, {2, 4, 4, 8}) * make(1, 2, {3, 4}), 50.0},
       {"wide rank one", make(2, 1, {3, 4}) * make(1, 4, {2, 4, 4, 8}), 50.0},
       {"rotation", make(2, 2, {3, -4, 4, 3}), 5.0},
       {"complex 7+24i, twice",
        make(4, 4,
             {7, -24, 0, 0, 24, 7, 0, 0,  //
              0, 0, 7, -24, 0, 0, 24, 7}),
        25.0},
       {"Hadamard 16", hadamard(16), 4.0},
       {"Hadamard 64", hadamard(64), 8.0},
       {"Hadamard 256", hadamard(256), 16.0},
       {"Hadamard rows", hadamard(64).topRows(5), 8.0},
       {"graded Hadamard", hadamard(16) * Vector::LinSpaced(16, 0.0, 15.0).asDiagonal(), 60.0},
       {"ones", Matrix::Ones(32, 8), 16.0}}));
  const auto scale = GENERATE(0x1p-1000, 0x1p-664, 1.0, 0x1p664, 0x1p1000);
  CAPTURE(known.name, scale);
  const double bound = upper_bound_spectral_norm(scale * known.a) / scale;
  CHECK(bound >= known.norm);
  // Tight; read the other way: the same bound shrunk by one part in 10¹² is caught.
  CHECK(bound * (1.0 - 1e-12) < known.norm);
}

TEST_CASE("upper_bound_spectral_norm: holds for random matrices against 64-bit gains", "[linalg]") {
  const auto seed = GENERATE(range(0U, 40U));
  const auto kind = GENERATE(0, 1, 2, 3);
  CAPTURE(seed, kind);
  Rng rng(seed, static_cast<unsigned>(kind));
  const Index rows = 1 + static_cast<Index>(12.0 * rng.uniform());
  const Index cols = 1 + static_cast<Index>(12.0 * rng.uniform());
  Matrix a = normal_matrix(rng, rows, cols);
  if (kind == 1) {  // rank one
    a = normal_matrix(rng, rows, 1) * normal_matrix(rng, 1, cols);
  } else if (kind == 2) {  // nearly a multiple of an isometry
    a = 1e-9 * a;
    a.diagonal().array() += 1.0;
  } else if (kind == 3) {  // graded over the whole range of doubles
    for (Index j = 0; j < cols; ++j) {
      a.col(j) *= std::pow(10.0, -40.0 * static_cast<double>(j));
    }
  }
  const long double below = gain(a);
  const long double bound = upper_bound_spectral_norm(a);
  CHECK(bound >= below * (1.0L - 1e-17L));
  CHECK(bound * (1.0L - 1e-12L) < below);
}

TEST_CASE("upper_bound_spectral_norm: within 1e-12 of a dense SVD at 256 x 256", "[linalg]") {
  const auto [rows, cols] = GENERATE(table<Index, Index>({{256, 256}, {300, 40}, {40, 300}}));
  CAPTURE(rows, cols);
  Rng rng(5);
  const Matrix a = normal_matrix(rng, rows, cols);
  const Vector v = Eigen::JacobiSVD<Matrix>(a, Eigen::ComputeThinV).matrixV().col(0);
  const long double below =
      (a.cast<long double>() * v.cast<long double>()).norm() / v.cast<long double>().norm();
  const long double bound = upper_bound_spectral_norm(a);
  CHECK(bound >= below);
  CHECK(bound <= below * (1.0L + 1e-12L));
}

TEST_CASE("upper_bound_spectral_norm: 1e190 times a 3 x 3 matrix of norm 3 + sqrt(3)", "[linalg]") {
  const Matrix a = 1e190 * make(3, 3, {4, 1, 0, 1, 3, 1, 0, 1, 2});
  CHECK(upper_bound_spectral_norm(a) == Approx((3.0 + std::sqrt(3.0)) * 1e190).epsilon(1e-14));
}

TEST_CASE("upper_bound_spectral_norm: subnormal and largest entries", "[linalg]") {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = std::numeric_limits<double>::max();
  CHECK(upper_bound_spectral_norm(tiny * Matrix::Identity(3, 3)) == tiny);
  CHECK(upper_bound_spectral_norm(tiny * Matrix::Ones(2, 2)) == 2.0 * tiny);
  CHECK(upper_bound_spectral_norm(make(1, 2, {tiny, tiny})) == 2.0 * tiny);  // √2, rounded up
  CHECK(upper_bound_spectral_norm(huge * Matrix::Identity(3, 3)) == huge);
  CHECK(upper_bound_spectral_norm(huge * Matrix::Ones(2, 2)) ==
        std::numeric_limits<double>::infinity());
  CHECK(upper_bound_spectral_norm(make(1, 2, {1e300, tiny})) > 1e300);  // lost by scaling, covered
}

TEST_CASE("estimate_block_gain: closed forms, and what random vectors cannot exceed", "[linalg]") {
  CHECK(estimate_block_gain(make(1, 4, {3, 4, 0, -12}), 2).value == Approx(17.0).epsilon(1e-14));
  CHECK(estimate_block_gain(make(1, 4, {3, 4, 0, -12}), 1).value == Approx(19.0).epsilon(1e-14));
  CHECK(estimate_block_gain(make(2, 2, {0, 1, 0, 0}), 2).value == Approx(1.0).epsilon(1e-14));
  CHECK(estimate_block_gain(Matrix::Zero(2, 2), 1).value == 0.0);
  CHECK_THROWS_AS(estimate_block_gain(Matrix::Zero(2, 3), 2), std::invalid_argument);

  const double scale = GENERATE(1.0, 1e200, 1e-200);
  Rng rng(3);
  const Matrix a = normal_matrix(rng, 3, 12) * scale;
  const BlockGain gain = estimate_block_gain(a, 4);
  const Matrix v = Eigen::Map<const Matrix>(gain.v.data(), 3, 4);
  CHECK(mixed_norm(v, Norm::inf) == Approx(1.0).epsilon(1e-14));
  CHECK(((a / scale) * gain.v).norm() == Approx(gain.value / scale).epsilon(1e-13));
  CHECK(gain.u.dot((a / scale) * gain.v) == Approx(gain.value / scale).epsilon(1e-13));
  CHECK(gain.value <= upper_bound_mixed_operator_norm(a, 3, 4, Norm::inf));
  for (int trial = 0; trial < 1000; ++trial) {
    Matrix x = normal_matrix(rng, 3, 4);
    x.rowwise().normalize();
    CHECK(((a / scale) * x.reshaped<Eigen::RowMajor>()).norm() <= gain.value / scale);
  }
}

TEST_CASE("estimate_block_gain: the highest of all directions of a plane", "[linalg]") {
  // max over unit u of sum_j |A_j^T u|_2, u = (cos t, sin t): what the climbs look for, by looking
  // everywhere.
  constexpr int angles = 2000;
  int missed = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const Index width = 1 + static_cast<Index>(seed % 3);
    const Matrix a = normal_matrix(rng, 2, 40 * width);
    double highest = 0.0;
    for (int k = 0; k < angles; ++k) {
      const double t = std::numbers::pi * k / angles;
      const Matrix g = std::cos(t) * a.row(0) + std::sin(t) * a.row(1);
      highest =
          std::max(highest, mixed_norm(Eigen::Map<const Matrix>(g.data(), 40, width), Norm::one));
    }
    const BlockGain gain = estimate_block_gain(a, width);
    CAPTURE(seed, highest);
    // Half a step beside a maximum lies lower by some (pi/4000)^2/2 of it.
    CHECK(gain.value <= highest * (1.0 + 1e-5));
    missed += gain.value < highest * (1.0 - 1e-9) ? 1 : 0;
  }
  CHECK(missed <= 40);  // two coordinates and one singular vector do not see every hill
}

TEST_CASE("estimate_block_gain: more rows than climbs at once", "[linalg]") {
  Rng rng(5);
  const Matrix a = normal_matrix(rng, 70, 12);
  const BlockGain gain = estimate_block_gain(a, 3);
  CHECK((a * gain.v).norm() == Approx(gain.value).epsilon(1e-13));
  // Each coordinate is a start, and no climb descends.
  for (Index i = 0; i < a.rows(); ++i) {
    Matrix v = Eigen::Map<const Matrix>(a.row(i).eval().data(), 4, 3);
    v.rowwise().normalize();
    CHECK((a * v.reshaped<Eigen::RowMajor>()).norm() <= gain.value * (1.0 + 1e-14));
  }
}

TEST_CASE("upper_bound_mixed_operator_norm: adds block norms by rows or columns", "[linalg]") {
  Matrix j = Matrix::Zero(4, 4);
  j.block(0, 0, 2, 2) = make(2, 2, {3, -4, 4, 3});
  j.block(0, 2, 2, 2) = 2.0 * Matrix::Identity(2, 2);
  j.block(2, 2, 2, 2) = make(2, 2, {0, 1, 0, 0});
  CHECK(upper_bound_mixed_operator_norm(j, 2, 2, Norm::inf) == Approx(7.0).epsilon(1e-12));
  CHECK(upper_bound_mixed_operator_norm(j, 2, 2, Norm::one) == Approx(5.0).epsilon(1e-12));
  CHECK(upper_bound_mixed_operator_norm(j, 2, 2, Norm::two) == upper_bound_spectral_norm(j));
  CHECK(upper_bound_mixed_operator_norm(j, 1, 1, Norm::inf) == upper_bound_norm_inf(j));
  CHECK(upper_bound_mixed_operator_norm(j, 4, 4, Norm::one) == upper_bound_spectral_norm(j));
  CHECK_THROWS_AS(upper_bound_mixed_operator_norm(j, 3, 2, Norm::inf), std::invalid_argument);
  CHECK_THROWS_AS(upper_bound_mixed_operator_norm(j, 2, 0, Norm::inf), std::invalid_argument);
}

TEST_CASE("upper_bound_mixed_operator_norm: no vector shows a larger gain", "[linalg]") {
  const auto seed = GENERATE(range(0U, 20U));
  const auto p = GENERATE(Norm::one, Norm::two, Norm::inf);
  CAPTURE(seed, to_string(p));
  Rng rng(seed);
  const Matrix j = normal_matrix(rng, 12, 10);  // 4 output tokens of 3, 2 input tokens of 5
  const double bound = upper_bound_mixed_operator_norm(j, 3, 5, p);
  for (int trial = 0; trial < 50; ++trial) {
    const Matrix x = normal_matrix(rng, 2, 5);
    Matrix y(4, 3);
    y.reshaped<Eigen::RowMajor>() = j * x.reshaped<Eigen::RowMajor>();
    CHECK(mixed_norm(y, p) <= bound * mixed_norm(x, p));
  }
}

}  // namespace
}  // namespace lipsa
