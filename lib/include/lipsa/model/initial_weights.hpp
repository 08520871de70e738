/// \file
/// Layers with weights made up: ones, or random.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lipsa/attention/multi_head.hpp"

namespace lipsa {

/// How weights come about.
struct Initialiser {
  enum class Kind {
    identity,  ///< W_Q = W_K = W_V = W_O = I: each head its own features; 1 for D = 1
    glorot,    ///< uniform on ±√(6/(rows + columns)) of each whole matrix (Glorot & Bengio 2010)
    gaussian,  ///< normal with mean 0 and standard deviation sigma
  };
  Kind kind = Kind::identity;
  double sigma = 1.0;  ///< of gaussian, > 0
};

std::string to_string(const Initialiser& initialiser);  ///< "identity", "glorot", "gaussian:0.1"

/// \throws std::invalid_argument  none of "identity", "glorot", "gaussian:SIGMA" with SIGMA > 0
Initialiser parse_initialiser(std::string_view text);

/// A layer of D features and H heads of width d = d_v = D/H, without biases, with the
/// `default_epsilon` of cosine and β = 0 of sigmoid.
///
/// \throws std::invalid_argument  H does not divide D
/// \test tests/model/initial_weights_test.cpp
MultiHead initial_layer(const Initialiser& initialiser, AttentionKind kind, Index D, Index H,
                        std::uint64_t seed);

}  // namespace lipsa
