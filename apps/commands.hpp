/// \file
/// The commands of the program and the tasks of `lipsa lm`, one file each.
#pragma once

#include "common/cli.hpp"

namespace lipsa::cli {

extern const Command bound_sweep;
extern const Command bounds;
extern const Command counterexample;
extern const Command falsify;
extern const Command invert;
extern const Command lm;
extern const Command lm_depth_study;
extern const Command lm_eval;
extern const Command lm_lipschitz;
extern const Command lm_sample;
extern const Command lm_train;
extern const Command paper_tables;
extern const Command verify;

}  // namespace lipsa::cli
