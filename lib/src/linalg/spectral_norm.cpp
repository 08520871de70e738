#include "lipsa/linalg/spectral_norm.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include <Spectra/SymEigsSolver.h>
#include <Eigen/SVD>

#include "core/check.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

/// Counts the products that pass through it, and notes a non-finite one.
class Probe {
 public:
  explicit Probe(OperatorRef a) : a_(a) {}

  Vector apply(const ConstVectorRef& in) {
    Vector out(a_.rows());
    a_.apply(in, out);
    return note(std::move(out));
  }
  Vector apply_adjoint(const ConstVectorRef& in) {
    Vector out(a_.cols());
    a_.apply_adjoint(in, out);
    return note(std::move(out));
  }

  Index products() const { return products_; }
  bool finite() const { return finite_; }

 private:
  Vector note(Vector out) {
    ++products_;
    finite_ = finite_ && out.allFinite();
    if (!finite_) {
      out.setZero();
    }
    return out;
  }

  OperatorRef a_;
  Index products_ = 0;
  bool finite_ = true;
};

/// The smaller of AᵀA and A Aᵀ over scale², in the form Spectra asks for. Remembers the largest
/// gain ‖G x‖ / ‖x‖ it has shown, a lower bound on its largest eigenvalue.
class Gram {
 public:
  using Scalar = double;

  Gram(Probe& probe, Index size, bool wide, double scale)
      : probe_(&probe), size_(size), wide_(wide), scale_(scale) {}

  Index rows() const { return size_; }
  Index cols() const { return size_; }

  /// G x for a vector of moderate length.
  Vector operator*(const ConstVectorRef& x) const {
    const Vector half = (wide_ ? probe_->apply_adjoint(x) : probe_->apply(x)) / scale_;
    Vector y = (wide_ ? probe_->apply(half) : probe_->apply_adjoint(half)) / scale_;
    gain_ = std::max(gain_, y.norm() / x.norm());
    return y;
  }

  /// The same for whatever Spectra sends, which on degenerate operators may be zero, huge or not
  /// finite: such a vector must not be held against A.
  void perform_op(const double* in, double* out) const {
    const Eigen::Map<const Vector> x(in, size_);
    Eigen::Map<Vector> y(out, size_);
    const double length = x.stableNorm();
    if (length > 0.0 && std::isfinite(length)) {
      y = length * (*this * (x / length));
    } else {
      y.setZero();
    }
  }

  double gain() const { return gain_; }

 private:
  Probe* probe_;
  Index size_;
  bool wide_;
  double scale_;
  mutable double gain_ = 0.0;
};

void require_valid(const SpectralNormOptions& options) {
  require(options.relative_tolerance > 0.0,
          "spectral_norm: relative_tolerance must be positive, got {}", options.relative_tolerance);
  require(options.max_restarts >= 1, "spectral_norm: max_restarts must be at least 1, got {}",
          options.max_restarts);
  require(options.subspace_size >= 2, "spectral_norm: subspace_size must be at least 2, got {}",
          options.subspace_size);
  require(options.dense_limit >= 0, "spectral_norm: dense_limit must not be negative, got {}",
          options.dense_limit);
}

Vector dense_right_vector(Probe& probe, Index rows, Index cols) {
  Matrix a(rows, cols);
  if (cols <= rows) {
    for (Index j = 0; j < cols; ++j) {
      a.col(j) = probe.apply(Vector::Unit(cols, j));
    }
  } else {
    for (Index i = 0; i < rows; ++i) {
      a.row(i) = probe.apply_adjoint(Vector::Unit(rows, i)).transpose();
    }
  }
  return Eigen::JacobiSVD<Matrix>(a, Eigen::ComputeThinV).matrixV().col(0);
}

/// What Spectra proposes as the leading eigenvector, or `start` when it proposes nothing usable.
/// Its word on convergence is not taken: see yixuan/spectra#159.
Vector propose(Gram& gram, const Vector& start, const SpectralNormOptions& options) {
  try {
    Spectra::SymEigsSolver<Gram> solver(gram, 1, std::min(options.subspace_size, gram.rows()));
    solver.init(start.data());
    solver.compute(Spectra::SortRule::LargestAlge, options.max_restarts,
                   options.relative_tolerance);
    if (solver.info() != Spectra::CompInfo::Successful) {
      solver.compute(Spectra::SortRule::LargestAlge, 1, 1.0);  // the Ritz vector in hand
    }
    const Matrix vectors = solver.eigenvectors();
    if (vectors.cols() == 1 && vectors.allFinite() && vectors.norm() > 0.5) {
      return vectors.col(0).normalized();
    }
  } catch (const std::exception&) {  // Spectra throws on some degenerate operators
  }
  return start;
}

struct Leading {
  Vector v;
  bool converged;
};

Leading iterative_right_vector(Probe& probe, Index rows, Index cols,
                               const SpectralNormOptions& options) {
  const bool wide = cols > rows;
  const Index size = std::min(rows, cols);
  Rng rng(options.seed);
  const Vector start = Vector(normal_matrix(rng, size, 1)).normalized();
  const double scale = (wide ? probe.apply_adjoint(start) : probe.apply(start)).stableNorm();
  if (!(scale > 0.0)) {  // the zero operator, almost surely
    return {Vector::Unit(cols, 0), true};
  }

  Gram gram(probe, size, wide, scale);
  Vector v = propose(gram, start, options);
  const double slack = std::max(options.relative_tolerance, 1e-14);
  bool converged = false;
  for (Index step = 0; step <= options.max_restarts && !converged; ++step) {
    const Vector image = gram * v;
    const double square = v.dot(image);
    const bool settled = (image - square * v).norm() <= options.relative_tolerance * square;
    converged = settled && square >= gram.gain() * (1.0 - slack);
    if (!converged) {
      v = square >= 0.5 * gram.gain() ? image.normalized() : (gram * start).normalized();
    }
  }
  return {wide ? probe.apply_adjoint(v).stableNormalized() : v, converged};
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
  require_valid(options);
  const Index smaller = std::min(a.rows(), a.cols());
  if (smaller == 0) {
    return {.value = 0.0,
            .right_vector = Vector::Zero(a.cols()),
            .residual = 0.0,
            .termination = Termination::converged};
  }

  Probe probe(a);
  const bool dense = smaller <= std::max<Index>(options.dense_limit, 2);
  const Leading found = dense ? Leading{dense_right_vector(probe, a.rows(), a.cols()), true}
                              : iterative_right_vector(probe, a.rows(), a.cols(), options);
  const Vector image = probe.apply(found.v);
  const double sigma = image.stableNorm();
  const double residual =
      sigma > 0.0 ? (probe.apply_adjoint(image / sigma) / sigma - found.v).norm() : 0.0;
  if (!probe.finite() || !std::isfinite(sigma)) {
    return {.products = probe.products()};
  }
  return {.value = sigma,
          .right_vector = found.v,
          .residual = residual,
          .products = probe.products(),
          .termination = found.converged ? Termination::converged : Termination::restart_limit};
}

}  // namespace lipsa
