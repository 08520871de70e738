#include "linalg/enclosed_matrix.hpp"

#include <Eigen/SVD>
#include <catch2/catch.hpp>
#include <cmath>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

/// 113 bits and 15 bits of exponent: sums of products of doubles, 60 bits better than these.
using Wide = __float128;
using WideMatrix = std::vector<std::vector<Wide>>;

WideMatrix widened(const Matrix& a) {
  WideMatrix wide(static_cast<std::size_t>(a.rows()));
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.cols(); ++j) {
      wide[static_cast<std::size_t>(i)].push_back(static_cast<Wide>(a(i, j)));
    }
  }
  return wide;
}

WideMatrix product(const WideMatrix& a, const WideMatrix& b) {
  WideMatrix c(a.size(), std::vector<Wide>(b.front().size(), 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t k = 0; k < b.size(); ++k) {
      for (std::size_t j = 0; j < b.front().size(); ++j) {
        c[i][j] += a[i][k] * b[k][j];
      }
    }
  }
  return c;
}

/// x 2^exponent.
Wide scaled(Wide x, int exponent) {
  for (; exponent > 0; --exponent) {
    x *= 2;
  }
  for (; exponent < 0; ++exponent) {
    x /= 2;
  }
  return x;
}

/// |A − middle 2^exponent|_F² 2^(−2 exponent).
Wide squared_distance(const WideMatrix& exact, const EnclosedMatrix& a) {
  Wide sum = 0;
  for (Index i = 0; i < a.middle.rows(); ++i) {
    for (Index j = 0; j < a.middle.cols(); ++j) {
      const Wide difference =
          scaled(exact[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)], -a.exponent) -
          static_cast<Wide>(a.middle(i, j));
      sum += difference * difference;
    }
  }
  return sum;
}

bool contains(const EnclosedMatrix& a, const WideMatrix& exact) {
  const Wide error = static_cast<Wide>(a.error);
  return squared_distance(exact, a) <= error * error * static_cast<Wide>(1.0 + 1e-15);
}

Matrix middle_of(const EnclosedMatrix& a) {
  return a.middle.unaryExpr([&](double x) { return std::ldexp(x, a.exponent); });
}

bool in_range(const EnclosedMatrix& a) {
  const double largest = a.middle.cwiseAbs().maxCoeff();
  return largest == 0.0 || (largest >= 0.5 && largest < 1.0);
}

/// Integers in [−9, 9].
Matrix integers(Rng& rng, Index rows, Index cols) {
  return uniform_matrix(rng, rows, cols, -9.5, 9.5).array().round();
}

struct Sizes {
  Index rows, inner, cols;
};
std::ostream& operator<<(std::ostream& out, const Sizes& s) {
  return out << s.rows << " x " << s.inner << " x " << s.cols;
}
const std::vector<Sizes> sizes{{1, 1, 1}, {1, 7, 1}, {4, 1, 3}, {2, 3, 5}, {9, 4, 2}, {20, 30, 10}};

TEST_CASE("enclosed: the matrix itself, scaled to order one", "[linalg]") {
  Rng rng(1);
  const double size = GENERATE(1.0, 3e-200, 7e200, 4.9e-324, 1.7e308, 0.0);
  CAPTURE(size);
  const Matrix a = size * uniform_matrix(rng, 3, 4, -1.0, 1.0);
  const EnclosedMatrix e = enclosed(a);
  CHECK(in_range(e));
  CHECK(e.error == 0.0);
  CHECK(middle_of(e) == a);
  CHECK(middle_of(transposed(e)) == a.transpose());
  CHECK(enclosed(Matrix{{8.0}}, 4.0).error >= 0.25);
  CHECK(enclosed(Matrix{{8.0}}, 4.0).error <= 0.25 * (1.0 + 1e-15));
  CHECK(enclosed(Matrix{{0.0}}, 4.0).error > 0.0);
  // Entries far below the largest are lost, and said to be.
  const Matrix wide{{1e300, 4.9e-324}};
  CHECK(contains(enclosed(wide), widened(wide)));
  CHECK_THROWS_WITH(enclosed(Matrix{{std::nan("")}}),
                    "enclosed: matrix must be finite, got an infinity or a NaN");
}

