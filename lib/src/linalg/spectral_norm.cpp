#include "lipsa/linalg/spectral_norm.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

using Columns = Eigen::MatrixXd;  // column-major: a basis grows by columns

/// G = BᵀB with B = A / scale, or Aᵀ / scale when that has fewer columns. Counts the products with
/// A and Aᵀ, notes a non-finite one, and remembers the largest gain ‖G x‖ it has shown for a unit
/// x, a lower bound on the largest eigenvalue of G.
class Gram {
 public:
  explicit Gram(OperatorRef a) : a_(a), wide_(a.cols() > a.rows()) {}

  Index size() const { return std::min(a_.rows(), a_.cols()); }
  bool wide() const { return wide_; }
  double scale() const { return scale_; }
  void set_scale(double scale) { scale_ = scale; }
  double gain() const { return gain_; }
  Index products() const { return products_; }
  bool finite() const { return finite_; }

  /// A in, or Aᵀ in.
  Vector product(const ConstVectorRef& in, bool adjoint) {
    Vector out(adjoint ? a_.cols() : a_.rows());
    adjoint ? a_.apply_adjoint(in, out) : a_.apply(in, out);
    ++products_;
    finite_ = finite_ && out.allFinite();
    if (!finite_) {
      out.setZero();
    }
    return out;
  }

  /// B x. The first x is random: its image sets the scale, unless that was set before.
  Vector half(const ConstVectorRef& x) {
    Vector out = product(x, wide_);
    if (scale_ == 0.0) {
      scale_ = out.stableNorm();
    }
    return scaled(std::move(out));
  }

  /// Bᵀ half = G x, for a unit vector x.
  Vector image(const ConstVectorRef& half) {
    Vector out = scaled(product(half, !wide_));
    gain_ = std::max(gain_, out.norm());
    return out;
  }

 private:
  Vector scaled(Vector out) const {
    if (scale_ > 0.0) {
      out /= scale_;
    }
    return out;
  }

  OperatorRef a_;
  bool wide_;
  double scale_ = 0.0;
  double gain_ = 0.0;
  Index products_ = 0;
  bool finite_ = true;
};

void require_valid(const SpectralNormOptions& options, Index cols) {
  require(options.relative_tolerance > 0.0,
          "spectral_norm: relative_tolerance must be positive, got {}", options.relative_tolerance);
  require(options.max_restarts >= 1, "spectral_norm: max_restarts must be at least 1, got {}",
          options.max_restarts);
  require(options.subspace_size >= 2, "spectral_norm: subspace_size must be at least 2, got {}",
          options.subspace_size);
  require(options.dense_limit >= 0, "spectral_norm: dense_limit must not be negative, got {}",
          options.dense_limit);
  const Vector& start = options.start;
  require(start.size() == 0 || start.size() == cols,
          "spectral_norm: start must be empty or have {} entries, got {}", cols, start.size());
  require(start.size() == 0 || (start.allFinite() && start.cwiseAbs().maxCoeff() > 0.0),
          "spectral_norm: start must be finite and not zero, got norm {}", start.norm());
}

/// A unit vector with what was measured at it.
struct Candidate {
  Vector x{};
  Vector half{};          ///< B x
  Vector image{};         ///< G x
  double square = 0.0;    ///< ‖B x‖² = xᵀG x
  double residual = 0.0;  ///< ‖G x − square x‖ / square
  bool accepted = false;
};

Candidate measure(Gram& gram, Vector x, double tolerance) {
  Candidate c{.x = std::move(x)};
  c.half = gram.half(c.x);
  c.image = gram.image(c.half);
  c.square = c.half.squaredNorm();
  c.residual = c.square > 0.0 ? (c.image - c.square * c.x).norm() / c.square : 0.0;
  const double slack = std::max(tolerance, 1e-13);  // rounding
  c.accepted = c.residual <= tolerance && c.square >= gram.gain() * (1.0 - slack);
  return c;
}

Vector starting_vector(Gram& gram, const SpectralNormOptions& options) {
  Rng rng(options.seed);
  Vector random = Vector(normal_matrix(rng, gram.size(), 1)).normalized();
  if (options.start.size() == 0) {
    return random;
  }
  const Vector guess = options.start.stableNormalized();
  const Vector x = gram.wide() ? gram.product(guess, false).stableNormalized() : guess;
  return (x + 0.1 * random).normalized();
}

Candidate dense(Gram& gram, double tolerance) {
  Columns b(gram.product(Vector::Unit(gram.size(), 0), gram.wide()));
  b.conservativeResize(Eigen::NoChange, gram.size());
  for (Index j = 1; j < gram.size() && gram.finite(); ++j) {
    b.col(j) = gram.product(Vector::Unit(gram.size(), j), gram.wide());
  }
  const double scale = gram.finite() ? b.cwiseAbs().maxCoeff() : 0.0;
  if (!(scale > 0.0)) {
    return {.x = Vector::Unit(gram.size(), 0), .accepted = true};
  }
  gram.set_scale(scale);
  b /= scale;
  const Eigen::SelfAdjointEigenSolver<Columns> eigen(b.transpose() * b);
  return measure(gram, eigen.eigenvectors().rightCols<1>(), tolerance);
}

