#include "lipsa/model/witness.hpp"

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/core/npz.hpp"
#include "lipsa/core/version.hpp"
#include "model/layer_members.hpp"

namespace lipsa {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view no_attention = "none";
constexpr std::size_t longest_claim = 10000;

/// The members that X and Y of the witness are.
struct Names {
  std::string_view x, y;
};
Names names_of(WitnessForm form) {
  switch (form) {
    case WitnessForm::pair:
      return {"X", "Y"};
    case WitnessForm::direction:
      return {"X", "V"};
    case WitnessForm::softmax:
      break;
  }
  return {"s", "v"};
}

class Fnv1a {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
  }
  void add(std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte, word >>= 8U) {
      hash_ = (hash_ ^ (word & 255U)) * 0x100000001b3U;
    }
  }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

std::uint64_t digest_of(const Npz& members) {
  Fnv1a hash;
  for (const auto& [name, array] : members) {
    if (name == "digest") {
      continue;
    }
    hash.add(name);
    hash.add(std::string_view("\0", 1));
    hash.add(array.shape.size());
    for (const Index extent : array.shape) {
      hash.add(static_cast<std::uint64_t>(extent));
    }
    for (const double x : array.data) {
      hash.add(std::bit_cast<std::uint64_t>(x));
    }
  }
  return hash.hash();
}

Array bytes_array(std::string_view bytes) {
  Array array{.shape = {static_cast<Index>(bytes.size())}, .written_as = ElementType::uint8};
  for (const char byte : bytes) {
    array.data.push_back(static_cast<unsigned char>(byte));
  }
  return array;
}

Array digest_array(std::uint64_t digest) {
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte, digest >>= 8U) {
    bytes += static_cast<char>(digest & 255U);
  }
  return bytes_array(bytes);
}

Array mask_array(const Mask& mask) {
  const Index n = mask.tokens();
  Array array{.shape = {n, n}, .written_as = ElementType::uint8};
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      array.data.push_back(mask.visible(i, j) ? 1.0 : 0.0);
    }
  }
  return array;
}

Json claim_of(const Witness& w) {
  Json claim;
  claim["form"] = to_string(w.form);
  claim["attention"] = w.form == WitnessForm::softmax ? no_attention : to_string(w.layer.kind);
  claim["norm"] = to_string(w.norm);
  claim["exceeds"] = w.exceeds;
  claim["mask"] = to_string(w.mask.kind());
  claim["bound"] = w.bound;
  claim["radius"] = std::isinf(w.radius) ? Json("inf") : Json(w.radius);
  return claim;
}

