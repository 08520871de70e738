/// \file
/// The commands of the program, one file each.
#pragma once

#include "common/cli.hpp"

namespace lipsa::cli {

extern const Command bound_sweep;
extern const Command bounds;
extern const Command counterexample;
extern const Command falsify;
extern const Command invert;
extern const Command lm;
extern const Command verify;

}  // namespace lipsa::cli
