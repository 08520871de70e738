#include "lipsa/model/witness.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "files.hpp"
#include "lipsa/core/npz.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

Witness random_witness(Rng& rng, WitnessForm form, AttentionKind kind) {
  Witness w{.form = form, .norm = Norm::inf, .exceeds = 0.1, .bound = "kim2021_inf", .radius = 1e3};
  if (form == WitnessForm::softmax) {
    w.x = normal_matrix(rng, 1, 5);
    w.y = normal_matrix(rng, 1, 5);
    return w;
  }
  w.layer = test::random_layer(rng, kind, {3, 4, 2, 3, 1, 5});
  w.x = normal_matrix(rng, 3, 4);
  w.y = normal_matrix(rng, 3, 4);
  return w;
}

void check_same(const Witness& a, const Witness& b) {
  CHECK(a.form == b.form);
  CHECK(a.layer.kind == b.layer.kind);
  CHECK(a.layer.heads == b.layer.heads);
  CHECK(a.layer.scale == b.layer.scale);
  CHECK(a.layer.epsilon == b.layer.epsilon);
  CHECK(a.layer.score_bias == b.layer.score_bias);
  CHECK(a.layer.W_Q == b.layer.W_Q);
  CHECK(a.layer.W_K == b.layer.W_K);
  CHECK(a.layer.W_V == b.layer.W_V);
  CHECK(a.layer.W_O == b.layer.W_O);
  CHECK(a.layer.b_Q == b.layer.b_Q);
  CHECK(a.layer.b_K == b.layer.b_K);
  CHECK(a.layer.b_V == b.layer.b_V);
  CHECK(a.layer.b_O == b.layer.b_O);
  CHECK(a.mask.kind() == b.mask.kind());
  REQUIRE(a.mask.tokens() == b.mask.tokens());
  for (Index i = 0; i < a.x.rows(); ++i) {
    for (Index j = 0; j < a.x.rows(); ++j) {
      CHECK(a.mask.visible(i, j) == b.mask.visible(i, j));
    }
  }
  CHECK(a.norm == b.norm);
  CHECK(a.exceeds == b.exceeds);
  CHECK(a.bound == b.bound);
  CHECK(a.radius == b.radius);
  CHECK(a.x == b.x);
  CHECK(a.y == b.y);
}

TEST_CASE("write_witness: what it writes is read back bit for bit", "[model]") {
  Rng rng(81);
  const TemporaryFolder folder;
  const auto form = GENERATE(WitnessForm::pair, WitnessForm::direction, WitnessForm::softmax);
  const auto kind = GENERATE(from_range(test::kinds));
  Witness w = random_witness(rng, form, kind);
  SECTION("everything given") {
    if (form != WitnessForm::softmax) {
      w.layer.scale = 0.3;
      w.mask = test::random_mask(rng, 3);
    }
    w.exceeds = 0x1.fffffffffffffp-3;
    w.x(0, 0) = std::numeric_limits<double>::denorm_min();
    w.y(0, 0) = -std::numeric_limits<double>::max();
  }
  SECTION("as little as possible") {
    w.bound = "";
    w.radius = std::numeric_limits<double>::infinity();
    w.exceeds = 0.0;
    w.layer.W_O = {};
    w.layer.b_O = {};
    w.layer.score_bias = 0.0;
    if (form != WitnessForm::softmax) {
      w.mask = Mask::causal();
    }
  }
  write_witness(folder / "w.npz", w, {});
  check_same(read_witness(folder / "w.npz"), w);
  CHECK(folder.count() == 2);
}

TEST_CASE("write_witness: says in words what it claims", "[model]") {
  Rng rng(82);
  const TemporaryFolder folder;
  const Witness w = random_witness(rng, WitnessForm::pair, AttentionKind::l2);
  write_witness(folder / "w.npz", w,
                {.ratio_lower_bound = 0.125, .seed = UINT64_MAX, .found_by = "a search"});
  const std::string text = get_bytes(folder / "w.json");
  CHECK_THAT(text, Contains("\"claim\": \"|F(X) - F(Y)|_inf > 0.1 |X - Y|_inf for a layer of l2 "
                            "attention, n = 3, D = 4, H = 2, mask none, where every token has "
                            "|x_i|_2 <= 1000, against the bound kim2021_inf\"") &&
                       Contains("\"ratio_lower_bound\": 0.125") &&
                       Contains("\"seed\": 18446744073709551615") &&
                       Contains("\"verify\": \"lipsa verify w.npz\""));
  write_witness(folder / "w.npz", w, {});
  CHECK_THAT(get_bytes(folder / "w.json"), Contains("\"ratio_lower_bound\": null"));
}

