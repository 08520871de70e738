#include "lipsa/model/feed_forward.hpp"

namespace lipsa {

FeedForwardAt::FeedForwardAt(const FeedForward& piece, Matrix x)
    : in_(piece.in, std::move(x)),
      activation_(piece.activation, in_.take_output()),
      out_(piece.out, activation_.take_output()) {}

Matrix FeedForwardAt::apply(const ConstMatrixRef& dx) const {
  return out_.apply(activation_.apply(in_.apply(dx)));
}

Matrix FeedForwardAt::apply_adjoint(const ConstMatrixRef& dy) const {
  return in_.apply_adjoint(activation_.apply_adjoint(out_.apply_adjoint(dy)));
}

Matrix FeedForwardAt::backward(const ConstMatrixRef& dy, FeedForward& gradient) const {
  return in_.backward(activation_.apply_adjoint(out_.backward(dy, gradient.out)), gradient.in);
}

}  // namespace lipsa
