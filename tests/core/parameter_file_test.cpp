#include "lipsa/core/parameter_file.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <stdexcept>

#include "files.hpp"
#include "lipsa/core/rng.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

struct Piece {
  Matrix W{};
  Vector b{};
  double gain = 1.0;
};

template <MaybeConst<Piece> P, class F>
void for_each_parameter(P& piece, const F& f) {
  visit_parameter(f, "W", piece.W);
  visit_parameter(f, "b", piece.b);
  visit_parameter(f, "gain", piece.gain);
}

const Piece& as_const(const Piece& piece) {
  return piece;
}

TEST_CASE("store_parameters: what is stored is loaded bit for bit, through a file", "[core]") {
  Rng rng(1);
  const Matrix W = normal_matrix(rng, 3, 2);
  const Piece piece{.W = W, .b = Vector::Constant(4, -0.0), .gain = 0.1};
  const TemporaryFolder folder;
  Safetensors file;
  store_parameters(file, "layers.0.", parameters(piece));
  CHECK(file.tensors.at("layers.0.W").shape == std::vector<Index>{3, 2});
  CHECK(file.tensors.at("layers.0.gain").shape.empty());
  write_safetensors(folder / "m.safetensors", file);

  Piece loaded{.W = Matrix::Zero(3, 2), .b = Vector::Ones(4)};
  load_parameters(read_safetensors(folder / "m.safetensors"), "layers.0.", parameters(loaded));
  CHECK(loaded.W == piece.W);
  CHECK(std::signbit(loaded.b(3)));
  CHECK(loaded.gain == 0.1);
}

TEST_CASE("store_parameters: a name that is taken is refused", "[core]") {
  Safetensors file;
  const Piece piece{.W = Matrix::Ones(1, 1)};
  store_parameters(file, "a.", parameters(piece));
  CHECK_THROWS_WITH(store_parameters(file, "a.", parameters(piece)),
                    "store_parameters: arrays must have names of their own, got \"a.W\" again");
}

TEST_CASE("load_parameters: says what is missing or does not fit, and changes nothing", "[core]") {
  const TemporaryFolder folder;
  const auto path = folder / "m.safetensors";
  Safetensors file;
  Piece piece{.W = Matrix::Ones(3, 2), .b = Vector::Ones(4)};
  store_parameters(file, "", parameters(as_const(piece)));
  const auto load = [&] {
    write_safetensors(path, file);
    load_parameters(read_safetensors(path), "", parameters(piece));
  };
  piece.W.setZero();
  SECTION("missing") {
    file.tensors.erase("gain");
    CHECK_THROWS_WITH(load(), Contains("m.safetensors: expected a tensor \"gain\", found none"));
  }
  SECTION("of another shape") {
    file.tensors.at("b") = to_array(Matrix(Matrix::Ones(4, 1)));
    CHECK_THROWS_WITH(load(),
                      Contains("m.safetensors: tensor \"b\": expected shape (4,), found (4, 1)"));
  }
  SECTION("not finite") {
    file.tensors.at("b").data[2] = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH(load(), Contains("tensor \"b\": element (2,): expected a finite number"));
  }
  CHECK_THROWS_AS(load(), std::runtime_error);
  CHECK(piece.W == Matrix::Zero(3, 2));
}

}  // namespace
}  // namespace lipsa
