#include "lipsa/invert/inverse.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <optional>

#include "attention/enclosed_attend.hpp"
#include "core/check.hpp"
#include "core/rounding.hpp"
#include "lipsa/attention/jacobian.hpp"

namespace lipsa {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr Index most_differences = 50;
constexpr std::size_t rates_kept = 4;

// Relative to |y| + |G(x)|. Below the first a difference is too much rounding to give a rate; steps
// that stop shrinking below the second do so for rounding, which large scores amplify.
constexpr double rounding_level = 1e-13;
constexpr double stall_level = 1e-8;
constexpr double stall_spread = 100.0;  // between a step and the shortest, when both are rounding

double length(const ConstMatrixRef& x, Norm p) {
  switch (p) {
    case Norm::one:
      return x.cwiseAbs().sum();
    case Norm::two:
      return x.stableNorm();
    case Norm::inf:
      return x.cwiseAbs().maxCoeff();
    case Norm::max_token: {
      double longest = 0.0;
      for (Index i = 0; i < x.rows(); ++i) {
        longest = std::fmax(longest, x.row(i).stableNorm());
      }
      return longest;
    }
  }
  return inf;
}

Eigen::Map<const Vector> vec(const Matrix& x) {
  return {x.data(), x.size()};
}

/// The last pairs x, G(x), and the step that makes of them.
class Acceleration {
 public:
  explicit Acceleration(Index depth) : depth_(depth) {}

  /// The next x, from G(x) and r = G(x) − x: with γ that minimises |r − ΔR γ|₂, G(x) − ΔG γ.
  Matrix next(const Matrix& image, const Matrix& r) {
    if (depth_ == 0) {
      return image;
    }
    const double size = r.stableNorm();
    if (size >= size_) {  // the last combination did harm
      forget();
    } else if (last_image_.size() > 0) {
      const Index kept = std::min(images_.cols(), depth_ - 1);
      const auto push = [&](Eigen::MatrixXd& columns, const Vector& column) {
        Eigen::MatrixXd longer(column.size(), kept + 1);
        if (kept > 0) {
          longer.leftCols(kept) = columns.rightCols(kept);
        }
        longer.col(kept) = column;
        columns.swap(longer);
      };
      push(images_, vec(image) - vec(last_image_));
      push(residuals_, vec(r) - vec(last_residual_));
    }
    last_image_ = image;
    last_residual_ = r;
    size_ = size;
    if (images_.cols() == 0) {
      return image;
    }
    Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> qr(residuals_.rows(),
                                                               residuals_.cols());
    qr.setThreshold(1e-10);  // differences that repeat each other decide nothing
    qr.compute(residuals_);
    const Vector combination = images_ * qr.solve(vec(r));
    Matrix x = image - Eigen::Map<const Matrix>(combination.data(), image.rows(), image.cols());
    return x.allFinite() ? x : image;
  }

 private:
  Index depth_;
  Eigen::MatrixXd images_{};
  Eigen::MatrixXd residuals_{};
  Matrix last_image_{};
  Matrix last_residual_{};
  double size_ = inf;

  void forget() {
    images_.resize(0, 0);
    residuals_.resize(0, 0);
  }
};

/// The observed rates, oldest first.
class Rates {
 public:
  void add(double difference, double image_difference, double scale) {
    if (difference > (rates_.empty() ? 0.0 : rounding_level * scale)) {
      rates_.push_back(image_difference / difference);
      rates_.erase(rates_.begin(),
                   rates_.end() - static_cast<std::ptrdiff_t>(std::min(rates_.size(), rates_kept)));
    }
  }
  double largest() const {
    return rates_.empty() ? std::numeric_limits<double>::quiet_NaN()
                          : *std::max_element(rates_.begin(), rates_.end());
  }
  double mean() const {
    double sum = 0.0;
    for (const double rate : rates_) {
      sum += std::log(rate);
    }
    return std::exp(sum / static_cast<double>(rates_.size()));
  }

