/// \file
/// The trainable arrays of a piece of a network, by name: one walk for optimisers, checkpoints and
/// tests.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lipsa/core/types.hpp"

namespace lipsa {

// A piece is an aggregate of arrays and options, and the gradient of a loss in it is of the same
// type, with the same shapes. Each piece has one function
//
//     for_each_parameter(piece, f):  f(name, map) for each trainable array, always in this order,
//
// where `map` is an Eigen::Map of the array: of a Matrix, of a Vector, or, of a single number, of a
// Scalar. Empty arrays are left out. A piece made of pieces puts their name and a dot before
// theirs.

/// A single trainable number as an Eigen object.
using Scalar = Eigen::Matrix<double, 1, 1>;

/// T or const T.
template <class P, class T>
concept MaybeConst = std::same_as<std::remove_const_t<P>, T>;

inline Eigen::Map<Matrix> map_of(Matrix& m) {
  return {m.data(), m.rows(), m.cols()};
}
inline Eigen::Map<const Matrix> map_of(const Matrix& m) {
  return {m.data(), m.rows(), m.cols()};
}
inline Eigen::Map<Vector> map_of(Vector& v) {
  return {v.data(), v.size()};
}
inline Eigen::Map<const Vector> map_of(const Vector& v) {
  return {v.data(), v.size()};
}
inline Eigen::Map<Scalar> map_of(double& x) {
  return Eigen::Map<Scalar>(&x);
}
inline Eigen::Map<const Scalar> map_of(const double& x) {
  return Eigen::Map<const Scalar>(&x);
}

/// f(name, map_of(array)) unless the array is empty.
template <class F, class Array>
void visit_parameter(const F& f, const std::string& name, Array& array) {
  auto map = map_of(array);
  if (map.size() > 0) {
    f(name, map);
  }
}

/// f, with a prefix before every name: for the pieces that a piece is made of.
template <class F>
auto prefixed(std::string prefix, const F& f) {
  return [prefix = std::move(prefix), &f](const std::string& name, auto map) {
    f(prefix + name, map);
  };
}

/// An array of a piece, flat: a matrix row by row, as numpy has it.
template <class Values>
struct ParameterOf {
  std::string name{};
  std::vector<Index> shape{};  ///< (rows, columns), (size), or () of a single number
  Eigen::Map<Values> values;
};
using Parameter = ParameterOf<Vector>;
using ConstParameter = ParameterOf<const Vector>;

/// All arrays of a piece in the order of for_each_parameter: the k-th of a piece and the k-th of
/// its gradient belong together. They borrow; the piece must not be moved or resized meanwhile.
///
/// \test tests/core/parameters_test.cpp
template <class Piece>
auto parameters(Piece& piece) {
  using Values = std::conditional_t<std::is_const_v<Piece>, const Vector, Vector>;
  std::vector<ParameterOf<Values>> list;
  for_each_parameter(piece, [&](const std::string& name, auto map) {
    using Map = decltype(map);
    std::vector<Index> shape;
    if constexpr (Map::ColsAtCompileTime == Eigen::Dynamic) {
      shape = {map.rows(), map.cols()};
    } else if constexpr (Map::RowsAtCompileTime == Eigen::Dynamic) {
      shape = {map.size()};
    }
    list.push_back({name, std::move(shape), Eigen::Map<Values>(map.data(), map.size())});
  });
  return list;
}

/// The piece with each trainable number zero: what gradients are added to.
template <class Piece>
Piece zeros_like(Piece piece) {
  for_each_parameter(piece, [](const std::string& /*name*/, auto map) { map.setZero(); });
  return piece;
}

}  // namespace lipsa
