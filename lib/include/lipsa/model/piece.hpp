/// \file
/// What the pieces of a network have in common, and the Jacobian of any of them as an operator.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "lipsa/core/parameters.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

// A piece is an aggregate of its arrays and options: Linear, LayerNorm, Block. It is a map of rows
// to rows, applied to a batch of B sequences of n tokens that are stacked, (B n) × D; all but
// attention take each row alone. Made from a piece and an x, the class of its name and At holds the
// output and what derivatives there need:
//
//     LinearAt at(linear, x);
//     at.output();                     // f(x)
//     at.apply(v);                     // J v
//     at.apply_adjoint(u);             // Jᵀ u
//     at.backward(u, gradient);        // Jᵀ u; the gradient of ⟨u, f⟩ in the arrays is added to
//                                      // `gradient`, a piece of the same shapes: zeros_like
//
// An At owns what it needs: piece and x may go. Its members are const but for take_output, which
// moves the output out for what comes next; they may be called from several threads, and results do
// not depend on the number of threads. Shapes that disagree throw std::invalid_argument; NaN and
// infinities in x do not, and come out as such, except where a function takes a limit there:
// relu(−∞) = 0.

/// What Jv and Jᵀu need of a class At.
template <class T>
concept LinearisedPiece = requires(const T& at, const Matrix& m) {
  { at.rows() } -> std::same_as<Index>;          // B n, of input and output
  { at.input_width() } -> std::same_as<Index>;   // columns of x
  { at.output_width() } -> std::same_as<Index>;  // columns of f(x)
  { at.apply(m) } -> std::same_as<Matrix>;
  { at.apply_adjoint(m) } -> std::same_as<Matrix>;
};

/// J = ∂vec f(x)/∂vec(x), tokens stacked: models LinearOperator, so that |J|_2 of a layer, a block
/// or a whole network is one call. Of a batch it is block diagonal, and |J|_2 the largest of its
/// sequences. Borrows the At.
///
///     const StackAt at(stack, x, x.rows());
///     const SpectralNorm norm = spectral_norm(JacobianOperator(at));
///
/// \test tests/model/piece_test.cpp
template <LinearisedPiece At>
class JacobianOperator {
 public:
  explicit JacobianOperator(const At& at) : at_(&at) {}

  Index rows() const { return at_->rows() * at_->output_width(); }
  Index cols() const { return at_->rows() * at_->input_width(); }
  void apply(const ConstVectorRef& dx, VectorRef dy) const {
    const Eigen::Map<const Matrix> in(dx.data(), at_->rows(), at_->input_width());
    Eigen::Map<Matrix>(dy.data(), at_->rows(), at_->output_width()) = at_->apply(in);
  }
  void apply_adjoint(const ConstVectorRef& dy, VectorRef dx) const {
    const Eigen::Map<const Matrix> in(dy.data(), at_->rows(), at_->output_width());
    Eigen::Map<Matrix>(dx.data(), at_->rows(), at_->input_width()) = at_->apply_adjoint(in);
  }

 private:
  const At* at_;
};

}  // namespace lipsa