TEST_CASE("write_witness: refuses an invalid witness before it touches the disk", "[model]") {
  Rng rng(83);
  const TemporaryFolder folder;
  Witness w = random_witness(rng, WitnessForm::pair, AttentionKind::dot);
  std::string path = "w.npz";
  const auto [what, message] = GENERATE(table<std::string, std::string>({
      {"name", "write_witness: npz must be a path that ends in .npz"},
      {"exceeds", "Witness: exceeds must be finite and at least 0, got -1"},
      {"nan", "Witness: exceeds must be finite and at least 0, got nan"},
      {"radius", "Witness: radius must be positive, got 0"},
      {"y", "Witness: Y must be 3 x 4 as X, got 2 x 4"},
      {"x", "Witness: X must be finite"},
      {"width", "Witness: X must have 4 columns as W_Q has rows, got 3"},
      {"mask", "Witness: mask must be for 3 tokens as X, got 2"},
      {"layer", "MultiHead: heads must divide"},
      {"softmax", "Witness: layer must be empty with softmax"},
      {"bound", "write_witness: bound must be UTF-8"},
      {"long", "write_witness: bound must be a name"},
  }));
  if (what == "name") {
    path = "w.zip";
  } else if (what == "exceeds") {
    w.exceeds = -1.0;
  } else if (what == "nan") {
    w.exceeds = std::numeric_limits<double>::quiet_NaN();
  } else if (what == "radius") {
    w.radius = 0.0;
  } else if (what == "y") {
    w.y = normal_matrix(rng, 2, 4);
  } else if (what == "x") {
    w.x(1, 1) = std::numeric_limits<double>::infinity();
  } else if (what == "width") {
    w.x = w.y = normal_matrix(rng, 3, 3);
  } else if (what == "mask") {
    w.mask = test::random_mask(rng, 2);
  } else if (what == "layer") {
    w.layer.heads = 4;
  } else if (what == "softmax") {
    w.form = WitnessForm::softmax;
    w.x = w.y = normal_matrix(rng, 1, 4);
  } else if (what == "bound") {
    w.bound = std::string(1, '\xff');
  } else {
    w.bound = std::string(10001, 'x');
  }
  CHECK_THROWS_WITH(write_witness(folder / path, w, {}), Contains(message));
  CHECK_THROWS_AS(write_witness(folder / path, w, {}), std::invalid_argument);
  CHECK(folder.count() == 0);
}

class WitnessFileTest {
 protected:
  WitnessFileTest() {
    Rng rng(84);
    written = random_witness(rng, WitnessForm::pair, AttentionKind::dot);
    written.mask = test::random_mask(rng, 3);
    write_witness(path, written, {});
    members = read_npz(path);
  }

  Witness again() {
    write_npz(path, members);
    return read_witness(path);
  }

  /// The same with the digest made to fit, as whoever tampers on purpose would.
  Witness again_with_digest() {
    std::uint64_t hash = 0xcbf29ce484222325U;
    const auto byte = [&](std::uint64_t b) { hash = (hash ^ b) * 0x100000001b3U; };
    const auto word = [&](std::uint64_t w) {
      for (unsigned shift = 0; shift < 64; shift += 8) {
        byte(w >> shift & 255U);
      }
    };
    for (const auto& [name, array] : members) {
      if (name == "digest") {
        continue;
      }
      for (const char c : name) {
        byte(static_cast<unsigned char>(c));
      }
      byte(0);
      word(array.shape.size());
      for (const Index extent : array.shape) {
        word(static_cast<std::uint64_t>(extent));
      }
      for (const double x : array.data) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &x, 8);
        word(bits);
      }
    }
    members["digest"] = {.shape = {8}};
    for (unsigned shift = 0; shift < 64; shift += 8) {
      members["digest"].data.push_back(static_cast<double>(hash >> shift & 255U));
    }
    return again();
  }

  std::string claim() const {
    std::string text;
    for (const double x : members.at("claim").data) {
      text += static_cast<char>(x);
    }
    return text;
  }
  void claim(const std::string& text) {
    members["claim"] = {.shape = {static_cast<Index>(text.size())}};
    for (const char c : text) {
      members["claim"].data.push_back(static_cast<unsigned char>(c));
    }
  }
  void replace(const std::string& what, const std::string& by) {
    const std::string text = claim();
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    claim(std::string(text, 0, at).append(by).append(text, at + what.size()));
  }

  TemporaryFolder folder;
  std::filesystem::path path = folder / "w.npz";
  Witness written{};
  Npz members{};
};

