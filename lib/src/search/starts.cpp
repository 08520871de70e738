#include "lipsa/search/starts.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <cmath>

#include "core/check.hpp"
#include "lipsa/bounds/lambert.hpp"

namespace lipsa {
namespace {

constexpr double radius_without_a_ball = 10.0;

/// The shortest x (a row) with x w = target, or the nearest to it.
Eigen::RowVectorXd preimage(const Matrix& w, const Eigen::RowVectorXd& target) {
  return w.transpose().completeOrthogonalDecomposition().solve(target.transpose()).transpose();
}

/// The probe token at `centre`, the others in two halves at centre ± y, the first half larger.
Matrix clusters(Index n, Index probe, const Eigen::RowVectorXd& centre,
                const Eigen::RowVectorXd& y) {
  Matrix x(n, y.size());
  Index others = 0;
  for (Index i = 0; i < n; ++i) {
    if (i == probe) {
      x.row(i) = centre;
    } else {
      x.row(i) = centre + (others++ % 2 == 0 ? 1.0 : -1.0) * y;
    }
  }
  return x;
}

struct Head {
  Matrix w_q, w_k;
  Eigen::RowVectorXd b_q, b_k;
};

Head head_of(const MultiHead& layer, Index h) {
  const Index d = layer.head_width();
  const auto bias = [&](const Vector& b) -> Eigen::RowVectorXd {
    return b.size() > 0 ? Eigen::RowVectorXd(b.segment(h * d, d).transpose())
                        : Eigen::RowVectorXd::Zero(d);
  };
  const bool tied = layer.kind == AttentionKind::l2;
  return {.w_q = layer.W_Q.middleCols(h * d, d),
          .w_k = (tied ? layer.W_Q : layer.W_K).middleCols(h * d, d),
          .b_q = bias(layer.b_Q),
          .b_k = bias(tied ? layer.b_Q : layer.b_K)};
}

std::vector<NamedTokens> l2_starts(const Head& head, double scale, Index n, Index probe) {
  const Index d = head.w_q.cols();
  const Matrix core = std::sqrt(scale) * head.w_q;  // z = x core
  const auto others = static_cast<double>(n - 1);
  const Eigen::RowVectorXd zero = Eigen::RowVectorXd::Zero(core.rows());

  const double root = std::sqrt(static_cast<double>(d));
  const double kappa = 2.0 * (1.0 + root);
  Eigen::RowVectorXd y = Eigen::RowVectorXd::Ones(d);
  y(0) = 1.0 + root;
  y *= std::sqrt(1.0 + lambert_w(others * std::exp(-1.0 - 2.0 / kappa)) + 2.0 / kappa) / y.norm();

  Eigen::RowVectorXd t = Eigen::RowVectorXd::Zero(d);
  t(0) = std::sqrt(1.0 + lambert_w(others / std::exp(1.0)));

  return {{"three-clusters", clusters(n, probe, zero, preimage(core, y))},
          {"opposite-clusters", clusters(n, probe, zero, preimage(core, t))}};
}

std::vector<NamedTokens> dot_starts(const Head& head, double R, Index n, Index probe) {
  const Matrix a = head.w_q * head.w_k.transpose();
  if (!(a.norm() > 0.0)) {
    return {};
  }
  std::vector<NamedTokens> starts;
  const Eigen::RowVectorXd u =
      Eigen::JacobiSVD<Matrix>(a, Eigen::ComputeFullV).matrixV().col(0).transpose();
  Eigen::RowVectorXd centre = preimage(head.w_q, -head.b_q);
  Matrix x = clusters(n, probe, Eigen::RowVectorXd::Zero(a.rows()), R * u);
  x.row(probe) = centre;
  starts.push_back({"zero-and-opposite", std::move(x)});

  const Eigen::EigenSolver<Eigen::MatrixXd> eigen(a.transpose());
  if (eigen.info() != Eigen::Success) {
    return starts;
  }
  Index largest = -1;
  Index smallest = -1;
  const auto value = [&](Index i) { return eigen.eigenvalues()(i).real(); };
  for (Index i = 0; i < a.rows(); ++i) {
    if (std::abs(eigen.eigenvalues()(i).imag()) <= 1e-12 * a.norm()) {
      largest = largest < 0 || value(i) > value(largest) ? i : largest;
      smallest = smallest < 0 || value(i) < value(smallest) ? i : smallest;
    }
  }
  if (largest >= 0) {
    const bool positive = value(largest) > 8.0 * std::abs(value(smallest));
    const Eigen::RowVectorXd v =
        eigen.eigenvectors().col(positive ? largest : smallest).real().normalized().transpose();
    Matrix extremal = ((positive ? 0.5 : 1.0) * R * v).replicate(n, 1);
    extremal.row(probe) = (positive ? R : -R) * v;
    starts.push_back({"eigenvector", std::move(extremal)});
  }
  return starts;
}

/// With q the probe's query and k its key, keys at 2q − k are as far from q as k is.
std::vector<NamedTokens> untied_starts(const Head& head, double R, Index n, Index probe) {
  const Matrix difference = head.w_q - head.w_k;
  if (!(difference.norm() > 0.0)) {
    return {};
  }
  const Eigen::RowVectorXd u = Eigen::JacobiSVD<Matrix>(difference.transpose(), Eigen::ComputeFullV)
                                   .matrixV()
                                   .col(0)
                                   .transpose();
  const auto mirror = [&](double t) -> Eigen::RowVectorXd {
    const Eigen::RowVectorXd q = t * u * head.w_q + head.b_q;
    return preimage(head.w_k, q + (q - t * u * head.w_k - head.b_k) - head.b_k);
  };
  double t = R;  // the mirror image too must lie in the ball
  for (int halving = 0; halving < 60 && mirror(t).norm() > R; ++halving) {
    t *= 0.5;
  }
  Matrix x(n, u.size());
  for (Index i = 0, others = 0; i < n; ++i) {
    x.row(i) = i == probe || others++ % 2 == 1 ? Eigen::RowVectorXd(t * u) : mirror(t);
  }
  return {{"mirror", std::move(x)}};
}

}  // namespace

Index probe_token(AttentionKind kind, const Mask& mask, Index n) {
  if (mask.kind() == Mask::Kind::none) {
    return 0;
  }
  return mask.kind() == Mask::Kind::causal && kind == AttentionKind::l2 ? n - 1 : -1;
}

void project_to_ball(Matrix& x, double radius) {
  if (!std::isfinite(radius)) {
    return;
  }
  for (auto token : x.rowwise()) {
    // A few units at first, then twice as many: the error of the length grows with D.
    for (double margin = 0x1p-50; upper_bound_norm_frobenius(token) > radius; margin *= 2.0) {
      token *= radius / token.stableNorm() * (1.0 - margin);
    }
  }
}

std::vector<NamedTokens> analytic_starts(const MultiHead& layer, const Mask& mask, Index n,
                                         double radius) {
  require_valid(layer);
  require(n >= 1, "analytic_starts: n must be at least 1, got {}", n);
  require(radius > 0.0, "analytic_starts: radius must be positive, got {}", radius);
  const Index probe = mask.kind() == Mask::Kind::causal ? n - 1 : 0;  // the one that sees all
  const double R = std::isfinite(radius) ? radius : radius_without_a_ball;
  std::vector<NamedTokens> starts;
  for (Index h = 0; h < layer.heads; ++h) {
    const Head head = head_of(layer, h);
    std::vector<NamedTokens> own;
    switch (layer.kind) {
      case AttentionKind::dot:
        own = dot_starts(head, R, n, probe);
        break;
      case AttentionKind::l2:
        own = l2_starts(head, layer.score_scale(), n, probe);
        break;
      case AttentionKind::l2_untied:
        own = untied_starts(head, R, n, probe);
        break;
      case AttentionKind::cosine:
      case AttentionKind::sigmoid:
        break;
    }
    for (NamedTokens& start : own) {
      if (layer.heads > 1) {
        start.name += fmt::format(":{}", h);
      }
      if (start.x.allFinite()) {
        project_to_ball(start.x, radius);
        starts.push_back(std::move(start));
      }
    }
  }
  return starts;
}

}  // namespace lipsa
