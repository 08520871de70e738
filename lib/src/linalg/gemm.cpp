#include "linalg/gemm.hpp"

#include <cblas.h>

#include <mutex>

namespace lipsa {
namespace {

struct Serial {
  std::mutex mutex;
  int users = 0;
  int former_threads = 1;
};

Serial& serial() {
  static Serial instance;
  return instance;
}

}  // namespace

SerialBlas::SerialBlas() {
  Serial& s = serial();
  const std::lock_guard lock(s.mutex);
  if (s.users++ == 0) {
    s.former_threads = openblas_get_num_threads();
    if (s.former_threads != 1) {
      openblas_set_num_threads(1);
    }
  }
}

SerialBlas::~SerialBlas() {
  Serial& s = serial();
  const std::lock_guard lock(s.mutex);
  if (--s.users == 0 && s.former_threads != 1) {
    openblas_set_num_threads(s.former_threads);
  }
}

void gemm(double alpha, const ConstMatrixRef& a, Op op_a, const ConstMatrixRef& b, Op op_b,
          double beta, MatrixRef c) {
  if (c.size() == 0) {
    return;
  }
  const Index inner = op_a == Op::plain ? a.cols() : a.rows();
  if (inner == 0) {
    beta == 0.0 ? c.setZero() : c *= beta;
    return;
  }
  const auto flag = [](Op op) { return op == Op::plain ? CblasNoTrans : CblasTrans; };
  const auto n = [](Index size) { return static_cast<blasint>(size); };
  cblas_dgemm(CblasRowMajor, flag(op_a), flag(op_b), n(c.rows()), n(c.cols()), n(inner), alpha,
              a.data(), n(a.outerStride()), b.data(), n(b.outerStride()), beta, c.data(),
              n(c.outerStride()));
}

}  // namespace lipsa
