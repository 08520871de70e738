/// \file
/// Reading and writing .npz, numpy's zip archive of named arrays.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "lipsa/core/array_file.hpp"

namespace lipsa {

/// Arrays by name: the member W_Q.npy has the name W_Q.
using Npz = std::map<std::string, Array, std::less<>>;

/// Reads a .npz file with stored or deflated members, Zip64 or not. Members are read as `read_npy`
/// reads files, their checksums verified.
///
/// No member is unpacked that says it is larger than deflate can make it (1032 times its packed
/// size), and none of an archive that says it unpacks to more than 32 GiB or whose packed members
/// are together larger than the file.
///
/// \throws std::runtime_error  what `read_npy` refuses; an archive that is malformed, encrypted,
///         damaged, has two members of one name, or one that is no .npy file: path, member,
///         expected, found
///
/// \source PKWARE, .ZIP File Format Specification 6.3; the bound on deflate: zlib, Technical
///         Details, "Maximum Compression Factor".
/// \test   tests/core/npz_test.cpp, tests/fuzz/array_file_fuzz.cpp
Npz read_npz(const std::filesystem::path& path);

/// Writes the arrays, stored, in the order of their names, dated 1980-01-01. Same arrays, same
/// bytes. The file is there whole or not at all.
///
/// \throws std::invalid_argument  no arrays; an inconsistent array; a name that is not UTF-8
/// \throws WriteError             see core/atomic_file.hpp
/// \test   tests/core/npz_test.cpp
void write_npz(const std::filesystem::path& path, const Npz& arrays);

}  // namespace lipsa
