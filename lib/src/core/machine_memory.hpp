/// \file
/// What this machine has, so that what it cannot hold is refused before it is begun. Private to
/// lib/.
#pragma once

#include <unistd.h>

namespace lipsa {

/// Bytes.
inline double memory_of_machine() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace lipsa
