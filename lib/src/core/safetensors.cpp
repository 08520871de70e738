#include "lipsa/core/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "core/element.hpp"
#include "core/input_file.hpp"
#include "core/shape.hpp"
#include "lipsa/core/atomic_file.hpp"

namespace lipsa {
namespace {

using nlohmann::json;

constexpr std::string_view metadata_name = "__metadata__";
constexpr std::size_t length_size = 8;
constexpr std::uint64_t header_limit = 100'000'000;
constexpr int deepest = 2;            ///< of the header's objects and arrays: a shape in an entry
constexpr std::size_t alignment = 8;  ///< of where the tensors begin

struct Dtype {
  std::string_view name;
  ElementFormat format;
};

constexpr std::array dtypes{Dtype{"BOOL", format_of<bool>},
                            Dtype{"I8", format_of<std::int8_t>},
                            Dtype{"I16", format_of<std::int16_t>},
                            Dtype{"I32", format_of<std::int32_t>},
                            Dtype{"I64", format_of<std::int64_t>},
                            Dtype{"U8", format_of<std::uint8_t>},
                            Dtype{"U16", format_of<std::uint16_t>},
                            Dtype{"U32", format_of<std::uint32_t>},
                            Dtype{"U64", format_of<std::uint64_t>},
                            Dtype{"F16", format_of<Eigen::half>},
                            Dtype{"BF16", format_of<Eigen::bfloat16>},
                            Dtype{"F32", format_of<float>},
                            Dtype{"F64", format_of<double>}};

/// A tensor as the header describes it; offsets from the end of the header.
struct Entry {
  std::string name;
  std::string origin;
  const ElementFormat* format;
  std::vector<Index> shape;
  std::uint64_t begin;
  std::uint64_t end;
};

/// What of a value can be shown in a message.
std::string shown(const json& value) {
  constexpr std::size_t limit = 60;
  std::string text = value.dump(-1, ' ', true);  // ASCII: it may be cut anywhere
  if (text.size() > limit) {
    text.resize(limit);
    text += "…";
  }
  return text;
}

/// The header as JSON, each name once in each object.
json parse_header(const std::string& origin, std::string_view text) {
  if (!text.starts_with('{')) {
    malformed(origin, "byte {}: expected a header that begins with '{{', found {:?}", length_size,
              text.substr(0, 16));
  }
  std::vector<std::set<std::string>> names;  // of the objects that are open
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    const bool object = event == json::parse_event_t::object_start;
    if ((object || event == json::parse_event_t::array_start) && depth > deepest) {
      malformed(origin, "header: expected shapes and offsets of numbers, found one nested deeper");
    }
    if (object) {
      names.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      names.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names.back().insert(name).second) {
        malformed(origin, "header: expected each name once, found {:?} twice", name);
      }
    }
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::exception& error) {
    const auto* const syntax = dynamic_cast<const json::parse_error*>(&error);
    malformed(origin, "header, byte {}: expected JSON, found none: {}",
              length_size + (syntax != nullptr ? syntax->byte : 0), error.what());
  }
}

/// The member of the entry, whose keys have been checked.
std::optional<std::uint64_t> to_size(const json& value) {
  return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

const ElementFormat& find_dtype(const std::string& origin, const json& value) {
  const auto* const known =
      std::find_if(dtypes.begin(), dtypes.end(), [&](const Dtype& d) { return value == d.name; });
  if (known == dtypes.end()) {
    malformed(origin,
              "expected a dtype of BOOL, I8 to I64, U8 to U64, F16, BF16, F32, F64, found {}",
              shown(value));
  }
  return known->format;
}

std::vector<Index> to_shape(const std::string& origin, const json& value) {
  std::vector<Index> shape;
  if (value.is_array()) {
    shape.reserve(value.size());
    for (const json& extent : value) {
      const std::optional<std::uint64_t> size = to_size(extent);
      if (!size || *size > std::uint64_t{std::numeric_limits<Index>::max()}) {
        malformed(origin, "expected a shape of whole numbers from 0 below 2^63, found {}",
                  shown(value));
      }
      shape.push_back(static_cast<Index>(*size));
    }
    return shape;
  }
  malformed(origin, "expected a shape of whole numbers from 0 below 2^63, found {}", shown(value));
}

Entry to_entry(const std::string& path, const std::string& name, const json& value,
               std::uint64_t available) {
  std::string origin = fmt::format("{}: tensor {:?}", path, name);
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets")) {
    malformed(origin, "expected an object of dtype, shape and data_offsets, found {}",
              shown(value));
  }
  const ElementFormat& format = find_dtype(origin, value["dtype"]);
  std::vector<Index> shape = to_shape(origin, value["shape"]);
  const json& offsets = value["data_offsets"];
  const bool pair = offsets.is_array() && offsets.size() == 2;
  const std::optional<std::uint64_t> begin = pair ? to_size(offsets[0]) : std::nullopt;
  const std::optional<std::uint64_t> end = pair ? to_size(offsets[1]) : std::nullopt;
  if (!begin || !end || *begin > *end) {
    malformed(origin,
              "expected data_offsets of two whole numbers, the first not above the other, "
              "found {}",
              shown(offsets));
  }
  if (*end > available) {
    malformed(origin, "expected data_offsets within the {} bytes after the header, found {}{}",
              available, shown(offsets), ": is the file truncated?");
  }
  const std::optional<Index> count = element_count(shape);
  std::uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, format.size, &bytes)) {
    malformed(origin, "expected a shape of fewer than 2^63 elements, found {}", tuple_text(shape));
  }
  if (bytes != *end - *begin) {
    malformed(origin, "expected {} bytes for shape {} of {}, found {}", bytes, tuple_text(shape),
              shown(value["dtype"]), *end - *begin);
  }
  return {.name = name,
          .origin = std::move(origin),
          .format = &format,
          .shape = std::move(shape),
          .begin = *begin,
          .end = *end};
}

