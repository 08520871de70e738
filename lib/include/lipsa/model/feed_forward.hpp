/// \file
/// The feed-forward piece of a block: linear, activation, linear.
#pragma once

#include "lipsa/model/activation.hpp"
#include "lipsa/model/linear.hpp"

namespace lipsa {

/// Y = f(X W_1 + b_1) W_2 + b_2
struct FeedForward {
  Linear in{};  ///< W_1, b_1
  Activation activation = Activation::relu;
  Linear out{};  ///< W_2, b_2
};

template <MaybeConst<FeedForward> P, class F>
void for_each_parameter(P& piece, const F& f) {
  for_each_parameter(piece.in, prefixed("in.", f));
  for_each_parameter(piece.out, prefixed("out.", f));
}

/// \test tests/model/feed_forward_test.cpp
class FeedForwardAt {
 public:
  /// \throws std::invalid_argument  shapes disagree
  FeedForwardAt(const FeedForward& piece, Matrix x);

  Index rows() const { return in_.rows(); }
  Index input_width() const { return in_.input_width(); }
  Index output_width() const { return out_.output_width(); }
  const Matrix& output() const { return out_.output(); }
  Matrix take_output() { return out_.take_output(); }

  Matrix apply(const ConstMatrixRef& dx) const;
  Matrix apply_adjoint(const ConstMatrixRef& dy) const;
  Matrix backward(const ConstMatrixRef& dy, FeedForward& gradient) const;

 private:
  LinearAt in_;
  ActivationAt activation_;
  LinearAt out_;
};

}  // namespace lipsa
