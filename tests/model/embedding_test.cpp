#include "lipsa/model/embedding.hpp"

#include <catch2/catch.hpp>

#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

TEST_CASE("EmbeddingAt: rows of tokens and positions, and their gradients", "[model]") {
  const auto with_positions = GENERATE(true, false);
  Rng rng(1);
  Embedding embedding{.tokens = normal_matrix(rng, 4, 35)};
  if (with_positions) {
    embedding.positions = normal_matrix(rng, 5, 35);
  }
  const std::vector<Index> ids{3, 0, 3, 1, 1, 3};
  const EmbeddingAt at(embedding, ids, 3);
  const Matrix u = normal_matrix(rng, 6, 35);
  Embedding gradient = zeros_like(embedding);
  at.backward(u, gradient);

  Embedding expected = zeros_like(embedding);
  for (Index i = 0; i < 6; ++i) {
    const Index id = ids[static_cast<std::size_t>(i)];
    Matrix row = embedding.tokens.row(id);
    expected.tokens.row(id) += u.row(i);
    if (with_positions) {
      row += embedding.positions.row(i % 3);
      expected.positions.row(i % 3) += u.row(i);
    }
    CHECK(at.output().row(i) == row);
  }
  CHECK(gradient.tokens == expected.tokens);
  CHECK(gradient.positions == expected.positions);
  Embedding other = zeros_like(embedding);
  other.tokens.conservativeResize(other.tokens.rows() - 1, Eigen::NoChange);
  CHECK_THROWS_AS(at.backward(u, other), std::invalid_argument);
  at.backward(u, gradient);
  CHECK((gradient.tokens - 2.0 * expected.tokens).norm() <= 1e-14 * expected.tokens.norm());
}

TEST_CASE("EmbeddingAt: what it refuses, by name", "[model]") {
  Embedding embedding{.tokens = Matrix::Ones(4, 2), .positions = Matrix::Ones(2, 2)};
  const std::vector<Index> ids{0, 1, 2, 4};
  CHECK_THROWS_WITH(EmbeddingAt(embedding, ids, 2),
                    "EmbeddingAt: ids must be in [0, 4), got 4 at 3");
  CHECK_THROWS_WITH(EmbeddingAt(embedding, std::vector<Index>{-1, 0}, 2),
                    "EmbeddingAt: ids must be in [0, 4), got -1 at 0");
  CHECK_THROWS_WITH(EmbeddingAt(embedding, ids, 4),
                    "EmbeddingAt: positions must have at least 4 rows of 2, got 2 x 2");
  CHECK_THROWS_WITH(EmbeddingAt(embedding, std::vector<Index>{}, 2),
                    "EmbeddingAt: ids must be a positive multiple of 2 in number, got 0");
  CHECK_THROWS_WITH(EmbeddingAt(embedding, ids, 0),
                    "EmbeddingAt: tokens must be at least 1, got 0");
}

}  // namespace
}  // namespace lipsa
