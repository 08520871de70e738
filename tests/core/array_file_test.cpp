#include "lipsa/core/array_file.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

TEST_CASE("Array: a matrix, a vector and a number come back as they were", "[core]") {
  const auto rows = GENERATE(Index{0}, Index{1}, Index{3});
  const auto cols = GENERATE(Index{0}, Index{1}, Index{5});
  CAPTURE(rows, cols);
  Rng rng(1);
  const Matrix matrix = normal_matrix(rng, rows, cols);
  CHECK(to_array(matrix).shape == std::vector<Index>{rows, cols});
  CHECK(to_matrix(to_array(matrix)) == matrix);
  const Vector vector = normal_matrix(rng, cols, 1);
  CHECK(to_vector(to_array(vector)) == vector);
  CHECK(to_scalar(to_array(0.1)) == 0.1);
}

TEST_CASE("Array: the last index runs fastest", "[core]") {
  Matrix matrix(2, 3);
  matrix << 1, 2, 3, 4, 5, 6;
  CHECK(to_array(matrix).data == std::vector<double>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("Array: one element of any rank is a number", "[core]") {
  CHECK(to_scalar({.shape = {1, 1, 1}, .data = {7.0}}) == 7.0);
}

TEST_CASE("Array: another shape than asked for is the file's fault and named", "[core]") {
  const Array array{.shape = {3}, .data = {1, 2, 3}, .origin = "w.npz: member \"W_Q.npy\""};
  CHECK_THROWS_WITH(to_matrix(array),
                    "w.npz: member \"W_Q.npy\": expected a matrix, found shape (3,)");
  CHECK_THROWS_AS(to_matrix(array), std::runtime_error);
  CHECK_THROWS_WITH(to_scalar(array),
                    "w.npz: member \"W_Q.npy\": expected one number, found shape (3,)");
  CHECK_THROWS_WITH(to_vector(to_array(1.0)), "array: expected a vector, found shape ()");
}

TEST_CASE("Array: data that do not fill the shape are refused", "[core]") {
  const Index huge = std::numeric_limits<Index>::max() / 2;
  const auto shape = GENERATE_COPY(std::vector<Index>{2, 2}, std::vector<Index>{-1, -3},
                                   std::vector<Index>{huge, huge, huge});
  const Array array{.shape = shape, .data = {1, 2, 3}};
  CHECK_THROWS_AS(to_matrix(array), std::invalid_argument);
  CHECK_THROWS_AS(to_vector(array), std::invalid_argument);
  CHECK_THROWS_AS(to_scalar(array), std::invalid_argument);
  CHECK_THROWS_AS(require_finite(array), std::invalid_argument);
}

TEST_CASE("require_finite: names file, tensor, row and column of the first bad entry", "[core]") {
  Array array = to_array(Matrix(Matrix::Ones(3, 4)));
  array.origin = "w.npz: member \"W_Q.npy\"";
  CHECK_NOTHROW(require_finite(array));
  array.data[11] = -std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(
      require_finite(array),
      "w.npz: member \"W_Q.npy\": row 2, column 3: expected a finite number, found -inf");
  array.data[6] = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(
      require_finite(array),
      "w.npz: member \"W_Q.npy\": row 1, column 2: expected a finite number, found nan");
  CHECK_THROWS_AS(require_finite(array), std::runtime_error);
}

TEST_CASE("require_finite: names the element of an array that is no matrix", "[core]") {
  const double nan = std::nan("");
  CHECK_THROWS_WITH(require_finite({.shape = {2}, .data = {0, nan}, .origin = "X.npy"}),
                    "X.npy: element (1,): expected a finite number, found nan");
  CHECK_THROWS_WITH(require_finite({.shape = {1, 2, 2}, .data = {0, 0, nan, 0}}),
                    "array: element (0, 1, 0): expected a finite number, found nan");
  CHECK_THROWS_WITH(require_finite(to_array(nan)),
                    "array: element (): expected a finite number, found nan");
}

}  // namespace
}  // namespace lipsa
