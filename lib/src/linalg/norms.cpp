#include "lipsa/linalg/norms.hpp"
namespace lipsa {
std::string_view to_string(Norm norm) { return norm == Norm::one ? "1" : norm == Norm::two ? "2" : "inf"; }
}  // namespace lipsa
