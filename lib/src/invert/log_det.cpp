#include "lipsa/invert/log_det.hpp"

#include <Eigen/LU>
#include <cmath>
#include <vector>

#include "core/check.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/linalg/spectral_norm.hpp"

namespace lipsa {
namespace {

constexpr std::uint64_t probe_stream = 0x70726f6265730000U;  // "probes"
constexpr double spectral_tolerance = 1e-3;

LogDet by_lu(const ResidualAttention& g, const Jacobian& jacobian) {
  LogDet result{.standard_error = 0.0, .truncation_bound = 0.0, .method = LogDetMethod::lu};
  Eigen::MatrixXd a = g.gain() * jacobian.dense();
  a.diagonal().array() += 1.0;
  const Eigen::PartialPivLU<Eigen::Ref<Eigen::MatrixXd>> lu(a);
  double sum = 0.0;
  int sign = lu.permutationP().determinant() > 0 ? 1 : -1;
  for (Index i = 0; i < a.rows(); ++i) {
    const double pivot = a(i, i);
    sum += std::log(std::abs(pivot));
    sign = pivot == 0.0 ? 0 : pivot < 0.0 ? -sign : sign;
  }
  if (sign != 0 && !std::isfinite(sum)) {
    result.status = LogDetStatus::non_finite;
    return result;
  }
  result.value = sum;
  result.sign = sign;
  result.status = sign == 0 ? LogDetStatus::singular : LogDetStatus::converged;
  return result;
}

/// a^{K+1}/((K + 1)(1 − a)) n D, and more than the rounding of these few operations.
double truncation_bound(double a, Index terms, Index size) {
  const auto next = static_cast<double>(terms + 1);
  return std::pow(a, next) / (next * (1.0 - a)) * static_cast<double>(size) * (1.0 + 1e-12) +
         std::numeric_limits<double>::min();
}

/// v of independent signs.
Vector signs(std::uint64_t seed, Index probe, Index size) {
  Rng rng(seed, probe_stream, static_cast<std::uint64_t>(probe));
  Vector v(size);
  std::uint64_t bits = 0;
  for (Index i = 0; i < size; ++i) {
    bits = i % 64 == 0 ? rng.next() : bits >> 1U;
    v(i) = (bits & 1U) != 0 ? 1.0 : -1.0;
  }
  return v;
}

LogDet by_series(const ResidualAttention& g, const Jacobian& jacobian,
                 const LogDetOptions& options) {
  LogDet result{.method = LogDetMethod::series};
  const Index size = jacobian.rows();
  double a = g.contraction();
  if (std::isnan(a)) {
    const SpectralNorm norm =
        spectral_norm(jacobian, {.relative_tolerance = spectral_tolerance, .seed = options.seed});
    result.products = norm.products;
    a = std::abs(g.gain()) * norm.value * (1.0 + spectral_tolerance);
    if (!norm.converged() || !(a < 1.0)) {
      return result;
    }
  }
  Index terms = options.terms;
  while (options.terms == 0 && terms < options.most_terms &&
         (terms == 0 || truncation_bound(a, terms, size) > options.truncation)) {
    ++terms;
  }
  std::vector<double> samples(static_cast<std::size_t>(options.probes));
  parallel_for(options.probes, [&](Index probe) {
    const Vector v = signs(options.seed, probe, size);
    Vector power = v;
    Vector product(size);
    double sum = 0.0;
    for (Index k = 1; k <= terms; ++k) {
      jacobian.apply(power, product);
      power = g.gain() * product;
      sum += (k % 2 == 1 ? 1.0 : -1.0) / static_cast<double>(k) * v.dot(power);
    }
    samples[static_cast<std::size_t>(probe)] = sum;
  });
  const auto count = static_cast<double>(options.probes);
  double mean = 0.0;
  for (const double sample : samples) {
    mean += sample / count;
  }
  double squares = 0.0;
  for (const double sample : samples) {
    squares += (sample - mean) * (sample - mean);
  }
  result.value = mean;
  result.sign = 1;
  result.standard_error = std::sqrt(squares / (count - 1.0) / count);
  result.truncation_bound = truncation_bound(a, terms, size);
  result.terms = terms;
  result.products += options.probes * terms;
  result.status = result.truncation_bound <= options.truncation ? LogDetStatus::converged
                                                                : LogDetStatus::truncated;
  return result;
}

}  // namespace

std::string_view to_string(LogDetMethod method) {
  switch (method) {
    case LogDetMethod::automatic:
      return "automatic";
    case LogDetMethod::lu:
      return "lu";
    case LogDetMethod::series:
      return "series";
  }
  return "unknown";
}

std::string_view to_string(LogDetStatus status) {
  switch (status) {
    case LogDetStatus::converged:
      return "converged";
    case LogDetStatus::truncated:
      return "truncated";
    case LogDetStatus::singular:
      return "singular";
    case LogDetStatus::not_contractive:
      return "not contractive";
    case LogDetStatus::non_finite:
      return "non-finite";
  }
  return "unknown";
}

LogDet log_det(const ResidualAttention& g, const ConstMatrixRef& x, const LogDetOptions& options) {
  require(options.probes >= 2, "log_det: probes must be at least 2, got {}", options.probes);
  require(options.terms >= 0, "log_det: terms must not be negative, got {}", options.terms);
  require(options.most_terms >= 1, "log_det: most_terms must be at least 1, got {}",
          options.most_terms);
  require(std::isfinite(options.truncation) && options.truncation > 0.0,
          "log_det: truncation must be positive, got {}", options.truncation);
  require(options.dense_limit >= 0, "log_det: dense_limit must not be negative, got {}",
          options.dense_limit);
  require(g.tokens() == 0 || x.rows() == g.tokens(),
          "log_det: x must have the {} tokens that g is made for, got {}", g.tokens(), x.rows());
  const Jacobian jacobian(g.layer(), x, g.mask());
  const bool dense =
      options.method == LogDetMethod::lu ||
      (options.method == LogDetMethod::automatic && jacobian.rows() <= options.dense_limit);
  return dense ? by_lu(g, jacobian) : by_series(g, jacobian, options);
}

}  // namespace lipsa
