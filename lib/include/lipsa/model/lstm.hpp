/// \file
/// The layer of the recurrent baseline: long short-term memory.
#pragma once

#include <memory>
#include <utility>

#include "lipsa/core/rng.hpp"
#include "lipsa/model/piece.hpp"

namespace lipsa {

/// Each sequence of rows x_1, …, x_n becomes h_1, …, h_n, with h_0 = c_0 = 0:
///
///     (a_i, a_f, a_g, a_o) = x_t W_X + h_{t−1} W_H + b
///     i = σ(a_i),  f = σ(a_f),  g = tanh(a_g),  o = σ(a_o)
///     c_t = f ∘ c_{t−1} + i ∘ g,   h_t = o ∘ tanh(c_t)
///
/// Matrices act from the right and hold the four gates side by side in that order: they are the
/// transposes of PyTorch's weight_ih and weight_hh, and b the sum of its two biases.
///
/// \source Hochreiter & Schmidhuber, Neural Computation 1997; the gate f: Gers, Schmidhuber &
///         Cummins, Neural Computation 2000.
struct Lstm {
  Matrix W_X{};  ///< D × 4K
  Matrix W_H{};  ///< K × 4K
  Vector b{};    ///< 4K

  Index width() const { return W_X.rows(); }         ///< D
  Index hidden_width() const { return W_H.rows(); }  ///< K
};

template <MaybeConst<Lstm> L, class F>
void for_each_parameter(L& lstm, const F& f) {
  visit_parameter(f, "W_X", lstm.W_X);
  visit_parameter(f, "W_H", lstm.W_H);
  visit_parameter(f, "b", lstm.b);
}

/// Each gate of W_X and of W_H uniform on ±√(6/(rows + columns)) (Glorot & Bengio 2010), biases
/// zero but for 1 at f, so that c is kept at first (Jozefowicz, Zaremba & Sutskever 2015).
///
/// \throws std::invalid_argument  D or K below 1
/// \test   tests/model/lstm_test.cpp
Lstm initial_lstm(Index D, Index K, Rng& rng);

/// An Lstm at a batch of B sequences of n tokens, stacked, (B n) × D. With gX, gA, … for the
/// gradients of ⟨u, h⟩ and A for all a_t,
///
///     forward    A = X W_X + 1 bᵀ;   for t = 1, …, n:  A_t += H_{t−1} W_H;  c_t, h_t
///     backward   for t = n, …, 1:  gh_t = u_t + gA_{t+1} W_Hᵀ
///                                  gc_t = gc_{t+1} ∘ f_{t+1} + gh_t ∘ o ∘ (1 − tanh²(c_t))
///                                  gA_t = (gc_t g i', gc_t c_{t−1} f', gc_t i g', gh_t tanh(c_t)
///                                  o')
///                gX = gA W_Xᵀ,  gW_X += Xᵀ gA,  gW_H += Σ_t h_{t−1}ᵀ gA_t,  gb += gAᵀ 1
///
/// with i' = i (1 − i), likewise f' and o', and g' = 1 − g². Products: 8 B n K (D + K) flops
/// forward, the same for apply and apply_adjoint, twice that for backward. Sequences run in
/// parallel, 16 to 32 at a time; results do not depend on the number of threads.
///
/// NaN in x comes out as NaN from its token on; infinities and numbers whose
/// products overflow saturate gates or come out as NaN, and never throw.
///
/// \test tests/model/lstm_test.cpp
class LstmAt {
 public:
  /// \param x       (B n) × D, B ≥ 1
  /// \param tokens  n ≥ 1
  /// \throws std::invalid_argument  shapes disagree
  LstmAt(const Lstm& lstm, const ConstMatrixRef& x, Index tokens);

  Index rows() const;          ///< B n
  Index input_width() const;   ///< D
  Index output_width() const;  ///< K

  const Matrix& output() const { return output_; }  ///< h, (B n) × K
  Matrix take_output() { return std::move(output_); }

  Matrix apply(const ConstMatrixRef& dx) const;          ///< J dx, (B n) × K
  Matrix apply_adjoint(const ConstMatrixRef& dy) const;  ///< Jᵀ dy, (B n) × D

  /// Jᵀ dy; the gradient of ⟨dy, output⟩ is added to `gradient`.
  /// \throws std::invalid_argument  shapes disagree
  Matrix backward(const ConstMatrixRef& dy, Lstm& gradient) const;

 private:
  struct State;

  std::shared_ptr<const State> state_;
  Matrix output_{};
};

}  // namespace lipsa
