/// \file
/// Reading and writing .safetensors, the file of named tensors and of text about them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "lipsa/core/array_file.hpp"

namespace lipsa {

struct Safetensors {
  std::map<std::string, Array, std::less<>> tensors{};
  std::map<std::string, std::string, std::less<>> metadata{};  ///< text of any kind, by name
  std::string origin{};  ///< the file it was read from, for messages; may be empty
};

/// Reads a .safetensors file: eight bytes that hold the length of a header, the header in JSON,
/// and the tensors, one beside the other. Types BOOL, I8 to I64, U8 to U64, F16, BF16, F32, F64.
///
/// Every element becomes the double of exactly the same value; one that has none, such as the
/// integer 2⁵³ + 1, is refused. NaN and infinities pass: see `require_finite`. Of F64 all bits
/// pass, also those of NaN. Memory is claimed only after the header has been found to fit the size
/// of the file.
///
/// Blanks after the header, tensors of rank 0 and tensors without elements are legal. So is a file
/// without tensors.
///
///     const Matrix w = to_matrix(read_safetensors("model.safetensors").tensors.at("head.weight"));
///
/// \throws std::runtime_error  the file is missing, empty, a Git LFS pointer or truncated; the
///         header is longer than the file or than 100 MB, does not begin with '{', is no JSON, has
///         a name twice or an entry of another form; a type is unknown; a shape overflows or does
///         not fit its bytes; tensors overlap, leave bytes unused or reach beyond the file: path,
///         tensor, expected, found
///
/// \source The format as its authors describe it, https://github.com/huggingface/safetensors.
/// \test   tests/core/safetensors_test.cpp, tests/fuzz/array_file_fuzz.cpp
Safetensors read_safetensors(const std::filesystem::path& path);

/// Writes each tensor as its `written_as` says: F64, F32 or U8, the widest first and those of one
/// type by name, so that each begins at a multiple of its element's size. Same tensors and
/// metadata, same bytes. The file is there whole or not at all.
///
/// \throws std::invalid_argument  naming the tensor: it is inconsistent or holds an element that is
///         not of its type; a name or a text is not UTF-8; a tensor is named __metadata__; the
///         header would be longer than 100 MB
/// \throws WriteError             see core/atomic_file.hpp
/// \test   tests/core/safetensors_test.cpp
void write_safetensors(const std::filesystem::path& path, const Safetensors& file);

}  // namespace lipsa
