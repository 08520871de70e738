/// \file
/// Matrix products through BLAS. Private to lib/.
#pragma once

#include "lipsa/core/types.hpp"

namespace lipsa {

enum class Op { plain, transposed };

/// c = alpha op(a) op(b) + beta c. With beta = 0, c need not be initialised.
void gemm(double alpha, const ConstMatrixRef& a, Op op_a, const ConstMatrixRef& b, Op op_b,
          double beta, MatrixRef c);

/// While one lives, BLAS runs each product on the thread that asks for it: this library
/// parallelises over heads and tokens, and a product split between threads would change its
/// last bits with their number. The former setting returns when the last one ends.
class SerialBlas {
 public:
  SerialBlas();
  ~SerialBlas();
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;
  SerialBlas(SerialBlas&&) = delete;
  SerialBlas& operator=(SerialBlas&&) = delete;
};

}  // namespace lipsa
