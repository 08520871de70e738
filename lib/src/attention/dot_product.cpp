#include "lipsa/attention/dot_product.hpp"

#include "linalg/gemm.hpp"

namespace lipsa {

void DotProductScores::scores(const ConstMatrixRef& q, const ConstMatrixRef& k, MatrixRef s) const {
  gemm(scale, q, Op::plain, k, Op::transposed, 0.0, s);
}

void DotProductScores::tangent(const ConstMatrixRef& q, const ConstMatrixRef& k,
                               const ConstMatrixRef& dq, const ConstMatrixRef& dk,
                               MatrixRef ds) const {
  gemm(scale, dq, Op::plain, k, Op::transposed, 0.0, ds);
  gemm(scale, q, Op::plain, dk, Op::transposed, 1.0, ds);
}

void DotProductScores::adjoint(const ConstMatrixRef& q, const ConstMatrixRef& k,
                               const ConstMatrixRef& g, MatrixRef gq, MatrixRef gk) const {
  gemm(scale, g, Op::plain, k, Op::plain, 1.0, gq);
  gemm(scale, g, Op::transposed, q, Op::plain, 1.0, gk);
}

void DotProductScores::key_gradient(const ConstMatrixRef& qi, const ConstMatrixRef& k,
                                    MatrixRef rows) const {
  rows = scale * qi.replicate(k.rows(), 1);
}

}  // namespace lipsa
