/// \file
/// The activations of feed-forward layers, entry by entry.
#pragma once

#include <string_view>

#include "lipsa/model/piece.hpp"

namespace lipsa {

/// | activation | f(x)                                       | f'(x)              |
/// |------------|--------------------------------------------|--------------------|
/// | relu       | max(x, 0)                                  | 1 for x > 0, else 0 |
/// | gelu       | x Φ(x), Φ(x) = (1 + erf(x/√2))/2: no tanh  | Φ(x) + x φ(x)      |
enum class Activation { relu, gelu };

std::string_view to_string(Activation activation);  ///< "relu", "gelu"

/// \throws std::invalid_argument  `text` is neither
Activation parse_activation(std::string_view text);

/// At or above the largest |f'|: 1 of relu; of gelu 1.1289041451851547863…, the next double. Its
/// derivative φ(x)(2 − x²) vanishes at √2, where f' = (1 + erf 1)/2 + 1/(e √π).
double activation_slope_upper_bound(Activation activation);

/// No arrays.
template <MaybeConst<Activation> A, class F>
void for_each_parameter(A& /*activation*/, const F& /*f*/) {}

/// x Φ(x) errs by less than 3e-16 (1 + |x|) and, in the tail, by less than 1e-12 of itself; its
/// derivative by less than 1e-15.
///
/// \test tests/model/activation_test.cpp
class ActivationAt {
 public:
  ActivationAt(Activation activation, Matrix x);

  Index rows() const { return slopes_.rows(); }
  Index input_width() const { return slopes_.cols(); }
  Index output_width() const { return slopes_.cols(); }
  const Matrix& output() const { return output_; }
  Matrix take_output() { return std::move(output_); }

  Matrix apply(Matrix dx) const;  ///< f'(x) ∘ dx
  Matrix apply_adjoint(Matrix dy) const { return apply(std::move(dy)); }
  Matrix backward(Matrix dy, Activation& /*gradient*/) const { return apply(std::move(dy)); }

 private:
  Matrix output_;
  Matrix slopes_;
};

}  // namespace lipsa
