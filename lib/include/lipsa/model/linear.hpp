/// \file
/// The linear piece, x W + b.
#pragma once

#include "lipsa/model/piece.hpp"

namespace lipsa {

/// Y = X W + 1 bᵀ. W acts from the right, the transpose of PyTorch's Linear.weight.
struct Linear {
  Matrix W{};  ///< D × D_out
  Vector b{};  ///< D_out, or empty for zero
};

template <MaybeConst<Linear> L, class F>
void for_each_parameter(L& linear, const F& f) {
  visit_parameter(f, "W", linear.W);
  visit_parameter(f, "b", linear.b);
}

///     forward    Y = X W + 1 bᵀ
///     backward   gX = gY Wᵀ,  gW += Xᵀ gY,  gb += gYᵀ 1
///
/// \test tests/model/linear_test.cpp
class LinearAt {
 public:
  /// \throws std::invalid_argument  x does not have the D columns, b not D_out numbers
  LinearAt(const Linear& linear, Matrix x);

  Index rows() const { return x_.rows(); }
  Index input_width() const { return linear_.W.rows(); }
  Index output_width() const { return linear_.W.cols(); }
  const Matrix& output() const { return output_; }
  Matrix take_output() { return std::move(output_); }

  Matrix apply(const ConstMatrixRef& dx) const;
  Matrix apply_adjoint(const ConstMatrixRef& dy) const;
  Matrix backward(const ConstMatrixRef& dy, Linear& gradient) const;

 private:
  Linear linear_;
  Matrix x_;
  Matrix output_{};
};

}  // namespace lipsa
