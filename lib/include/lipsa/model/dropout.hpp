/// \file
/// Dropout, from a stream of random numbers that has a name.
#pragma once

#include <cstdint>

#include "lipsa/model/piece.hpp"

namespace lipsa {

/// Names the random numbers of one forward pass in training: the same name, the same entries
/// dropped, whatever came before. Evaluation has no stream, and drops nothing.
struct DropoutStream {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< of the optimiser, below 2³²
  std::uint64_t site = 0;  ///< where in the network: a piece with several numbers them from here
};

/// Y = X ∘ M with M of the stream: 0 with probability `rate`, else 1/(1 − rate). Linear, with M
/// held fixed, and its own adjoint. What row i drops depends on the stream and i alone.
///
/// \test tests/model/dropout_test.cpp
class DropoutAt {
 public:
  /// \param rate  in [0, 1)
  /// \throws std::invalid_argument
  DropoutAt(double rate, const DropoutStream& stream, Matrix x);

  Index rows() const { return kept_.rows(); }
  Index input_width() const { return kept_.cols(); }
  Index output_width() const { return kept_.cols(); }
  const Matrix& output() const { return output_; }
  Matrix take_output() { return std::move(output_); }

  Matrix apply(Matrix dx) const;
  Matrix apply_adjoint(Matrix dy) const { return apply(std::move(dy)); }

 private:
  using Kept = Eigen::Array<bool, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  double factor_;
  Kept kept_;
  Matrix output_{};
};

}  // namespace lipsa
