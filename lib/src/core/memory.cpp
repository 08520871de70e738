#include "lipsa/core/memory.hpp"

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace lipsa {

bool keep_freed_memory() {
#ifdef __GLIBC__
  // No array is mapped on its own, and the heap never shrinks (−1).
  return mallopt(M_MMAP_MAX, 0) == 1 && mallopt(M_TRIM_THRESHOLD, -1) == 1;
#else
  return false;
#endif
}

}  // namespace lipsa
