/// \file
/// What array files hold, as doubles, and its way to and from matrices.
/// The files themselves: core/npy.hpp, core/npz.hpp, core/safetensors.hpp.
#pragma once

#include <string>
#include <vector>

#include "lipsa/core/types.hpp"

namespace lipsa {

/// What a file that is written has an element as. One that is read may have any type of number.
enum class ElementType {
  float64,
  float32,  ///< of elements that single precision holds: to write never rounds
  uint8,    ///< text, truth values
};

/// An array of any rank. Functions that take one throw std::invalid_argument when the product of
/// `shape` is not the number of `data`; an array that was read is consistent.
struct Array {
  std::vector<Index> shape{};  ///< rank 0, one element, when empty
  std::vector<double> data{};  ///< last index fastest
  std::string origin{};        ///< the file, and the member of it, for messages; may be empty
  ElementType written_as = ElementType::float64;  ///< whatever it was read from
};

/// An array of rank 2, rank 1, rank 0.
Array to_array(const Matrix& matrix);
Array to_array(const Vector& vector);
Array to_array(double scalar);

/// The matrix, vector or number that an array is; to_scalar takes one element of any rank.
///
///     const Matrix x = to_matrix(read_npy("X.npy"));
///
/// \throws std::runtime_error  the shape is another: origin, expected, found
/// \test   tests/core/array_file_test.cpp
Matrix to_matrix(const Array& array);
Vector to_vector(const Array& array);
double to_scalar(const Array& array);

/// Refuses NaN and infinities, which files may hold and no computation here takes.
///
/// \throws std::runtime_error  naming origin and place of the first one, indices from 0:
///         weights.npz: member "W_Q.npy": row 2, column 3: expected a finite number, found nan
/// \test   tests/core/array_file_test.cpp
void require_finite(const Array& array);

}  // namespace lipsa
