#include "lipsa/core/npy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "core/check.hpp"
#include "core/element.hpp"
#include "core/input_file.hpp"
#include "core/npy.hpp"
#include "core/shape.hpp"
#include "lipsa/core/atomic_file.hpp"

namespace lipsa {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

/// A header longer than this describes a structure; the rest of format 2.0 exists for those.
constexpr std::size_t header_limit = 65535;

/// Reads exactly `count` bytes, the first of them at `offset` of the source.
void read_exactly(const ByteSource& source, std::uint64_t offset, char* bytes, std::size_t count) {
  const std::size_t got = source.read(bytes, count);
  if (got != count) {
    malformed(source.origin, "truncated: expected {} bytes at byte {}, found {}", count, offset,
              got);
  }
}

// ── the header: a Python dict literal ──────────────────────────────────────────────────────────

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<Index>> shape;
};

class HeaderParser {
 public:
  HeaderParser(const std::string& origin, std::string_view text, std::size_t offset)
      : origin_(origin), text_(text), offset_(offset) {}

  Header parse() {
    Header header;
    expect('{');
    while (!accept('}')) {
      const std::string key = string("a key");
      expect(':');
      if (key == "descr" && !header.descr) {
        header.descr = dtype();
      } else if (key == "fortran_order" && !header.fortran_order) {
        header.fortran_order = boolean();
      } else if (key == "shape" && !header.shape) {
        header.shape = shape();
      } else {
        malformed(origin_, "header: expected each of descr, fortran_order, shape once, found {:?}",
                  key);
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) {
      unexpected("nothing after the header's '}'");
    }
    for (const auto& [key, found] : {std::pair{"descr", header.descr.has_value()},
                                     {"fortran_order", header.fortran_order.has_value()},
                                     {"shape", header.shape.has_value()}}) {
      if (!found) {
        malformed(origin_, "header: expected the key {}, found none", key);
      }
    }
    return header;
  }

 private:
  [[noreturn]] void unexpected(std::string_view expected) const {
    malformed(origin_, "header, byte {}: expected {}, found {:?}", offset_ + at_, expected,
              text_.substr(at_, 16));
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool accept(std::string_view token) {
    skip_blanks();
    const bool found = text_.substr(at_).starts_with(token);
    at_ += found ? token.size() : 0;
    return found;
  }
  bool accept(char token) { return accept({&token, 1}); }

  void expect(char token) {
    if (!accept(token)) {
      unexpected({&token, 1});
    }
  }

  std::string string(std::string_view what) {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"' && !accept('"')) {
      unexpected(what);
    }
    const std::size_t end = text_.find_first_of(std::string{quote, '\\', '\n'}, at_);
    if (end == std::string_view::npos || text_[end] != quote) {
      unexpected("a plain string");
    }
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return std::string(value);
  }

  std::string dtype() {
    if (accept('[') || accept('(') || accept('{')) {
      malformed(origin_, "expected a dtype of real numbers, found a structured one");
    }
    return string("a dtype");
  }

  bool boolean() {
    const bool value = accept("True");
    if (!value && !accept("False")) {
      unexpected("True or False");
    }
    return value;
  }

  std::vector<Index> shape() {
    std::vector<Index> extents;
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) {
        unexpected("',' or ')'");
      }
      extents.push_back(extent());
      comma = accept(',');
    }
    if (extents.size() == 1 && !comma) {  // to Python a number in brackets, no tuple
      at_ -= 1;
      unexpected("','");
    }
    return extents;
  }

  Index extent() {
    skip_blanks();
    const std::string_view rest = text_.substr(at_);
    Index value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const auto length = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc{} || value < 0 || (length > 1 && rest[0] == '0')) {
      unexpected("a size of at least 0 and below 2^63");
    }
    at_ += length;
    at_ += text_.substr(at_).starts_with('L') ? 1U : 0U;  // a long of Python 2
    return value;
  }

  const std::string& origin_;
  std::string_view text_;
  std::size_t offset_;
  std::size_t at_ = 0;
};

