/// \file
/// The max-token norm of a Jacobian, token by token. Private to lib/.
#pragma once

#include "lipsa/attention/jacobian.hpp"
#include "lipsa/linalg/norms.hpp"
#include "lipsa/model/attention_layer.hpp"

namespace lipsa {

struct TokenGain {
  Index token = 0;  ///< of those the Jacobian is of; the first, where several are equal
  BlockGain gain{};
};

/// The largest estimate_block_gain of the tokens' rows: |J| from max-token to max-token, from
/// below. Cost: a row block of D_out × n D for each thread.
TokenGain largest_token_gain(const Jacobian& j, const MultiHead& layer);

}  // namespace lipsa
