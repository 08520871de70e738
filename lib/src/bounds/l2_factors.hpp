/// \file
/// What the bounds of tied L2 attention have in common. Private to lib/.
#pragma once

#include <string_view>

#include "lipsa/attention/multi_head.hpp"
#include "lipsa/bounds/up_rounded.hpp"

namespace lipsa {

/// \throws std::invalid_argument  the layer is invalid or of another kind, tokens < 1
void require_l2(std::string_view function, const MultiHead& layer, Index tokens);

/// The count as a double, rounded upwards.
double count_up(Index count);

/// s, at or above both 1/√d and the double the layer computes with.
double upper_bound_scale(const MultiHead& layer);

/// s |W_Oᵀ|_inf max_h(|W_Qʰ|_inf |W_Qʰᵀ|_inf) max_h |W_Vʰᵀ|_inf.
UpRounded l2_weights_inf(const MultiHead& layer);

}  // namespace lipsa
