#include "lipsa/model/layer_file.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "files.hpp"
#include "lipsa/core/npy.hpp"
#include "lipsa/core/npz.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

Npz members_of(const MultiHead& layer) {
  Npz members;
  members["heads"] = to_array(static_cast<double>(layer.heads));
  members["W_Q"] = to_array(layer.W_Q);
  members["W_K"] = to_array(layer.W_K);
  members["W_V"] = to_array(layer.W_V);
  members["W_O"] = to_array(layer.W_O);
  members["b_Q"] = to_array(layer.b_Q);
  members["b_K"] = to_array(layer.b_K);
  members["b_V"] = to_array(layer.b_V);
  members["b_O"] = to_array(layer.b_O);
  return members;
}

class LayerFileTest {
 public:
  LayerFileTest()
      : rng(71), layer(test::random_layer(rng, AttentionKind::dot, {3, 4, 2, 3, 1, 5})) {
    members = members_of(layer);
  }

 protected:
  LayerFile read(AttentionKind kind = AttentionKind::dot) {
    write_npz(folder / "layer.npz", members);
    return read_layer_file(folder / "layer.npz", kind);
  }

  Rng rng;
  MultiHead layer;
  Npz members;
  TemporaryFolder folder;
};

TEST_CASE_METHOD(LayerFileTest, "read_layer_file: gives back what was written", "[model]") {
  members["X"] = to_array(normal_matrix(rng, 3, 4));
  const LayerFile file = read();
  CHECK(file.layer.heads == 2);
  CHECK(file.layer.W_Q == layer.W_Q);
  CHECK(file.layer.W_K == layer.W_K);
  CHECK(file.layer.W_O == layer.W_O);
  CHECK(file.layer.b_V == layer.b_V);
  CHECK(file.layer.score_scale() == 1.0 / std::sqrt(3.0));
  REQUIRE(file.x);
  CHECK(file.x->rows() == 3);
  CHECK(read_tokens(folder / "layer.npz") == *file.x);
  CHECK(file.notes.empty());
}

TEST_CASE_METHOD(LayerFileTest, "read_layer_file: as l2 leaves the keys out and says so",
                 "[model]") {
  const LayerFile file = read(AttentionKind::l2);
  CHECK(file.layer.W_K.size() == 0);
  REQUIRE(file.notes.size() == 1);
  CHECK_THAT(file.notes[0],
             Catch::EndsWith("W_K and b_K are not used: l2 takes its keys from W_Q"));
}

TEST_CASE_METHOD(LayerFileTest, "read_layer_file: epsilon and score_bias, where they belong",
                 "[model]") {
  using Catch::EndsWith;
  SECTION("given") {
    members["epsilon"] = to_array(1e-3);
    members["score_bias"] = to_array(-2.5);
    const LayerFile cosine = read(AttentionKind::cosine);
    CHECK(cosine.layer.epsilon == 1e-3);
    CHECK(cosine.layer.score_bias == 0.0);
    REQUIRE(cosine.notes.size() == 1);
    CHECK_THAT(cosine.notes[0],
               EndsWith("layer.npz: score_bias is not used: only sigmoid has one, not cosine"));
    const LayerFile sigmoid = read(AttentionKind::sigmoid);
    CHECK(sigmoid.layer.score_bias == -2.5);
    CHECK(sigmoid.layer.W_K == layer.W_K);
    REQUIRE(sigmoid.notes.size() == 1);
    CHECK_THAT(sigmoid.notes[0],
               EndsWith("layer.npz: epsilon is not used: sigmoid normalises no rows"));
    CHECK(read(AttentionKind::dot).notes.size() == 2);
  }
  SECTION("missing") {
    const LayerFile cosine = read(AttentionKind::cosine);
    CHECK(cosine.layer.epsilon == 1e-6);
    REQUIRE(cosine.notes.size() == 1);
    CHECK_THAT(cosine.notes[0], EndsWith("layer.npz: epsilon is missing: cosine takes 1e-06"));
    const LayerFile sigmoid = read(AttentionKind::sigmoid);
    CHECK(sigmoid.layer.score_bias == 0.0);
    CHECK(sigmoid.notes.empty());
  }
  SECTION("wrong") {
    members["epsilon"] = to_array(0.0);
    CHECK_THROWS_WITH(read(AttentionKind::cosine),
                      EndsWith("member \"epsilon\": expected a positive number, found 0"));
  }
}

TEST_CASE_METHOD(LayerFileTest, "read_layer_file: biases and W_O may be missing", "[model]") {
  for (const char* name : {"W_O", "b_Q", "b_K", "b_V", "b_O"}) {
    members.erase(name);
  }
  members["scale"] = to_array(0.25);
  const LayerFile file = read();
  CHECK(file.layer.W_O.size() == 0);
  CHECK(file.layer.output_width() == 2);
  CHECK(file.layer.score_scale() == 0.25);
}

TEST_CASE_METHOD(LayerFileTest, "read_layer_file: names what is wrong, with the file", "[model]") {
  using Catch::Contains;
  SECTION("missing") {
    members.erase("W_V");
    CHECK_THROWS_WITH(read(), Contains("layer.npz: expected a member W_V, found none"));
  }
  SECTION("unknown") {
    members["W_q"] = members["W_Q"];
    CHECK_THROWS_WITH(read(), Contains("member \"W_q\": expected one of W_Q, W_K"));
  }
  SECTION("heads") {
    members["heads"] = to_array(1.5);
    CHECK_THROWS_WITH(read(),
                      Contains("member \"heads\": expected a whole number from 1, found 1.5"));
  }
  SECTION("heads that do not divide") {
    members["heads"] = to_array(4.0);
    CHECK_THROWS_WITH(read(),
                      Contains("layer.npz: MultiHead: heads must divide the 6 columns of W_Q"));
    CHECK_THROWS_AS(read(), std::runtime_error);
  }
  SECTION("NaN (case B13)") {
    members["W_K"].data[7] = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH(read(),
                      Contains("\"W_K.npy\"") && Contains("row 1, column 1") && Contains("nan"));
  }
  SECTION("tokens of another width") {
    members["X"] = to_array(normal_matrix(rng, 3, 5));
    CHECK_THROWS_WITH(read(), Contains("member \"X\": expected at least one row and 4 columns"));
  }
  SECTION("scale") {
    members["scale"] = to_array(-1.0);
    CHECK_THROWS_WITH(read(), Contains("member \"scale\": expected a positive number, found -1"));
  }
}

TEST_CASE_METHOD(LayerFileTest, "read_tokens: a matrix of numbers, nothing else", "[model]") {
  const Matrix x = normal_matrix(rng, 3, 2);
  write_npy(folder / "X.npy", to_array(x));
  CHECK(read_tokens(folder / "X.npy") == x);
  write_npy(folder / "v.npy", to_array(Vector(Vector::Ones(3))));
  CHECK_THROWS_AS(read_tokens(folder / "v.npy"), std::runtime_error);
  write_npy(folder / "empty.npy", to_array(Matrix(Matrix::Zero(0, 2))));
  CHECK_THROWS_WITH(read_tokens(folder / "empty.npy"),
                    Catch::Contains("expected at least one token of one feature, found 0 x 2"));
  write_npz(folder / "layer.npz", members);
  CHECK_THROWS_WITH(read_tokens(folder / "layer.npz"),
                    Catch::Contains("expected a member X, found none"));
  CHECK_THROWS_AS(read_tokens(folder / "missing.npy"), std::runtime_error);
}

}  // namespace
}  // namespace lipsa
