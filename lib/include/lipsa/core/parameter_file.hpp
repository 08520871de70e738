/// \file
/// The arrays of a piece in a .safetensors file, by their names.
#pragma once

#include <string>
#include <vector>

#include "lipsa/core/parameters.hpp"
#include "lipsa/core/safetensors.hpp"

namespace lipsa {

/// Puts arrays into `file` as float64, each under the prefix and its name.
///
/// \throws std::invalid_argument  the file already has a tensor of such a name
/// \test   tests/core/parameter_file_test.cpp
void store_parameters(Safetensors& file, const std::string& prefix,
                      const std::vector<ConstParameter>& arrays);

/// Fills arrays from the tensors of their names, bit for bit those that were stored. Other tensors
/// of the file are not looked at. When it throws, no array has changed.
///
/// \throws std::runtime_error  a tensor is missing, of another shape or not finite: path, tensor,
///         expected, found
/// \test   tests/core/parameter_file_test.cpp
void load_parameters(const Safetensors& file, const std::string& prefix,
                     const std::vector<Parameter>& arrays);

}  // namespace lipsa
