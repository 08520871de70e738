#include "model/layer_members.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include "lipsa/attention/cosine.hpp"

namespace lipsa {
namespace {

template <class T>
struct Field {
  std::string_view name;
  T MultiHead::*field;
  bool required = false;
};

constexpr std::array matrices{
    Field<Matrix>{"W_Q", &MultiHead::W_Q, true}, Field<Matrix>{"W_K", &MultiHead::W_K, true},
    Field<Matrix>{"W_V", &MultiHead::W_V, true}, Field<Matrix>{"W_O", &MultiHead::W_O}};
constexpr std::array vectors{
    Field<Vector>{"b_Q", &MultiHead::b_Q}, Field<Vector>{"b_K", &MultiHead::b_K},
    Field<Vector>{"b_V", &MultiHead::b_V}, Field<Vector>{"b_O", &MultiHead::b_O}};

/// A number, not in the file when it is the default.
struct Scalar {
  std::string_view name;
  double MultiHead::*field;
  bool positive;                        ///< or else any number
  std::optional<AttentionKind> only{};  ///< the kind that has it; none: all
};
constexpr std::array scalars{
    Scalar{"scale", &MultiHead::scale, true},
    Scalar{"epsilon", &MultiHead::epsilon, true, AttentionKind::cosine},
    Scalar{"score_bias", &MultiHead::score_bias, false, AttentionKind::sigmoid}};

std::vector<std::string_view> layer_names() {
  std::vector<std::string_view> names;
  const auto add = [&](const auto& fields) {
    std::transform(fields.begin(), fields.end(), std::back_inserter(names),
                   [](const auto& field) { return field.name; });
  };
  add(matrices);
  add(vectors);
  names.emplace_back("heads");
  add(scalars);
  return names;
}

bool is_key(std::string_view name) {
  return name == "W_K" || name == "b_K";
}

}  // namespace

Members::Members(const std::filesystem::path& path, const std::vector<std::string_view>& beside)
    : path_(path), arrays_(read_npz(path)) {
  std::vector<std::string_view> known = layer_names();
  known.insert(known.end(), beside.begin(), beside.end());
  for (const auto& [name, array] : arrays_) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      refuse(path, "member \"{}\": expected one of {}", name, fmt::join(known, ", "));
    }
    require_finite(array);
  }
}

const Array& Members::required(std::string_view name) const {
  const auto found = arrays_.find(name);
  if (found == arrays_.end()) {
    refuse(path_, "expected a member {}, found none", name);
  }
  return found->second;
}

bool Members::has_layer() const {
  const std::vector<std::string_view> names = layer_names();
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return has(name); });
}

MultiHead Members::layer(AttentionKind kind) const {
  const double heads = to_scalar(required("heads"));
  if (!(heads >= 1.0 && heads <= 1e6 && heads == std::floor(heads))) {
    refuse(path_, "member \"heads\": expected a whole number from 1, found {}", heads);
  }
  MultiHead layer;
  layer.kind = kind;
  layer.heads = static_cast<Index>(heads);
  const auto used = [&](const auto& field) {
    return !(kind == AttentionKind::l2 && is_key(field.name)) &&
           (field.required || has(field.name));
  };
  for (const auto& field : matrices) {
    if (used(field)) {
      layer.*field.field = to_matrix(required(field.name));
    }
  }
  for (const auto& field : vectors) {
    if (used(field)) {
      layer.*field.field = to_vector(required(field.name));
    }
  }
  layer.epsilon = kind == AttentionKind::cosine ? default_epsilon : 0.0;
  for (const auto& field : scalars) {
    if (has(field.name) && field.only.value_or(kind) == kind) {
      const double value = to_scalar(required(field.name));
      if (field.positive && !(value > 0.0)) {
        refuse(path_, "member \"{}\": expected a positive number, found {}", field.name, value);
      }
      layer.*field.field = value;
    }
  }
  try {
    require_valid(layer);
  } catch (const std::invalid_argument& e) {  // here the file is at fault, not the caller
    refuse(path_, "{}", e.what());
  }
  return layer;
}

Npz layer_members(const MultiHead& layer) {
  Npz members;
  members["heads"] = to_array(static_cast<double>(layer.heads));
  const auto put = [&](const auto& field) {
    if ((layer.*field.field).size() > 0) {
      members[std::string(field.name)] = to_array(layer.*field.field);
    }
  };
  for (const auto& field : matrices) {
    put(field);
  }
  for (const auto& field : vectors) {
    put(field);
  }
  for (const auto& field : scalars) {
    if (layer.*field.field != MultiHead{}.*field.field) {
      members[std::string(field.name)] = to_array(layer.*field.field);
    }
  }
  return members;
}

}  // namespace lipsa