/// The header, and in `offset` where the data begin.
Header read_header(const ByteSource& source, std::uint64_t& offset) {
  std::array<char, 8> start{};
  read_exactly(source, 0, start.data(), start.size());
  if (!std::string_view(start.data(), start.size()).starts_with(magic)) {
    malformed(source.origin, "byte 0: expected the magic string {:?}, found {:?}", magic,
              std::string_view(start.data(), magic.size()));
  }
  if (start[6] < 1 || start[6] > 3 || start[7] != 0) {
    malformed(source.origin, "byte 6: expected format 1.0, 2.0 or 3.0, found {}.{}",
              static_cast<unsigned char>(start[6]), static_cast<unsigned char>(start[7]));
  }
  std::array<unsigned char, 4> digits{};  // little-endian: two bytes in 1.0, four since
  const std::size_t width = start[6] == 1 ? 2 : 4;
  read_exactly(source, start.size(), reinterpret_cast<char*>(digits.data()), width);
  std::size_t length = 0;
  for (std::size_t k = width; k-- > 0;) {
    length = length << 8U | digits.at(k);
  }
  offset = start.size() + width;
  if (source.size < offset || length > source.size - offset) {
    malformed(source.origin, "byte 8: expected a header of at most {} bytes, found {}",
              source.size - std::min(source.size, offset), length);
  }
  if (length > header_limit) {
    malformed(source.origin, "byte 8: expected a header of at most {} bytes, found {}",
              header_limit, length);
  }
  std::string text(length, '\0');
  read_exactly(source, offset, text.data(), length);
  Header header = HeaderParser(source.origin, text, offset).parse();
  offset += length;
  return header;
}

// ── the elements ───────────────────────────────────────────────────────────────────────────────

struct Dtype {
  std::string_view name;  ///< kind and bytes, as numpy writes them after the byte order
  ElementFormat format;
};

constexpr std::array dtypes{
    Dtype{"b1", format_of<bool>},          Dtype{"i1", format_of<std::int8_t>},
    Dtype{"i2", format_of<std::int16_t>},  Dtype{"i4", format_of<std::int32_t>},
    Dtype{"i8", format_of<std::int64_t>},  Dtype{"u1", format_of<std::uint8_t>},
    Dtype{"u2", format_of<std::uint16_t>}, Dtype{"u4", format_of<std::uint32_t>},
    Dtype{"u8", format_of<std::uint64_t>}, Dtype{"f2", format_of<Eigen::half>},
    Dtype{"f4", format_of<float>},         Dtype{"f8", format_of<double>}};

/// \param descr  byte order and name: <, >, = (this machine's), or | for a single byte
const ElementFormat& find_dtype(const std::string& origin, std::string_view descr) {
  const std::string_view order = descr.substr(0, 1);
  const std::string_view name = descr.substr(order.size());
  const auto* const dtype = std::find_if(dtypes.begin(), dtypes.end(),
                                         [&](const Dtype& known) { return known.name == name; });
  if (dtype != dtypes.end() &&
      (order == "<" || order == ">" || order == "=" || (order == "|" && dtype->format.size == 1))) {
    return dtype->format;
  }
  std::string_view what;
  switch (name.empty() ? '\0' : name[0]) {
    case 'O':
      what = ", Python objects";
      break;
    case 'V':
      what = ", structures";
      break;
    case 'c':
      what = ", complex numbers";
      break;
    case 'S':
    case 'U':
      what = ", text";
      break;
    case 'M':
    case 'm':
      what = ", times";
      break;
    default:
      break;
  }
  malformed(origin, "expected a dtype of real numbers (b1, i1 to u8, f2, f4, f8), found {:?}{}",
            descr, what);
}

/// Where the elements of a Fortran-ordered file, first index fastest, go in C order.
class FortranOrder {
 public:
  explicit FortranOrder(const std::vector<Index>& shape)
      : shape_(shape), stride_(shape.size(), 1), index_(shape.size(), 0) {
    for (std::size_t axis = shape.size(); axis-- > 1;) {
      stride_[axis - 1] = stride_[axis] * shape[axis];
    }
  }

