#include "linalg/row_products.hpp"

#include <catch2/catch.hpp>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

/// Products of standard normals, `terms` to a sum: each rounds by eps times its size, below 5.
double rounding(Index terms) {
  return 1e-15 * static_cast<double>(terms + 4) * 5.0;
}

TEST_CASE("row products: equal the plain products, whatever the shape", "[linalg]") {
  const auto [rows, a_cols, b_cols] = GENERATE(table<Index, Index, Index>(
      {{1, 1, 1}, {7, 3, 5}, {300, 40, 33}, {33, 300, 2}, {1000, 5, 130}}));
  CAPTURE(rows, a_cols, b_cols);
  Rng rng(1);
  const Matrix a = normal_matrix(rng, rows, a_cols);
  const Matrix b = normal_matrix(rng, rows, b_cols);
  const Matrix w = normal_matrix(rng, a_cols, b_cols);
  const Matrix c = normal_matrix(rng, rows, b_cols);

  Matrix product = c;
  multiply_rows(2.0, a, w, Op::plain, -1.0, product);
  CHECK((product - (2.0 * a.lazyProduct(w) - c)).cwiseAbs().maxCoeff() <= 2 * rounding(a_cols));
  Matrix back(rows, a_cols);
  multiply_rows(1.0, b, w, Op::transposed, 0.0, back);
  CHECK((back - b.lazyProduct(w.transpose())).cwiseAbs().maxCoeff() <= rounding(b_cols));

  Matrix gram = w;
  add_transposed_product(0.5, a, b, gram);
  CHECK((gram - (w + 0.5 * a.transpose().lazyProduct(b))).cwiseAbs().maxCoeff() <= rounding(rows));

  Vector sums = Vector::Ones(b_cols);
  add_column_sums(3.0, b, sums);
  const Vector expected = Vector::Ones(b_cols) + 3.0 * b.colwise().sum().transpose();
  CHECK((sums - expected).cwiseAbs().maxCoeff() <= 3 * rounding(rows));

  Vector products = Vector::Ones(b_cols);
  add_column_products(b, c, products);
  CHECK((products - Vector::Ones(b_cols) - b.cwiseProduct(c).colwise().sum().transpose())
            .cwiseAbs()
            .maxCoeff() <= 3 * rounding(rows));
  Matrix added = b;
  add_rows(c, added);
  CHECK(added == b + c);

  CHECK(std::abs(inner_product(b, c) - b.cwiseProduct(c).sum()) <= rounding(rows * b_cols));
}

TEST_CASE("row products: the same bits whatever the number of threads", "[linalg]") {
  Rng rng(2);
  const Matrix a = normal_matrix(rng, 500, 90);
  const Matrix b = normal_matrix(rng, 500, 70);
  const auto all = [&] {
    Matrix gram = Matrix::Zero(90, 70);
    add_transposed_product(1.0, a, b, gram);
    Matrix product(500, 70);
    multiply_rows(1.0, a, gram, Op::plain, 0.0, product);
    Vector sums = Vector::Zero(70);
    add_column_sums(inner_product(product, b), b, sums);
    return sums;
  };
  const Vector many = all();
  const ThreadLimit limit(1);
  CHECK(all() == many);
}

TEST_CASE("row products: nothing from no rows", "[linalg]") {
  Matrix gram = Matrix::Ones(2, 3);
  add_transposed_product(1.0, Matrix(0, 2), Matrix(0, 3), gram);
  CHECK(gram == Matrix::Ones(2, 3));
  Matrix none(0, 3);
  multiply_rows(1.0, Matrix(0, 2), Matrix::Ones(2, 3), Op::plain, 0.0, none);
  Vector sums = Vector::Ones(3);
  add_column_sums(1.0, Matrix(0, 3), sums);
  CHECK(sums == Vector::Ones(3));
  CHECK(inner_product(Matrix(0, 3), Matrix(0, 3)) == 0.0);
}

}  // namespace
}  // namespace lipsa
