#include "lipsa/attention/cosine.hpp"

#include <cmath>

namespace lipsa {

RowNormalisation RowNormalisation::normalise(double epsilon, MatrixRef z) {
  const double root = std::sqrt(epsilon);
  const Index n = z.rows();
  RowNormalisation rows{Vector(n), Vector(n), Vector(n)};
  for (Index i = 0; i < n; ++i) {
    const double length = std::hypot(z.row(i).stableNorm(), root);
    z.row(i) /= length;
    rows.inverse_length(i) = 1.0 / length;
    const bool alone = z.cols() == 1;
    rows.identity(i) = alone ? (root / length) * (root / length) / length : 1.0 / length;
    rows.rank_one(i) = alone ? 0.0 : 1.0 / length;
  }
  return rows;
}

void RowNormalisation::derivative(const ConstMatrixRef& unit, MatrixRef dz) const {
  for (Index i = 0; i < dz.rows(); ++i) {
    const double along = rank_one(i) * unit.row(i).dot(dz.row(i));
    dz.row(i) = identity(i) * dz.row(i) - along * unit.row(i);
  }
}

void RowNormalisation::second_derivative(const ConstMatrixRef& unit, const ConstMatrixRef& dz,
                                         const ConstMatrixRef& g, MatrixRef gz) const {
  Matrix mapped_dz = dz;
  Matrix mapped_g = g;
  derivative(unit, mapped_dz);
  derivative(unit, mapped_g);
  for (Index i = 0; i < dz.rows(); ++i) {
    gz.row(i) -= inverse_length(i) * (unit.row(i).dot(dz.row(i)) * mapped_g.row(i) +
                                      unit.row(i).dot(g.row(i)) * mapped_dz.row(i) +
                                      g.row(i).dot(mapped_dz.row(i)) * unit.row(i));
  }
}

}  // namespace lipsa