TEST_CASE_METHOD(WitnessFileTest, "read_witness: any element changed is refused by the digest",
                 "[model]") {
  CHECK(claim() == R"({"form":"pair","attention":"dot","norm":"inf","exceeds":0.1,)"
                   R"("mask":"arbitrary","bound":"kim2021_inf","radius":1000.0})");
  check_same(again(), written);  // written by another program, all as float64
  check_same(again_with_digest(), written);
  const Npz good = members;
  for (const auto& [name, array] : good) {
    for (const std::size_t at : {std::size_t{0}, array.data.size() / 2, array.data.size() - 1}) {
      CAPTURE(name, at);
      members = good;
      double& x = members[name].data[at];
      const bool byte = name == "claim" || name == "mask" || name == "digest";
      x = byte ? static_cast<double>(static_cast<unsigned>(x) ^ 1U)
               : std::nextafter(x, std::numeric_limits<double>::infinity());
      CHECK_THROWS_WITH(again(), Contains("w.npz: member \"digest\": expected ") &&
                                     Contains("the file has changed since it was written"));
    }
  }
  members = good;
  members["X"].shape = {4, 3};
  CHECK_THROWS_WITH(again(), Contains("member \"digest\""));
  members = good;
  members.erase("b_O");
  CHECK_THROWS_WITH(again(), Contains("member \"digest\""));
}

TEST_CASE_METHOD(WitnessFileTest, "read_witness: names what is wrong, with the file", "[model]") {
  SECTION("claim") {
    const auto [what, by, message] = GENERATE(table<std::string, std::string, std::string>({
        {"\"pair\"", "\"pear\"", "form: found \"pear\", which is none of them"},
        {"\"pair\"", "\"direction\"", "member \"Y\": expected none in a witness of form direction"},
        {"\"pair\"", "\"softmax\"", "member \"X\": expected none in a witness of form softmax"},
        {"\"dot\"", "\"cos\"", "member \"claim\": attention must be"},
        {"\"dot\"", "\"l2\"", "member \"W_K\": expected none with l2"},
        {"\"dot\"", "3", "attention: expected a text, found 3"},
        {"\"inf\"", "\"max-tokens\"", "norm: found \"max-tokens\""},
        {"0.1", "\"0.1\"", "exceeds: expected a number, found \"0.1\""},
        {"0.1", "-0.1", "Witness: exceeds must be finite and at least 0, got -0.1"},
        {"0.1", "9007199254740993",
         "exceeds: expected a double, found the integer 9007199254740993"},
        {"0.1", "1e400", "expected a JSON object"},
        {"0.1", "NaN", "expected a JSON object"},
        {"\"arbitrary\"", "\"causal\"", "member \"mask\": expected none with the mask causal"},
        {"1000.0", "null", "radius: expected a number, found null"},
        {"1000.0", "0", "Witness: radius must be positive, got 0"},
        {",\"radius\":1000.0", "", "expected a key \"radius\", found none"},
        {"\"radius\"", "\"x\":1,\"radius\"", "expected no key \"x\""},
        {"{", "[", "member \"claim\": expected a JSON object"},
    }));
    CAPTURE(what, by);
    replace(what, by);
    CHECK_THROWS_WITH(again_with_digest(), Contains("w.npz: ") && Contains(message));
    CHECK_THROWS_AS(again_with_digest(), std::runtime_error);
  }
  SECTION("members") {
    const auto [what, message] = GENERATE(table<std::string, std::string>({
        {"X", "expected a member X, found none"},
        {"Y", "expected a member Y, found none"},
        {"mask", "expected a member mask, found none"},
        {"claim", "expected a member claim, found none"},
        {"heads", "expected a member heads, found none"},
        {"W_V", "expected a member W_V, found none"},
    }));
    members.erase(what);
    CHECK_THROWS_WITH(again_with_digest(), Contains("w.npz: ") && Contains(message));
  }
  SECTION("no digest") {
    members.erase("digest");
    CHECK_THROWS_WITH(again(), Contains("w.npz: expected a member digest, found none"));
  }
  SECTION("unknown member") {
    members["Z"] = members["X"];
    CHECK_THROWS_WITH(again_with_digest(), Contains("w.npz: member \"Z\": expected one of W_Q"));
  }
  SECTION("NaN (case B13)") {
    members["Y"].data[5] = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH(again_with_digest(),
                      Contains("\"Y.npy\"") && Contains("row 1, column 1") && Contains("nan"));
  }
  SECTION("a mask that is no mask") {
    members["mask"].data[4] = 2.0;
    CHECK_THROWS_WITH(again_with_digest(),
                      Contains("member \"mask\": row 1, column 1: expected 0 or 1, found 2"));
  }
  SECTION("shapes") {
    members["Y"].shape = {4, 3};
    CHECK_THROWS_WITH(again_with_digest(), Contains("w.npz: Witness: Y must be 3 x 4 as X"));
  }
  SECTION("a claim that is no text") {
    members["claim"].data[3] = 0.5;
    CHECK_THROWS_WITH(again_with_digest(), Contains("member \"claim\": expected bytes, found 0.5"));
  }
  SECTION("a layer file") {
    for (const char* name : {"claim", "digest", "mask", "Y"}) {
      members.erase(name);
    }
    CHECK_THROWS_WITH(again(), Contains("expected a member digest, found none"));
  }
}