 private:
  std::vector<double> rates_{};
};

double error_of(double step, double rate) {
  return step == 0.0 ? 0.0 : rate >= 1.0 ? inf : rate / (1.0 - rate) * step;
}

/// f(x), unless it is not finite.
std::optional<Matrix> evaluate(const ResidualMap& map, const Matrix& x) {
  try {
    Matrix f = map.branch(x);
    require(f.rows() == x.rows() && f.cols() == x.cols(),
            "invert: f must keep the shape, got {} x {} from {} x {}", f.rows(), f.cols(), x.rows(),
            x.cols());
    if (f.allFinite()) {
      return f;
    }
  } catch (const OverflowError&) {
    return std::nullopt;
  }
  return std::nullopt;
}

/// What it means that no step of the last `patience` was the shortest yet.
InverseTermination without_progress(const std::vector<double>& steps, double shortest, double scale,
                                    Index patience) {
  const double longest = *std::max_element(steps.end() - patience, steps.end());
  const bool rounding = longest <= stall_level * scale &&
                        steps.back() <= stall_spread * std::fmax(shortest, rounding_level * scale);
  return rounding ? InverseTermination::stalled : InverseTermination::not_contractive;
}

void require_options(const InverseOptions& options) {
  require(options.max_iterations >= 0, "invert: max_iterations must not be negative, got {}",
          options.max_iterations);
  require(std::isfinite(options.tolerance) && options.tolerance >= 0.0,
          "invert: tolerance must be finite and at least 0, got {}", options.tolerance);
  require(options.anderson >= 0 && options.anderson <= most_differences,
          "invert: anderson must be from 0 to {}, got {}", most_differences, options.anderson);
  require(options.patience >= 1, "invert: patience must be at least 1, got {}", options.patience);
}

}  // namespace

std::string_view to_string(InverseTermination termination) {
  switch (termination) {
    case InverseTermination::converged:
      return "converged";
    case InverseTermination::stalled:
      return "stalled at rounding";
    case InverseTermination::step_limit:
      return "step limit";
    case InverseTermination::not_contractive:
      return "not contractive";
    case InverseTermination::non_finite:
      return "non-finite";
  }
  return "unknown";
}

Inverse invert(const ResidualMap& map, const ConstMatrixRef& y, const InverseOptions& options) {
  require_options(options);
  require(static_cast<bool>(map.branch), "invert: f must not be empty, got none");
  require(std::isnan(map.contraction) || (map.contraction >= 0.0 && map.contraction < 1.0),
          "invert: contraction must be in [0, 1) or NaN, got {}", map.contraction);
  require(y.rows() >= 1 && y.cols() >= 1 && y.allFinite(),
          "invert: y must be finite with at least one entry, got {} x {}", y.rows(), y.cols());
  const auto observe = [&](Index k, const Matrix& x) {
    if (options.observer) {
      options.observer(k, x);
    }
  };
  const bool claimed = !std::isnan(map.contraction);
  Inverse result{.termination = InverseTermination::step_limit};
  Acceleration acceleration(options.anderson);
  Rates rates;
  Matrix x = y;
  Matrix last_x;
  Matrix last_image;
  double shortest = inf;
  double scale = 0.0;
  Index idle = 0;
  bool met = false;
  observe(0, x);
  while (result.iterations < options.max_iterations) {
    const std::optional<Matrix> f = evaluate(map, x);
    ++result.iterations;
    const Matrix image = f ? Matrix(y - *f) : Matrix(Matrix::Constant(1, 1, inf));
    const Matrix r = f ? Matrix(image - x) : image;
    const double step = length(r, map.norm);
    scale = length(y, map.norm) + length(image, map.norm);
    if (!std::isfinite(step) || !std::isfinite(scale)) {
      const std::size_t k = result.steps.size();
      const bool grew = k >= 2 && result.steps[k - 1] > result.steps[k - 2];
      result.termination =
          grew ? InverseTermination::not_contractive : InverseTermination::non_finite;
      result.error_estimate = inf;
      result.rate_estimate = rates.mean();
      return result;
    }
    if (last_x.size() > 0) {
      rates.add(length(x - last_x, map.norm), length(image - last_image, map.norm), scale);
    }
    result.steps.push_back(step);
    ++idle;
    if (step < shortest) {
      shortest = step;
      idle = 0;
      result.x = image;
      result.error_estimate = error_of(step, claimed ? map.contraction : rates.largest());
      met = met || result.error_estimate <= options.tolerance;
    }
    const bool stop = !options.run_on && (met || idle >= options.patience);
    const bool last = stop || result.iterations == options.max_iterations;
    last_x.swap(x);
    x = last ? image : acceleration.next(image, r);
    last_image = image;
    observe(result.iterations, x);
    if (stop) {
      break;
    }
  }
  result.rate_estimate = rates.mean();
  if (met) {
    result.termination = InverseTermination::converged;
  } else if (idle >= options.patience) {
    result.termination = without_progress(result.steps, shortest, scale, options.patience);
    if (result.termination == InverseTermination::not_contractive) {
      result.error_estimate = inf;
    }
  } else if (!claimed) {  // rates seen since the shortest step count too
    result.error_estimate = std::fmax(result.error_estimate, error_of(shortest, rates.largest()));
  }
  return result;
}

