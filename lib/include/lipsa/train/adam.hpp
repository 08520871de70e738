/// \file
/// Adam, and how its learning rate goes with the steps.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "lipsa/core/parameters.hpp"
#include "lipsa/core/safetensors.hpp"
#include "lipsa/core/types.hpp"

namespace lipsa {

/// The learning rate η_t of step t = 1, 2, …:
///
///     fixed     η_t = γ
///     warm_up   η_t = γ/√D min(t^−½, t w^−3/2), largest at t = w
///
/// \source warm_up: Vaswani et al., NeurIPS 2017, section 5.3, γ = 1; Kim, Papamakarios & Mnih,
///         ICML 2021, experiments.
struct LearningRate {
  enum class Kind { fixed, warm_up };
  Kind kind = Kind::fixed;
  double gamma = 1e-3;   ///< γ > 0
  Index width = 512;     ///< D ≥ 1, of warm_up
  Index warm_up = 4000;  ///< w ≥ 1, of warm_up
};

/// η_t.
/// \param step  t ≥ 1
/// \throws std::invalid_argument  step or a field is out of range
/// \test   tests/train/adam_test.cpp
double learning_rate(const LearningRate& rate, Index step);

struct AdamOptions {
  double beta1 = 0.9;     ///< in [0, 1)
  double beta2 = 0.999;   ///< in [0, 1)
  double epsilon = 1e-8;  ///< > 0
  /// Gradients whose norm, of all arrays together, is larger are scaled down to it. > 0.
  double clip_norm = std::numeric_limits<double>::infinity();
};

struct [[nodiscard]] AdamStep {
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();  ///< Euclidean, not clipped
  bool taken = false;  ///< false: the gradient or its norm is not finite; nothing changed
};

/// The optimiser. Step t with gradient g, clipped, for each number x:
///
///     m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²
///     x ← x − η m̂/(√v̂ + ε),        m̂ = m/(1 − β₁ᵗ),  v̂ = v/(1 − β₂ᵗ)
///
/// Results do not depend on the number of threads. Stored and loaded, it goes on to the same bits.
///
///     Adam adam(model);
///     for (Index t = 1; t <= steps; ++t) {
///       Model gradient = zeros_like(model);
///       …                                                        // add to it
///       const AdamStep step = adam.step(model, gradient, learning_rate(rate, t));
///     }
///
/// \source Kingma & Ba, ICLR 2015, algorithm 1.
/// \test   tests/train/adam_test.cpp
class Adam {
 public:
  /// For arrays of these names and shapes; what they hold does not matter.
  /// \throws std::invalid_argument  an option is out of range
  explicit Adam(const std::vector<ConstParameter>& arrays, const AdamOptions& options = {});

  template <class Piece>
  explicit Adam(const Piece& piece, const AdamOptions& options = {})
      : Adam(lipsa::parameters(piece), options) {}

  /// One step. The k-th of the gradients belongs to the k-th of the arrays.
  /// \param rate  η ≥ 0, finite
  /// \throws std::invalid_argument  the rate is out of range; names or shapes are not those it was
  ///         made for
  AdamStep step(const std::vector<Parameter>& arrays, const std::vector<ConstParameter>& gradients,
                double rate);

  template <class Piece>
  AdamStep step(Piece& piece, const Piece& gradient, double rate) {
    return step(lipsa::parameters(piece), lipsa::parameters(gradient), rate);
  }

  Index steps() const { return steps_; }  ///< that were taken

  /// Puts its state into `file`: tensors PREFIXm.NAME and PREFIXv.NAME for each array, and
  /// PREFIXsteps. Options are not part of it.
  void store(Safetensors& file, const std::string& prefix = "adam.") const;

  /// Takes the state of a file. When it throws, nothing has changed.
  /// \throws std::runtime_error  a tensor is missing, of another shape, not finite, or no state
  void load(const Safetensors& file, const std::string& prefix = "adam.");

 private:
  struct Moments {
    std::string name;
    std::vector<Index> shape;
    Vector m;
    Vector v;
  };

  AdamOptions options_;
  std::vector<Moments> moments_{};
  Index steps_ = 0;
};

}  // namespace lipsa