/// Reads the parts of one witness file, each refused by its name.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path), members_(path, {"X", "Y", "V", "s", "v", "mask", "claim", "digest"}) {}

  Witness read() {
    check_digest();
    parse_claim();
    Witness w;
    w.form = one_of("form", {WitnessForm::pair, WitnessForm::direction, WitnessForm::softmax});
    w.norm = one_of("norm", {Norm::one, Norm::two, Norm::inf, Norm::max_token});
    w.exceeds = number("exceeds");
    w.bound = text("bound");
    w.radius =
        claim_.at("radius") == "inf" ? std::numeric_limits<double>::infinity() : number("radius");
    w.mask = mask();
    const Names names = names_of(w.form);
    for (const std::string_view name : {"X", "Y", "V", "s", "v"}) {
      if (members_.has(name) && name != names.x && name != names.y) {
        refuse(path_, "member \"{}\": expected none in a witness of form {}", name,
               to_string(w.form));
      }
    }
    w.x = members_.matrix(names.x);
    w.y = members_.matrix(names.y);
    const std::string attention = text("attention");
    if (w.form == WitnessForm::softmax) {
      if (attention != no_attention || members_.has_layer()) {
        refuse(path_, "member \"claim\": expected no attention and no weights with softmax");
      }
    } else {
      w.layer = members_.layer(kind(attention));
      if (w.layer.kind == AttentionKind::l2 && (members_.has("W_K") || members_.has("b_K"))) {
        refuse(path_, "member \"{}\": expected none with l2, whose keys are its queries",
               members_.has("W_K") ? "W_K" : "b_K");
      }
    }
    try {
      require_valid(w);
    } catch (const std::invalid_argument& e) {  // here the file is at fault, not the caller
      refuse(path_, "{}", e.what());
    }
    return w;
  }

 private:
  std::string bytes(std::string_view name, std::size_t most) const {
    const Array& array = members_.required(name);
    if (array.shape.size() != 1 || array.data.size() > most) {
      refuse(path_, "member \"{}\": expected at most {} bytes, found {} elements", name, most,
             array.data.size());
    }
    std::string bytes;
    for (const double x : array.data) {
      if (!(x >= 0.0 && x <= 255.0 && x == std::floor(x))) {
        refuse(path_, "member \"{}\": expected bytes, found {}", name, x);
      }
      bytes += static_cast<char>(static_cast<unsigned char>(x));
    }
    return bytes;
  }

  void check_digest() const {
    std::uint64_t found = 0;
    const std::string stored = bytes("digest", 8);
    if (stored.size() != 8) {
      refuse(path_, "member \"digest\": expected 8 bytes, found {}", stored.size());
    }
    for (std::size_t k = 8; k-- > 0;) {
      found = found << 8U | static_cast<unsigned char>(stored[k]);
    }
    const std::uint64_t expected = digest_of(members_.arrays());
    if (found != expected) {
      refuse(path_,
             "member \"digest\": expected {:016x}, the digest of the other members, found {:016x}: "
             "the file has changed since it was written",
             expected, found);
    }
  }

  void parse_claim() {
    const std::string json = bytes("claim", longest_claim);
    claim_ = Json::parse(json, nullptr, false);
    const Json expected = claim_of({});
    if (!claim_.is_object()) {
      refuse(path_, "member \"claim\": expected a JSON object, found {:?}", json);
    }
    for (const auto& [key, value] : expected.items()) {
      if (!claim_.contains(key)) {
        refuse(path_, "member \"claim\": expected a key {:?}, found none", key);
      }
    }
    for (const auto& [key, value] : claim_.items()) {
      if (!expected.contains(key)) {
        refuse(path_, "member \"claim\": expected no key {:?}", key);
      }
    }
  }

  std::string text(const char* key) const {
    if (!claim_[key].is_string()) {
      refuse(path_, "member \"claim\": {}: expected a text, found {}", key, claim_[key].dump());
    }
    return claim_[key].get<std::string>();
  }

  double number(const char* key) const {
    if (!claim_[key].is_number()) {
      refuse(path_, "member \"claim\": {}: expected a number, found {}", key, claim_[key].dump());
    }
    const auto value = claim_[key].get<double>();
    // An integer that is no double would be rounded, and the claim another.
    if (claim_[key].is_number_integer() && std::abs(value) >= 0x1p53) {
      refuse(path_, "member \"claim\": {}: expected a double, found the integer {}", key,
             claim_[key].dump());
    }
    return value;
  }

  template <class Enum>
  Enum one_of(const char* key, std::initializer_list<Enum> values) const {
    const std::string word = text(key);
    for (const Enum value : values) {
      if (word == to_string(value)) {
        return value;
      }
    }
    refuse(path_, "member \"claim\": {}: found {:?}, which is none of them", key, word);
  }

  AttentionKind kind(const std::string& word) const {
    try {
      return parse_attention_kind(word);
    } catch (const std::invalid_argument& e) {
      refuse(path_, "member \"claim\": {}", e.what());
    }
  }

  Mask mask() const {
    const auto kind = one_of("mask", {Mask::Kind::none, Mask::Kind::causal, Mask::Kind::arbitrary});
    if (kind != Mask::Kind::arbitrary) {
      if (members_.has("mask")) {
        refuse(path_, "member \"mask\": expected none with the mask {}", to_string(kind));
      }
      return kind == Mask::Kind::none ? Mask::none() : Mask::causal();
    }
    const Matrix seen = members_.matrix("mask");
    if (seen.rows() != seen.cols() || seen.rows() < 1) {
      refuse(path_, "member \"mask\": expected a square matrix, found {} x {}", seen.rows(),
             seen.cols());
    }
    for (Index i = 0; i < seen.rows(); ++i) {
      for (Index j = 0; j < seen.cols(); ++j) {
        if (seen(i, j) != 0.0 && seen(i, j) != 1.0) {
          refuse(path_, "member \"mask\": row {}, column {}: expected 0 or 1, found {}", i, j,
                 seen(i, j));
        }
      }
    }
    return Mask::arbitrary(Mask::Visible(seen.array() != 0.0));
  }

  const std::filesystem::path& path_;
  Members members_;
  Json claim_{};
};

}  // namespace

std::string_view to_string(WitnessForm form) {
  switch (form) {
    case WitnessForm::pair:
      return "pair";
    case WitnessForm::direction:
      return "direction";
    case WitnessForm::softmax:
      return "softmax";
  }
  return "unknown";
}

