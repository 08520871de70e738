/// \file
/// The Jacobian against datasets/reference/jacobian_norms.csv, made by another program in another
/// way.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/linalg/spectral_norm.hpp"

namespace lipsa {
namespace {

/// Entry (i, j) is sin(1 + stream + 7 (i cols + j)), over the root of the rows, as in the script.
Matrix made_up(Index rows, Index cols, double stream) {
  Matrix m(rows, cols);
  for (Index k = 0; k < m.size(); ++k) {
    m.data()[k] = std::sin(1.0 + stream + 7.0 * static_cast<double>(k)) /
                  std::sqrt(static_cast<double>(rows));
  }
  return m;
}

struct Reference {
  Index n, D, H, d, d_v, D_out;
  double size;
  std::string attention, mask;
  double norm_1, norm_2, norm_inf, norm_frobenius;
};

std::vector<Reference> references() {
  std::ifstream file(LIPSA_DATASETS "/reference/jacobian_norms.csv");
  std::vector<Reference> all;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    for (char& c : line) {
      c = c == ',' ? ' ' : c;
    }
    std::istringstream in(line);
    Reference r{};
    in >> r.n >> r.D >> r.H >> r.d >> r.d_v >> r.D_out >> r.size >> r.attention >> r.mask >>
        r.norm_1 >> r.norm_2 >> r.norm_inf >> r.norm_frobenius;
    REQUIRE(in);
    all.push_back(r);
  }
  return all;
}

TEST_CASE("Jacobian: agrees with norms by complex-step differentiation in numpy", "[attention]") {
  const auto all = references();
  REQUIRE(all.size() == 40);
  for (const Reference& r : all) {
    CAPTURE(r.attention, r.mask, r.n, r.D, r.H, r.d, r.d_v);
    MultiHead layer{.kind = parse_attention_kind(r.attention),
                    .heads = r.H,
                    .W_Q = r.size * made_up(r.D, r.H * r.d, 0.2),
                    .W_V = made_up(r.D, r.H * r.d_v, 0.4),
                    .W_O = made_up(r.H * r.d_v, r.D_out, 0.5),
                    .b_Q = made_up(1, r.H * r.d, 0.6).transpose(),
                    .b_V = made_up(1, r.H * r.d_v, 0.8).transpose(),
                    .b_O = made_up(1, r.D_out, 0.9).transpose()};
    layer.epsilon = layer.kind == AttentionKind::cosine ? 0.05 : 0.0;
    layer.score_bias = layer.kind == AttentionKind::sigmoid ? -0.7 : 0.0;
    if (layer.kind != AttentionKind::l2) {
      layer.W_K = r.size * made_up(r.D, r.H * r.d, 0.3);
      layer.b_K = made_up(1, r.H * r.d, 0.7).transpose();
    }
    const Jacobian j(layer, r.size * made_up(r.n, r.D, 0.1),
                     r.mask == "causal" ? Mask::causal() : Mask::none());
    CHECK(j.norm_1().value == Approx(r.norm_1).epsilon(1e-12));
    CHECK(j.norm_inf().value == Approx(r.norm_inf).epsilon(1e-12));
    CHECK(j.norm_frobenius() == Approx(r.norm_frobenius).epsilon(1e-12));
    CHECK(spectral_norm(j).value == Approx(r.norm_2).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace lipsa
