#include "lipsa/core/parameters.hpp"

#include <catch2/catch.hpp>

namespace lipsa {
namespace {

struct Small {
  Matrix W{};
  Vector b{};
  Vector none{};
  double gain = 1.0;
};

template <MaybeConst<Small> P, class F>
void for_each_parameter(P& piece, const F& f) {
  visit_parameter(f, "W", piece.W);
  visit_parameter(f, "b", piece.b);
  visit_parameter(f, "none", piece.none);
  visit_parameter(f, "gain", piece.gain);
}

struct Pair {
  Small first{};
  Small second{};
};

template <MaybeConst<Pair> P, class F>
void for_each_parameter(P& piece, const F& f) {
  for_each_parameter(piece.first, prefixed("first.", f));
  for_each_parameter(piece.second, prefixed("second.", f));
}

Small small() {
  return {.W = (Matrix(2, 3) << 1, 2, 3, 4, 5, 6).finished(), .b = Vector::Ones(2), .gain = 7.0};
}

TEST_CASE("parameters: names, shapes and numbers in order, without empty arrays", "[core]") {
  Pair pair{small(), small()};
  pair.second.none = Vector::Ones(1);
  const auto list = parameters(pair);
  std::vector<std::string> names;
  names.reserve(list.size());
  for (const Parameter& p : list) {
    names.push_back(p.name);
  }
  CHECK(names == std::vector<std::string>{"first.W", "first.b", "first.gain", "second.W",
                                          "second.b", "second.none", "second.gain"});
  CHECK(list[0].shape == std::vector<Index>{2, 3});
  CHECK(list[1].shape == std::vector<Index>{2});
  CHECK(list[2].shape.empty());
  CHECK(list[0].values == (Vector(6) << 1, 2, 3, 4, 5, 6).finished());  // row by row
  CHECK(list[2].values(0) == 7.0);
}

TEST_CASE("parameters: what is written through them is the piece's", "[core]") {
  Small piece = small();
  for (Parameter& p : parameters(piece)) {
    p.values *= 2.0;
  }
  CHECK(piece.W(1, 2) == 12.0);
  CHECK(piece.gain == 14.0);
  const Small& constant = piece;
  const std::vector<ConstParameter> list = parameters(constant);
  CHECK(list[0].values.data() == piece.W.data());
}

TEST_CASE("zeros_like: the same shapes, all zero", "[core]") {
  const Small zero = zeros_like(small());
  CHECK(zero.W == Matrix::Zero(2, 3));
  CHECK(zero.b == Vector::Zero(2));
  CHECK(zero.gain == 0.0);
}

}  // namespace
}  // namespace lipsa