Candidate power(Gram& gram, Vector x, const SpectralNormOptions& options) {
  for (Index step = 0;; ++step) {
    Candidate c = measure(gram, std::move(x), options.relative_tolerance);
    if (c.accepted || step == options.max_restarts || !gram.finite()) {
      return c;
    }
    x = c.image.normalized();
  }
}

/// Thick-restart Lanczos: `basis` Q is orthonormal, `projected` is QᵀG Q, and G Q stays within
/// span(Q, next). Orthogonality is kept by projecting twice on all of Q.
Candidate lanczos(Gram& gram, Vector next, const SpectralNormOptions& options) {
  // A residual can be small because the start lacks the leading vector, not because it is found.
  // The residual then points to it, and two more steps along it bring it out.
  constexpr int settled_steps = 3;

  const double tolerance = options.relative_tolerance;
  const Index capacity = std::min(options.subspace_size, gram.size());
  Columns basis(gram.size(), capacity);
  Columns projected = Columns::Zero(capacity, capacity);
  Index count = 0;
  int settled = 0;
  for (Index restarts = 0;;) {
    basis.col(count) = next;
    next = gram.image(gram.half(next));
    const auto q = basis.leftCols(++count);
    Vector h = Vector::Zero(count);
    for (int pass = 0; pass < 2; ++pass) {
      const Vector part = q.transpose() * next;
      next -= q * part;
      h += part;
    }
    projected.col(count - 1).head(count) = h;
    projected.row(count - 1).head(count) = h.transpose();

    const Eigen::SelfAdjointEigenSolver<Columns> eigen(projected.topLeftCorner(count, count));
    const double largest = eigen.eigenvalues()(count - 1);
    const double beta = next.norm();
    const double residual = beta * std::abs(eigen.eigenvectors()(count - 1, count - 1));
    settled = residual <= tolerance * largest ? settled + 1 : 0;
    const bool invariant = beta <= 1e-15 * largest;
    const bool spent = count == capacity && restarts == options.max_restarts;
    if (settled == settled_steps || invariant || spent || !gram.finite()) {
      const Vector ritz = q * eigen.eigenvectors().col(count - 1);
      Candidate c = measure(gram, ritz.normalized(), tolerance);
      if (c.accepted || restarts == options.max_restarts || !gram.finite()) {
        return c;
      }
      // Go on from the candidate alone.
      ++restarts;
      basis.col(0) = c.x;
      projected(0, 0) = c.square;
      next = c.image - c.x * c.x.dot(c.image);
      next.normalize();
      count = 1;
      settled = 0;
      continue;
    }
    next /= beta;
    if (count == capacity) {
      ++restarts;
      const Index keep = capacity / 2;
      basis.leftCols(keep) = (q * eigen.eigenvectors().rightCols(keep)).eval();
      projected.topLeftCorner(keep, keep) = eigen.eigenvalues().tail(keep).asDiagonal();
      count = keep;
    }
  }
}

}  // namespace

std::string_view to_string(Termination termination) {
  switch (termination) {
    case Termination::converged:
      return "converged";
    case Termination::restart_limit:
      return "restart limit";
    case Termination::non_finite:
      return "non-finite";
  }
  return "unknown";
}

SpectralNorm spectral_norm(OperatorRef a, const SpectralNormOptions& options) {
  require_valid(options, a.cols());
  const auto first_unit = [](Index size) {
    return Vector(size > 0 ? Vector(Vector::Unit(size, 0)) : Vector());
  };
  SpectralNorm result{.value = 0.0,
                      .right_vector = first_unit(a.cols()),
                      .left_vector = first_unit(a.rows()),
                      .residual = 0.0,
                      .termination = Termination::converged};
  Gram gram(a);
  if (gram.size() == 0) {
    return result;
  }

  Candidate c;
  if (options.method == SpectralMethod::lanczos && gram.size() <= options.dense_limit) {
    c = dense(gram, options.relative_tolerance);
  } else {
    Vector start = starting_vector(gram, options);
    c = options.method == SpectralMethod::lanczos ? lanczos(gram, std::move(start), options)
                                                  : power(gram, std::move(start), options);
  }
  const double length = c.half.norm();
  result.value = gram.scale() * length;
  result.products = gram.products();
  if (!gram.finite() || !std::isfinite(result.value)) {
    return {.products = gram.products()};
  }
  result.residual = c.residual;
  result.termination = c.accepted ? Termination::converged : Termination::restart_limit;
  if (result.value > 0.0) {
    result.right_vector = std::move(c.x);
    result.left_vector = c.half / length;
    if (gram.wide()) {
      result.right_vector.swap(result.left_vector);
    }
  }
  return result;
}

}  // namespace lipsa