TEST_CASE("product: of small integers the middle is exact", "[linalg]") {
  const Sizes s = GENERATE(from_range(sizes));
  CAPTURE(s);
  Rng rng(2);
  const Matrix a = integers(rng, s.rows, s.inner);
  const Matrix b = integers(rng, s.inner, s.cols);
  const EnclosedMatrix ab = product(enclosed(a), enclosed(b));
  CHECK(in_range(ab));
  CHECK(middle_of(ab) == a * b);
  CHECK(contains(ab, product(widened(a), widened(b))));
}

TEST_CASE("product: holds the exact product at every scale, and not much more", "[linalg]") {
  const Sizes s = GENERATE(from_range(sizes));
  const auto seed = GENERATE(range(1U, 9U));
  CAPTURE(s, seed);
  Rng rng(seed);
  int careless_missed = 0;
  for (const double left : {1e-200, 1.0, 1e200}) {
    for (const double right : {1e-200, 1.0, 1e200}) {
      CAPTURE(left, right);
      const Matrix a = left * normal_matrix(rng, s.rows, s.inner);
      const Matrix b = right * normal_matrix(rng, s.inner, s.cols);
      const WideMatrix exact = product(widened(a), widened(b));
      const EnclosedMatrix ab = product(enclosed(a), enclosed(b));
      CHECK(in_range(ab));
      CHECK(contains(ab, exact));
      CHECK(ab.error <= 1e-12 * ab.middle.norm() * static_cast<double>(s.rows + s.cols));
      CHECK(contains(transposed(ab), product(widened(b.transpose()), widened(a.transpose()))));
      EnclosedMatrix careless = ab;
      careless.error = 0x1p-60;
      careless_missed += contains(careless, exact) ? 0 : 1;
      // A third factor, with the error of the first two.
      const Matrix c = normal_matrix(rng, s.cols, 3);
      CHECK(contains(product(ab, enclosed(c)), product(exact, widened(c))));
    }
  }
  CHECK((careless_missed > 0 || s.rows * s.cols == 1));  // the check can fail
}

TEST_CASE("product: covers errors of both factors", "[linalg]") {
  Rng rng(3);
  for (int trial = 0; trial < 200; ++trial) {
    const double error_a = std::pow(10.0, rng.uniform(-9.0, 1.0));
    const double error_b = std::pow(10.0, rng.uniform(-9.0, 1.0));
    CAPTURE(trial, error_a, error_b);
    // The planted perturbations are as large as allowed, and rank one along the factors at times.
    const Matrix a = normal_matrix(rng, 3, 4);
    const Matrix b = normal_matrix(rng, 4, 2);
    Matrix da = trial % 2 == 0 ? normal_matrix(rng, 3, 4) : Matrix(a);
    Matrix db = trial % 2 == 0 ? normal_matrix(rng, 4, 2) : Matrix(b);
    da *= error_a / da.norm() * (1.0 - 1e-14);
    db *= error_b / db.norm() * (1.0 - 1e-14);
    const EnclosedMatrix ab = product(enclosed(a, error_a), enclosed(b, error_b));
    CHECK(contains(ab, product(widened(a + da), widened(b + db))));
  }
  // 1 × 1: nothing is lost, so that the sum of the three terms is attained.
  const EnclosedMatrix one = product(enclosed(Matrix{{2.0}}, 0.5), enclosed(Matrix{{4.0}}, 1.0));
  CHECK(contains(one, widened(Matrix{{2.5 * 5.0}})));
  CHECK_FALSE(contains(one, widened(Matrix{{2.5 * 5.0 + 1e-9}})));
}

