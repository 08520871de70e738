#include "lipsa/attention/l2.hpp"

#include "linalg/gemm.hpp"

namespace lipsa {

void L2Scores::scores(const ConstMatrixRef& q, const ConstMatrixRef& k, MatrixRef s) const {
  if (k.cols() == 1) {  // rows of length one would hide the loop worth vectorising
    const Vector keys = k.col(0);
    for (Index i = 0; i < q.rows(); ++i) {
      s.row(i).array() = -scale * (keys.array() - q(i, 0)).square().transpose();
    }
    return;
  }
  for (Index i = 0; i < q.rows(); ++i) {
    for (Index j = 0; j < k.rows(); ++j) {
      s(i, j) = -scale * (q.row(i) - k.row(j)).squaredNorm();
    }
  }
}

void L2Scores::tangent(const ConstMatrixRef& q, const ConstMatrixRef& k, const ConstMatrixRef& dq,
                       const ConstMatrixRef& dk, MatrixRef ds) const {
  if (by_differences) {
    for (Index i = 0; i < q.rows(); ++i) {
      for (Index j = 0; j < k.rows(); ++j) {
        ds(i, j) = -2.0 * scale * (q.row(i) - k.row(j)).dot(dq.row(i) - dk.row(j));
      }
    }
    return;
  }
  gemm(2.0 * scale, q, Op::plain, dk, Op::transposed, 0.0, ds);
  gemm(2.0 * scale, dq, Op::plain, k, Op::transposed, 1.0, ds);
  const Vector own = 2.0 * scale * k.cwiseProduct(dk).rowwise().sum();
  ds.rowwise() -= own.transpose();
}

void L2Scores::adjoint(const ConstMatrixRef& q, const ConstMatrixRef& k, const ConstMatrixRef& g,
                       MatrixRef gq, MatrixRef gk) const {
  if (by_differences) {
    for (Index i = 0; i < q.rows(); ++i) {
      for (Index j = 0; j < k.rows(); ++j) {
        const double factor = 2.0 * scale * g(i, j);
        if (factor != 0.0) {
          gq.row(i) -= factor * (q.row(i) - k.row(j));
          gk.row(j) += factor * (q.row(i) - k.row(j));
        }
      }
    }
    return;
  }
  gemm(2.0 * scale, g, Op::plain, k, Op::plain, 1.0, gq);
  gemm(2.0 * scale, g, Op::transposed, q, Op::plain, 1.0, gk);
  const Vector columns = 2.0 * scale * g.colwise().sum().transpose();
  gk.array() -= k.array().colwise() * columns.array();
}

void L2Scores::key_gradient(const ConstMatrixRef& qi, const ConstMatrixRef& k,
                            MatrixRef rows) const {
  rows.noalias() = 2.0 * scale * (qi.replicate(k.rows(), 1) - k);
}

bool L2Scores::needs_differences(double scale, const ConstMatrixRef& q, const ConstMatrixRef& k) {
  const double largest = std::max(q.cwiseAbs().maxCoeff(), k.cwiseAbs().maxCoeff());
  return !(scale * largest * largest <= 1e3);  // NaN and overflow: the careful way
}

}  // namespace lipsa
