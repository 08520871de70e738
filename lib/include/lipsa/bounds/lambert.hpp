/// \file
/// The Lambert function on [0, ∞), which the constants of L2 attention are made of.
#pragma once

namespace lipsa {

/// An estimate of W(y), the w ≥ 0 with w eʷ = y, good to a few units in the last place.
///
/// \param y  ≥ 0, finite
/// \throws std::invalid_argument
/// \test   tests/bounds/lambert_test.cpp
double lambert_w(double y);

/// A double w with w eʷ ≥ y, which is checked with the rounding of the check covered; at most 16
/// units in the last place above W(y). Trusted: IEEE arithmetic, and that std::exp errs by at most
/// four units in the last place.
///
/// \param y  ≥ 0, finite
/// \throws std::invalid_argument
/// \test   tests/bounds/lambert_test.cpp
double upper_bound_lambert_w(double y);

/// An estimate of φ⁻¹(y) = W(y/e), where φ(x) = x e^(x+1). At y = n − 1 it is the c(n) of L2
/// attention: no token has Σ_j P_ij |z_i − z_j|² above it when it sees n tokens and itself among
/// them.
///
/// \param y  ≥ 0, finite
/// \throws std::invalid_argument
/// \source Kim, Papamakarios & Mnih, ICML 2021, Theorem 3.2.
/// \test   tests/bounds/lambert_test.cpp
double phi_inverse(double y);

/// The same from above, as `upper_bound_lambert_w`.
double upper_bound_phi_inverse(double y);

}  // namespace lipsa