TEST_CASE("beside: parts of every scale stand side by side", "[linalg]") {
  const double scale = GENERATE(1.0, 1e-200, 1e200, 1e-320);
  CAPTURE(scale);
  Rng rng(4);
  const Matrix a = integers(rng, 3, 2);
  const Matrix b = scale * integers(rng, 3, 4);
  Matrix all(3, 6);
  all << a, b;
  const EnclosedMatrix both = beside({enclosed(a), enclosed(b)});
  CHECK(in_range(both));
  CHECK(contains(both, widened(all)));
  if (scale == 1.0) {
    CHECK(middle_of(both) == all);
    CHECK(both.error <= 1e-300);  // rounded upwards from zero
  }
  const EnclosedMatrix loose = beside({enclosed(a, 0.25), enclosed(b, 0.5 * scale)});
  Matrix moved = all;
  moved(1, 1) += 0.25 * (1.0 - 1e-15);
  moved(2, 5) += 0.5 * scale * (1.0 - 1e-15);
  CHECK(contains(loose, widened(moved)));
  Matrix gone = all;
  gone(0, 0) += 0.76 * std::max(1.0, scale);
  CHECK_FALSE(contains(loose, widened(gone)));
}

TEST_CASE("beside: of a product far below double with a matrix of order one", "[linalg]") {
  const EnclosedMatrix tiny = product(enclosed(Matrix{{1e-300}}), enclosed(Matrix{{1e-300}}));
  const EnclosedMatrix both = beside({tiny, enclosed(Matrix{{1.0}})});
  WideMatrix exact = widened(Matrix{{0.0, 1.0}});
  exact[0][0] = static_cast<Wide>(1e-300) * static_cast<Wide>(1e-300);
  CHECK(contains(both, exact));
  CHECK(both.error < 1e-200);
}

WideMatrix kronecker(const std::vector<Matrix>& p, const std::vector<Matrix>& w) {
  const Index n = p.front().rows();
  const Index m = p.front().cols();
  const Index D = w.front().rows();
  const Index D_out = w.front().cols();
  WideMatrix sum(static_cast<std::size_t>(n * D_out),
                 std::vector<Wide>(static_cast<std::size_t>(m * D), 0));
  for (std::size_t h = 0; h < p.size(); ++h) {
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < m; ++j) {
        for (Index a = 0; a < D; ++a) {
          for (Index b = 0; b < D_out; ++b) {
            sum[static_cast<std::size_t>(i * D_out + b)][static_cast<std::size_t>(j * D + a)] +=
                static_cast<Wide>(p[h](i, j)) * static_cast<Wide>(w[h](a, b));
          }
        }
      }
    }
  }
  return sum;
}

TEST_CASE("kronecker_sum: of small integers the middle is the map of X to sum P X W", "[linalg]") {
  Rng rng(5);
  const auto heads = static_cast<std::size_t>(GENERATE(1, 3));
  std::vector<Matrix> p;
  std::vector<Matrix> w;
  std::vector<EnclosedMatrix> ep;
  std::vector<EnclosedMatrix> ew;
  for (std::size_t h = 0; h < heads; ++h) {
    p.push_back(integers(rng, 4, 4));
    w.push_back(integers(rng, 3, 2));
    ep.push_back(enclosed(p.back()));
    ew.push_back(enclosed(w.back()));
  }
  const EnclosedMatrix sum = kronecker_sum(ep, ew);
  CHECK(in_range(sum));
  CHECK(contains(sum, kronecker(p, w)));
  const Matrix x = integers(rng, 4, 3);
  Matrix y = Matrix::Zero(4, 2);
  for (std::size_t h = 0; h < heads; ++h) {
    y += p[h] * x * w[h];
  }
  const Vector image = middle_of(sum) * Eigen::Map<const Vector>(x.data(), x.size());
  CHECK(image == Eigen::Map<const Vector>(y.data(), y.size()));
}