Inverse invert(const ResidualAttention& g, const ConstMatrixRef& y, const InverseOptions& options) {
  require(y.cols() == g.layer().width(), "invert: y must have the {} features of the layer, got {}",
          g.layer().width(), y.cols());
  require(g.tokens() == 0 || y.rows() == g.tokens(),
          "invert: y must have the {} tokens that g is made for, got {}", g.tokens(), y.rows());
  Inverse result =
      invert(ResidualMap{.branch = [&](const ConstMatrixRef& x) { return g.branch(x); },
                         .contraction = g.contraction(),
                         .norm = g.norm()},
             y, options);
  if (!std::isnan(g.contraction()) && result.x.size() > 0) {
    if (result.termination == InverseTermination::not_contractive) {  // proved not to be so
      result.termination = InverseTermination::stalled;
      result.error_estimate =
          error_of(*std::min_element(result.steps.begin(), result.steps.end()), g.contraction());
    }
    result.error_upper_bound = upper_bound_inverse_error(g, result.x, y);
  }
  return result;
}

double upper_bound_inverse_error(const ResidualAttention& g, const ConstMatrixRef& x,
                                 const ConstMatrixRef& y) {
  const Index n = x.rows();
  const Index D = g.layer().width();
  require(n >= 1 && x.cols() == D && x.allFinite(),
          "upper_bound_inverse_error: x must be finite with at least one row and {} columns, got "
          "{} x {}",
          D, n, x.cols());
  require(y.rows() == n && y.cols() == D && y.allFinite(),
          "upper_bound_inverse_error: y must be finite and {} x {} as x, got {} x {}", n, D,
          y.rows(), y.cols());
  require(g.tokens() == 0 || n == g.tokens(),
          "upper_bound_inverse_error: x must have the {} tokens that g is made for, got {}",
          g.tokens(), n);
  if (std::isnan(g.contraction())) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  Balls defect = enclosed_attend(g.layer(), x, g.mask());
  for (Index i = 0; i < n; ++i) {
    for (Index a = 0; a < D; ++a) {
      Ball& entry = defect(i, a);
      entry = Ball(g.gain()) * entry + (Ball(x(i, a)) - Ball(y(i, a)));
      if (!std::isfinite(entry.middle) || !std::isfinite(entry.radius)) {
        return inf;
      }
    }
  }
  return div_up(norm_of(defect, g.norm()).upper(), next_down(1.0 - g.contraction()));
}

}  // namespace lipsa
