/// \file
/// Reading and writing .npy, numpy's file of one array.
#pragma once

#include <filesystem>

#include "lipsa/core/array_file.hpp"

namespace lipsa {

/// Reads a .npy file of version 1, 2 or 3, in C or Fortran order and either endianness, of bools,
/// integers of 1 to 8 bytes, or floats of 2, 4 or 8 bytes.
///
/// Every element becomes the double of exactly the same value; one that has none, such as the
/// integer 2⁵³ + 1, is refused. NaN and infinities pass: see `require_finite`. Memory is claimed
/// only after the header has been found to fit the size of the file.
///
/// \throws std::runtime_error  the file is missing, a Git LFS pointer, malformed, truncated or too
///         long, or of objects, structures, complex numbers or text: path, place, expected, found
///
/// \source NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays", and the
///         documentation of numpy.lib.format for versions 2 and 3.
/// \test   tests/core/npy_test.cpp, tests/fuzz/array_file_fuzz.cpp
Array read_npy(const std::filesystem::path& path);

/// Writes version 1.0, '<f8', '<f4' or '|u1', C order. Same array, same bytes. The file is there
/// whole or not at all.
///
/// \throws std::invalid_argument  the array is inconsistent, or an element is not of the type it is
///         to be written as: a whole number from 0 to 255, a number of single precision
/// \throws WriteError             see core/atomic_file.hpp
/// \test   tests/core/npy_test.cpp
void write_npy(const std::filesystem::path& path, const Array& array);

}  // namespace lipsa
