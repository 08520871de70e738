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
    case BoundKind::misapplied:
      return "misapplied";
  }
  return "unknown";
}

std::string_view to_string(Subject subject) {
  switch (subject) {
    case Subject::attention:
      return "attention";
    case Subject::softmax:
      return "softmax";
    case Subject::normalisation:
      return "normalisation";
  }
  return "unknown";
}

std::string_view to_string(Domain domain) {
  switch (domain) {
    case Domain::everywhere:
      return "all X";
    case Domain::token_ball:
      return "|x_i|_2 <= R";
    case Domain::around_point:
      return "|X' - X|_F <= eps";
    case Domain::from_point:
      return "from X to |X' - X|_F <= eps";
    case Domain::point:
      return "at X";
  }
  return "unknown";
}

}  // namespace lipsa