TEST_CASE_METHOD(WitnessFileTest, "read_witness: a damaged file is refused or says the same",
                 "[model]") {
  const std::string good = get_bytes(path);
  Rng rng(85);
  int accepted = 0;
  constexpr int trials = 3000;
  for (int trial = 0; trial < trials; ++trial) {
    std::string bytes = good;
    const auto at = static_cast<std::size_t>(rng.next() % bytes.size());
    if (trial % 4 == 0) {
      bytes.resize(at);
    } else {
      for (int flips = trial % 4; flips > 0; --flips) {
        bytes[static_cast<std::size_t>(rng.next() % bytes.size())] ^=
            static_cast<char>(1U << (rng.next() % 8));
      }
    }
    std::filesystem::remove(path);
    put_bytes(path, bytes);
    try {
      const Witness w = read_witness(path);
      ++accepted;
      check_same(w, written);  // a date or a flag of the archive
    } catch (const std::runtime_error&) {
    }
  }
  CAPTURE(accepted);
  CHECK(accepted < trials / 5);
}

TEST_CASE_METHOD(WitnessFileTest, "read_witness: whatever the claim says, it is read or refused",
                 "[model]") {
  const std::string good = claim();
  constexpr std::string_view letters = "0123456789{}[]\",:.-+eEnaif \\u\xff\x00";
  int refused = 0;
  constexpr int trials = 300;
  for (int trial = 0; trial < trials; ++trial) {
    Rng rng(86, 0, static_cast<std::uint64_t>(trial));
    const auto below = [&](std::size_t count) {
      return static_cast<std::size_t>(rng.next() % count);
    };
    std::string text = good;
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      if (below(3) == 0) {
        text.erase(at, 1 + below(20));
      } else {
        text[at] = letters[below(letters.size())];
      }
      text += text.empty() ? "{" : "";
    }
    claim(text);
    try {
      require_valid(again_with_digest());
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  CHECK(refused > trials / 2);
  claim(std::string(9999, '['));
  CHECK_THROWS_AS(again_with_digest(), std::runtime_error);
  claim(std::string(10001, ' '));
  CHECK_THROWS_WITH(again_with_digest(),
                    Contains("member \"claim\": expected at most 10000 bytes"));
}

}  // namespace
}  // namespace lipsa