void require_valid(const Witness& w) {
  const bool softmax = w.form == WitnessForm::softmax;
  const Names names = names_of(w.form);
  require(std::isfinite(w.exceeds) && w.exceeds >= 0.0,
          "Witness: exceeds must be finite and at least 0, got {}", w.exceeds);
  require(w.radius > 0.0, "Witness: radius must be positive, got {}", w.radius);
  require(w.x.rows() >= 1 && w.x.cols() >= 1, "Witness: {} must not be empty, got {} x {}", names.x,
          w.x.rows(), w.x.cols());
  require(w.y.rows() == w.x.rows() && w.y.cols() == w.x.cols(),
          "Witness: {} must be {} x {} as {}, got {} x {}", names.y, w.x.rows(), w.x.cols(),
          names.x, w.y.rows(), w.y.cols());
  require(w.x.allFinite(), "Witness: {} must be finite, got an infinity or a NaN", names.x);
  require(w.y.allFinite(), "Witness: {} must be finite, got an infinity or a NaN", names.y);
  if (softmax) {
    require(w.x.rows() == 1, "Witness: s must have one row, got {}", w.x.rows());
    require(w.layer.W_Q.size() == 0, "Witness: layer must be empty with softmax, got W_Q {} x {}",
            w.layer.W_Q.rows(), w.layer.W_Q.cols());
    require(w.mask.kind() == Mask::Kind::none, "Witness: mask must be none with softmax, got {}",
            to_string(w.mask.kind()));
    require(w.norm != Norm::max_token, "Witness: norm must be 1, 2 or inf with softmax, got {}",
            to_string(w.norm));
    return;
  }
  require_valid(w.layer);
  require(w.x.cols() == w.layer.width(), "Witness: X must have {} columns as W_Q has rows, got {}",
          w.layer.width(), w.x.cols());
  require(w.mask.tokens() == 0 || w.mask.tokens() == w.x.rows(),
          "Witness: mask must be for {} tokens as X, got {}", w.x.rows(), w.mask.tokens());
}

std::string in_words(const Witness& w) {
  std::string text;
  const std::string_view p = to_string(w.norm);
  switch (w.form) {
    case WitnessForm::pair:
      text = fmt::format("|F(X) - F(Y)|_{0} > {1} |X - Y|_{0}", p, w.exceeds);
      break;
    case WitnessForm::direction:
      text = fmt::format("|J(X) V|_{0} > {1} |V|_{0}", p, w.exceeds);
      break;
    case WitnessForm::softmax:
      text = fmt::format("|M(p) v|_{0} > {1} |v|_{0} for M(p) = diag(p) - p p^T, p = softmax(s)", p,
                         w.exceeds);
      break;
  }
  if (w.form == WitnessForm::softmax) {
    text += fmt::format(", n = {}", w.x.cols());
  } else {
    text += fmt::format(" for a layer of {} attention, n = {}, D = {}, H = {}, mask {}",
                        to_string(w.layer.kind), w.x.rows(), w.x.cols(), w.layer.heads,
                        to_string(w.mask.kind()));
  }
  if (std::isfinite(w.radius)) {
    text += fmt::format(", where every token has |x_i|_2 <= {}", w.radius);
  }
  if (!w.bound.empty()) {
    text += fmt::format(", against the bound {}", w.bound);
  }
  return text;
}

void write_witness(const std::filesystem::path& npz, const Witness& w, const WitnessNotes& notes) {
  require(npz.extension() == ".npz",
          "write_witness: npz must be a path that ends in .npz, got '{}'", npz.string());
  require_valid(w);
  const bool softmax = w.form == WitnessForm::softmax;
  const Json claim = claim_of(w);
  std::string claim_bytes;
  try {
    claim_bytes = claim.dump();
  } catch (const Json::exception&) {
    require(false, "write_witness: bound must be UTF-8, got {:?}", w.bound);
  }
  require(claim_bytes.size() <= longest_claim, "write_witness: bound must be a name, got {} bytes",
          w.bound.size());

  Npz members = softmax ? Npz() : layer_members(w.layer);
  const Names names = names_of(w.form);
  members[std::string(names.x)] = to_array(w.x);
  members[std::string(names.y)] = to_array(w.y);
  if (w.mask.kind() == Mask::Kind::arbitrary) {
    members["mask"] = mask_array(w.mask);
  }
  members["claim"] = bytes_array(claim_bytes);
  members["digest"] = digest_array(digest_of(members));

  const std::filesystem::path path_json = std::filesystem::path(npz).replace_extension(".json");
  Json people;
  people["claim"] = in_words(w);
  people["form"] = to_string(w.form);
  people["norm"] = to_string(w.norm);
  people["exceeds"] = w.exceeds;
  people["ratio_lower_bound"] = notes.ratio_lower_bound;  // NaN becomes null
  people["bound"] = w.bound;
  people["found_by"] = notes.found_by;
  people["seed"] = notes.seed;
  people["n"] = softmax ? w.x.cols() : w.x.rows();
  if (!softmax) {
    people["attention"] = to_string(w.layer.kind);
    people["D"] = w.x.cols();
    people["H"] = w.layer.heads;
    people["mask"] = to_string(w.mask.kind());
  }
  people["radius"] = claim["radius"];
  people["version"] = version();
  people["verify"] = fmt::format("lipsa verify {}", npz.filename().string());
  const std::string text = people.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";

  write_file_atomically(path_json, text);  // the .npz last: where it is, both are
  write_npz(npz, members);
}

Witness read_witness(const std::filesystem::path& npz) {
  return Reader(npz).read();
}

}  // namespace lipsa