  Index next() {
    const Index place = place_;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      place_ += stride_[axis];
      if (++index_[axis] < shape_[axis]) {
        break;
      }
      place_ -= stride_[axis] * std::exchange(index_[axis], 0);
    }
    return place;
  }

 private:
  const std::vector<Index>& shape_;
  std::vector<Index> stride_;
  std::vector<Index> index_;
  Index place_ = 0;
};

}  // namespace

Array decode_npy(const ByteSource& source) {
  std::uint64_t offset = 0;
  const Header header = read_header(source, offset);
  const ElementFormat& dtype = find_dtype(source.origin, *header.descr);
  const bool swap = header.descr->front() == '>';

  const std::optional<Index> count = element_count(*header.shape);
  std::uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, dtype.size, &bytes) ||
      bytes > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    malformed(source.origin, "expected a shape of fewer than 2^63 bytes, found {}",
              tuple_text(*header.shape));
  }
  if (bytes != source.size - offset) {
    malformed(source.origin, "byte {}: expected {} bytes of data for shape {} of {:?}, found {}",
              offset, bytes, tuple_text(*header.shape), *header.descr, source.size - offset);
  }

  Array array{.shape = *header.shape,
              .data = std::vector<double>(static_cast<std::size_t>(*count)),
              .origin = source.origin};
  FortranOrder fortran(array.shape);
  std::array<char, 65536> buffer{};
  std::size_t left = 0;
  const char* element = nullptr;
  for (std::size_t k = 0; k < array.data.size(); ++k) {
    if (left == 0) {
      left = std::min(buffer.size() / dtype.size, array.data.size() - k);
      read_exactly(source, offset + k * dtype.size, buffer.data(), left * dtype.size);
      element = buffer.data();
    }
    std::array<char, 8> native{};
    if (swap) {
      std::reverse_copy(element, element + dtype.size, native.begin());
    } else {
      std::copy_n(element, dtype.size, native.begin());
    }
    const std::size_t place = *header.fortran_order ? static_cast<std::size_t>(fortran.next()) : k;
    array.data[place] = widened(dtype, native.data(), source.origin, array.shape, place);
    element += dtype.size;
    --left;
  }
  // A zip archive verifies its checksum only here, at the end.
  if (char extra = 0; source.read(&extra, 1) != 0) {
    malformed(source.origin, "expected the end at byte {}, found more", offset + bytes);
  }
  return array;
}

std::string encode_npy(std::string_view function, const Array& array) {
  require_consistent(function, array);
  std::string_view descr;
  switch (array.written_as) {
    case ElementType::float64:
      descr = "<f8";
      break;
    case ElementType::float32:
      descr = "<f4";
      break;
    case ElementType::uint8:
      descr = "|u1";
      break;
  }
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   descr, tuple_text(array.shape));
  const std::size_t start = magic.size() + 4;
  header.append(63 - (start + header.size()) % 64, ' ').append("\n");  // data start at 64 k
  require(header.size() <= header_limit, "{}: array must have fewer dimensions, got {}", function,
          array.shape.size());

  std::string bytes(magic);
  bytes += {1, 0, static_cast<char>(header.size() & 255U), static_cast<char>(header.size() >> 8U)};
  bytes += header;
  append_elements(bytes, function, array);
  return bytes;
}

Array read_npy(const std::filesystem::path& path) {
  InputFile file = open_input(path);
  return decode_npy({path.string(), file.size, [&](char* bytes, std::size_t count) {
                       file.stream.read(bytes, static_cast<std::streamsize>(count));
                       return static_cast<std::size_t>(file.stream.gcount());
                     }});
}

void write_npy(const std::filesystem::path& path, const Array& array) {
  write_file_atomically(path, encode_npy("write_npy", array));
}

}  // namespace lipsa