/// Refuses entries, in the order of their bytes, that do not fill the bytes, each once.
void require_tiling(const std::string& path, const std::vector<Entry>& entries,
                    std::uint64_t available) {
  std::uint64_t filled = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != filled) {
      malformed(entry.origin, "expected it to begin at byte {} of the tensors, {}, found {}",
                filled,
                entry.begin < filled ? "for they may not overlap" : "for none may be unused",
                entry.begin);
    }
    filled = entry.end;
  }
  if (filled != available) {
    malformed(path, "expected {} bytes of tensors after the header, found {}", filled, available);
  }
}

Array read_tensor(std::ifstream& stream, const Entry& entry) {
  Array array{.shape = entry.shape,
              .data = std::vector<double>((entry.end - entry.begin) / entry.format->size),
              .origin = entry.origin};
  std::array<char, 65536> buffer{};  // a multiple of every size; elements are widened in 8 bytes
  std::size_t place = 0;
  while (place < array.data.size()) {
    const std::size_t size = entry.format->size;
    const std::size_t count = std::min((buffer.size() - 8) / size, array.data.size() - place);
    stream.read(buffer.data(), static_cast<std::streamsize>(count * size));
    if (static_cast<std::size_t>(stream.gcount()) != count * size) {
      malformed(entry.origin, "truncated: expected {} bytes, found {}", count * size,
                stream.gcount());
    }
    for (const char* element = buffer.data(); element < buffer.data() + count * size;
         element += size, ++place) {
      array.data[place] = widened(*entry.format, element, entry.origin, array.shape, place);
    }
  }
  return array;
}

std::string_view dtype_of(ElementType type) {
  switch (type) {
    case ElementType::float64:
      return "F64";
    case ElementType::float32:
      return "F32";
    case ElementType::uint8:
      return "U8";
  }
  return "";
}

std::string dump(const nlohmann::ordered_json& header) {
  try {
    return header.dump();
  } catch (const json::exception& error) {
    require(false, "write_safetensors: names and texts must be UTF-8, got another: {}",
            error.what());
    throw;
  }
}

}  // namespace

Safetensors read_safetensors(const std::filesystem::path& path) {
  InputFile input = open_input(path);
  const std::string origin = path.string();
  if (input.size < length_size) {
    malformed(origin, "expected at least the {} bytes of a header's length, found {}", length_size,
              input.size);
  }
  std::uint64_t length = 0;
  input.stream.read(reinterpret_cast<char*>(&length), length_size);
  const std::uint64_t largest = std::min(input.size - length_size, header_limit);
  if (!input.stream || length < 2 || length > largest) {
    malformed(origin, "byte 0: expected a header of 2 to {} bytes, found {}", largest, length);
  }
  std::string text(length, '\0');
  input.stream.read(text.data(), static_cast<std::streamsize>(length));
  if (!input.stream) {
    malformed(origin, "truncated: expected a header of {} bytes, found {}", length,
              input.stream.gcount());
  }

  Safetensors file{.origin = origin};
  std::vector<Entry> entries;
  const std::uint64_t available = input.size - length_size - length;
  const json header = parse_header(origin, text);
  for (const auto& [name, value] : header.items()) {
    if (name != metadata_name) {
      entries.push_back(to_entry(origin, name, value, available));
      continue;
    }
    if (!value.is_object()) {
      malformed(origin, "header, {}: expected an object of strings, found {}", metadata_name,
                shown(value));
    }
    for (const auto& [key, content] : value.items()) {
      if (!content.is_string()) {
        malformed(origin, "header, {}: expected a string for {:?}, found {}", metadata_name, key,
                  shown(content));
      }
      file.metadata.emplace(key, content.get<std::string>());
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  require_tiling(origin, entries, available);
  for (const Entry& entry : entries) {
    file.tensors.emplace(entry.name, read_tensor(input.stream, entry));
  }
  return file;
}

void write_safetensors(const std::filesystem::path& path, const Safetensors& file) {
  using Item = decltype(file.tensors)::value_type;
  std::vector<const Item*> items;
  items.reserve(file.tensors.size());
  for (const Item& item : file.tensors) {
    require(item.first != metadata_name, "write_safetensors: tensors must have names other than {}",
            metadata_name);
    items.push_back(&item);
  }
  std::stable_sort(items.begin(), items.end(), [](const Item* a, const Item* b) {
    return element_size(a->second.written_as) > element_size(b->second.written_as);
  });

  auto header = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) {
    header[metadata_name] = file.metadata;
  }
  std::string data;
  for (const Item* item : items) {
    const Array& array = item->second;
    const std::size_t begin = data.size();
    append_elements(data, fmt::format("write_safetensors: tensor {:?}", item->first), array);
    header[item->first] = {{"dtype", dtype_of(array.written_as)},
                           {"shape", array.shape},
                           {"data_offsets", {begin, data.size()}}};
  }
  std::string text = dump(header);
  text.append((alignment - text.size() % alignment) % alignment, ' ');
  require(text.size() <= header_limit,
          "write_safetensors: file must have a header of at most {} bytes, got {}", header_limit,
          text.size());

  const std::uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char*>(&length), length_size);
  bytes.reserve(length_size + text.size() + data.size());
  bytes += text;
  bytes += data;
  write_file_atomically(path, bytes);
}

}  // namespace lipsa
