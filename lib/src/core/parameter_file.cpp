#include "lipsa/core/parameter_file.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/input_file.hpp"
#include "core/shape.hpp"

namespace lipsa {

void store_parameters(Safetensors& file, const std::string& prefix,
                      const std::vector<ConstParameter>& arrays) {
  for (const ConstParameter& array : arrays) {
    const auto [place, added] = file.tensors.try_emplace(prefix + array.name);
    require(added, "store_parameters: arrays must have names of their own, got {:?} again",
            place->first);
    place->second.shape = array.shape;
    place->second.data.assign(array.values.data(), array.values.data() + array.values.size());
  }
}

void load_parameters(const Safetensors& file, const std::string& prefix,
                     const std::vector<Parameter>& arrays) {
  std::vector<const Array*> found;
  found.reserve(arrays.size());
  for (const Parameter& array : arrays) {
    const auto tensor = file.tensors.find(prefix + array.name);
    if (tensor == file.tensors.end()) {
      malformed(file.origin.empty() ? "safetensors" : file.origin,
                "expected a tensor {:?}, found none", prefix + array.name);
    }
    const Array& stored = tensor->second;
    if (stored.shape != array.shape) {
      malformed(stored.origin.empty() ? tensor->first : stored.origin,
                "expected shape {}, found {}", tuple_text(array.shape), tuple_text(stored.shape));
    }
    require_finite(stored);
    found.push_back(&stored);
  }
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    Eigen::Map<Vector> values = arrays[k].values;
    std::copy(found[k]->data.begin(), found[k]->data.end(), values.data());
  }
}

}  // namespace lipsa
