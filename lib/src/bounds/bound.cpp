#include "lipsa/bounds/bound.hpp"

namespace lipsa {

std::string_view to_string(BoundKind kind) {
  switch (kind) {
    case BoundKind::as_printed:
      return "as printed";
    case BoundKind::corrected:
      return "corrected";
    case BoundKind::ours:
      return "ours";
  }
  return "unknown";
}

}  // namespace lipsa
