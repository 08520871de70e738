// Matrices that cross the border of the library by value, made on either side and destroyed on
// the other. Built with other machine flags than the library, this crashes or errs where the two
// sides differ in how they allocate (cases of Eigen's aligned malloc under -mavx).
#include <cmath>
#include <iostream>
#include <lipsa/attention/jacobian.hpp>
#include <lipsa/core/rng.hpp>
#include <lipsa/linalg/spectral_norm.hpp>
#include <utility>
#include <vector>

namespace {

/// A user's operator: its products run with the user's machine flags, on the library's vectors.
struct Diagonal {
  lipsa::Vector d;
  lipsa::Index rows() const { return d.size(); }
  lipsa::Index cols() const { return d.size(); }
  void apply(const lipsa::ConstVectorRef& in, lipsa::VectorRef out) const {
    out = d.cwiseProduct(in);
  }
  void apply_adjoint(const lipsa::ConstVectorRef& in, lipsa::VectorRef out) const {
    apply(in, out);
  }
};

bool works(lipsa::Index n) {
  lipsa::Rng rng(static_cast<unsigned>(n));
  lipsa::Matrix x = lipsa::normal_matrix(rng, n, n);  // made there
  x = x * x.transpose() / static_cast<double>(n);     // replaced here
  std::vector<lipsa::Matrix> copies(3, x);
  copies.push_back(lipsa::normal_matrix(rng, n, n));
  x.conservativeResize(n + 1, n);  // made here, grown here
  x.row(n).setZero();

  lipsa::Mask::Visible all(n + 1, n + 1);  // made here, moved into the library and back
  all.setConstant(true);
  lipsa::Mask mask = lipsa::Mask::arbitrary(std::move(all));

  lipsa::MultiHead layer{.W_Q = copies[1], .W_K = copies[2], .W_V = copies[3]};
  const lipsa::Matrix y = lipsa::attend(layer, x, mask);
  lipsa::Jacobian jacobian(layer, x, mask);
  mask = lipsa::Mask::causal();
  lipsa::Matrix dense = jacobian.dense();
  dense = dense.transpose().eval();

  Diagonal diagonal{lipsa::Vector::LinSpaced(3 * n, 1.0, 2.0)};
  lipsa::SpectralNorm norm = lipsa::spectral_norm(diagonal, {.dense_limit = 4});
  diagonal.d = std::move(norm.right_vector);  // made there, owned here

  jacobian = lipsa::Jacobian(layer, y.topRows(1));
  return dense.allFinite() && std::abs(norm.value - 2.0) < 1e-9 &&
         std::abs(diagonal.d.norm() - 1.0) < 1e-12;
}

}  // namespace

int main() {
  for (lipsa::Index n = 1; n <= 20; ++n) {
    if (!works(n)) {
      std::cerr << "matrices: wrong at n = " << n << '\n';
      return 1;
    }
  }
}