TEST_CASE("kronecker_sum: holds the exact sum at every scale, errors of the parts too",
          "[linalg]") {
  Rng rng(6);
  for (const double left : {1e-200, 1.0, 1e200}) {
    for (const double right : {1e-200, 1.0, 1e200}) {
      for (const double error : {0.0, 1e-9, 0.1}) {
        CAPTURE(left, right, error);
        std::vector<Matrix> p;
        std::vector<Matrix> w;
        std::vector<EnclosedMatrix> ep;
        std::vector<EnclosedMatrix> ew;
        for (int h = 0; h < 4; ++h) {
          const double size = h == 3 ? 1e-30 : 1.0;
          const Matrix middle_p = left * size * normal_matrix(rng, 3, 3);
          const Matrix middle_w = right * normal_matrix(rng, 2, 4);
          ep.push_back(enclosed(middle_p, left * error));
          ew.push_back(enclosed(middle_w, right * error));
          const double part = error * (1.0 - 1e-14);
          p.push_back(middle_p + middle_p * (left * part / middle_p.stableNorm()));
          w.push_back(middle_w + middle_w * (right * part / middle_w.stableNorm()));
        }
        const EnclosedMatrix sum = kronecker_sum(ep, ew);
        CHECK(in_range(sum));
        CHECK(contains(sum, kronecker(p, w)));
        if (error == 0.0) {
          CHECK(sum.error <= 1e-12 * sum.middle.norm());
        } else {
          EnclosedMatrix careless = sum;
          careless.error *= 0.1;
          CHECK_FALSE(contains(careless, kronecker(p, w)));
        }
      }
    }
  }
}

TEST_CASE("upper bounds of enclosed matrices: above the norms and near them", "[linalg]") {
  const Sizes s = GENERATE(from_range(sizes));
  const double size = GENERATE(1.0, 1e-200, 1e200);
  CAPTURE(s, size);
  Rng rng(7);
  const Matrix a = size * normal_matrix(rng, s.rows, s.inner);
  const Matrix b = size * normal_matrix(rng, s.inner, s.cols);
  const EnclosedMatrix ab = product(enclosed(a), enclosed(b));
  const WideMatrix exact = product(widened(a), widened(b));
  using Extended = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
  Extended unit(s.rows, s.cols);  // the product over 2^exponent, to 64 bits
  for (Index i = 0; i < s.rows; ++i) {
    for (Index j = 0; j < s.cols; ++j) {
      unit(i, j) = static_cast<long double>(
          scaled(exact[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)], -ab.exponent));
    }
  }
  const long double spectral = Eigen::JacobiSVD<Extended>(unit).singularValues()(0);
  const long double all = unit.norm();
  const ScaledReal two = upper_bound_spectral_norm(ab);
  const ScaledReal frobenius = upper_bound_norm_frobenius(ab);
  CHECK(two.exponent == ab.exponent);
  CHECK(frobenius.exponent == ab.exponent);
  CHECK(two.value >= spectral * (1.0L - 1e-18L));
  CHECK(two.value <= spectral * (1.0L + 1e-12L));
  CHECK(frobenius.value >= all * (1.0L - 1e-18L));
  CHECK(frobenius.value <= all * (1.0L + 1e-12L));
}

TEST_CASE("upper bounds of enclosed matrices: an error moves them by as much", "[linalg]") {
  const EnclosedMatrix a = enclosed(Matrix{{3.0, 4.0}}, 2.0);
  const auto value = [](const ScaledReal& x) { return std::ldexp(x.value, x.exponent); };
  CHECK(value(upper_bound_spectral_norm(a)) >= 7.0);
  CHECK(value(upper_bound_spectral_norm(a)) <= 7.0 * (1.0 + 1e-12));
  CHECK(value(upper_bound_norm_frobenius(a)) >= 7.0);
  CHECK(value(upper_bound_norm_frobenius(a)) <= 7.0 * (1.0 + 1e-12));
  CHECK(value(upper_bound_norm_frobenius(enclosed(Matrix{{3.0, 4.0}}))) == 5.0);
  CHECK(upper_bound_spectral_norm(enclosed(Matrix::Zero(2, 3))).value == 0.0);
}

}  // namespace
}  // namespace lipsa
