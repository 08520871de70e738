/// \file
/// Witnesses of large Lipschitz constants: what they claim, and files that anyone can check.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "lipsa/attention/mask.hpp"
#include "lipsa/attention/multi_head.hpp"
#include "lipsa/core/types.hpp"
#include "lipsa/linalg/norms.hpp"

namespace lipsa {

enum class WitnessForm {
  pair,       ///< |F(X) − F(Y)|_p > K |X − Y|_p
  direction,  ///< |J(X) V|_p > K |V|_p
  softmax,    ///< |M(p) v|_p > K |v|_p, M(p) = diag(p) − p pᵀ, p = softmax(s)
};

std::string_view to_string(WitnessForm form);  ///< "pair", "direction", "softmax"

/// A claim that some Lipschitz constant exceeds K, with the numbers that show it. Every double
/// stands for itself exactly, and F is the map in real numbers: whether the claim is true does not
/// depend on how anyone computes. See search/certificate.hpp for its proof.
struct Witness {
  WitnessForm form = WitnessForm::pair;
  MultiHead layer{};  ///< empty for softmax
  Mask mask = Mask::none();
  Norm norm = Norm::two;  ///< not max-token for softmax
  double exceeds = 0.0;   ///< K ≥ 0, finite
  std::string bound{};  ///< the catalogue entry it refutes, whose value here is at most K; or empty
  /// Claimed: every token of X (and Y) has |x_i|₂ ≤ radius. > 0.
  double radius = std::numeric_limits<double>::infinity();
  Matrix x{};  ///< n × D; softmax: the scores s, 1 × n
  Matrix y{};  ///< pair: Y; direction: V, n × D; softmax: v, 1 × n
};

/// What is known of a witness besides what it claims: for people, not for the proof.
struct WitnessNotes {
  double ratio_lower_bound = std::numeric_limits<double>::quiet_NaN();
  std::uint64_t seed = 0;
  std::string found_by{};
};

/// \throws std::invalid_argument  naming the field: shapes disagree, an entry is not finite, K or
///         the radius is out of range, a softmax with a layer, a mask or the max-token norm
void require_valid(const Witness& witness);

/// The claim in one line, as "|F(X) - F(Y)|_2 > 20.17 |X - Y|_2 for …". Numbers are exact.
std::string in_words(const Witness& witness);

/// Writes NAME.npz, which read_witness reads, and beside it NAME.json, which is for people.
///
/// The .npz has the members of a layer file (model/layer_file.hpp; none for softmax); X and Y
/// (pair), X and V (direction) or s and v (softmax); mask (n × n, uint8) when it is arbitrary;
/// claim, the UTF-8 bytes of a JSON object {form, attention, norm, exceeds, mask, bound, radius}
/// whose numbers are the shortest that give the double again, an infinite radius "inf"; and
/// digest, the 8 bytes, lowest first, of the 64-bit FNV-1a hash of all other members in the order
/// of their names: name, 0, rank, extents, elements as float64, integers of 8 bytes. The
/// digest detects accidents. It is no defence against malice and need not be: a true claim is true
/// whoever wrote it.
///
/// \param npz  a path that ends in .npz
/// \throws std::invalid_argument  another path, or an invalid witness
/// \throws WriteError             see core/atomic_file.hpp; each file is whole or not there
/// \test   tests/model/witness_test.cpp
void write_witness(const std::filesystem::path& npz, const Witness& witness,
                   const WitnessNotes& notes);

/// \throws std::runtime_error  what read_npz refuses; a member that is missing, unknown, not finite
///         or does not fit; a claim that is malformed; a digest of other contents: path, member,
///         expected, found
/// \test   tests/model/witness_test.cpp
Witness read_witness(const std::filesystem::path& npz);

}  // namespace lipsa
