/// \file
/// Which lipsa this is.
#pragma once

#include <string_view>

namespace lipsa {

std::string_view version();  ///< "0.1.0"

/// The commit this was configured from, "" when unknown; "+" at the end when files differed from
/// it.
std::string_view commit();

std::string_view compiler();  ///< "GNU 12.2.0, Release"

}  // namespace lipsa
