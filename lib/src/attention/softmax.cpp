#include "lipsa/attention/softmax.hpp"

#include <cmath>
#include <limits>

namespace lipsa {

void softmax_rows(MatrixRef scores) {
  for (Index i = 0; i < scores.rows(); ++i) {
    auto row = scores.row(i).array();
    const double largest = row.maxCoeff();
    if (largest == -std::numeric_limits<double>::infinity()) {
      row.setZero();
      continue;
    }
    // Not Eigen's exp(), which gives 2e-308 for −∞.
    row = (row - largest).unaryExpr([](double x) { return std::exp(x); });
    row /= row.sum();
  }
}

void softmax_derivative(const ConstMatrixRef& p, MatrixRef ds) {
  for (Index i = 0; i < ds.rows(); ++i) {
    const double mean = p.row(i).dot(ds.row(i));
    ds.row(i).array() = p.row(i).array() * (ds.row(i).array() - mean);
  }
}

}  // namespace lipsa
