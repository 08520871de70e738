/// \file
/// The program as a user meets it: exit codes, messages, files.
#include <catch2/catch.hpp>
#include <cctype>
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "cli.hpp"
#include "files.hpp"
#include "grammar_text.hpp"
#include "lipsa/core/npy.hpp"
#include "lipsa/core/npz.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/invert/contractive.hpp"
#include "lipsa/model/layer_file.hpp"
#include "lipsa/model/witness.hpp"

namespace lipsa {
namespace {

using Catch::Contains;

/// Shows that the 2-norm formula of Kim et al. is false as printed: |J(0)|_2 = 25.
Witness against_printed_2(double exceeds) {
  const Matrix one = Matrix::Ones(1, 1);
  return {.form = WitnessForm::direction,
          .layer = {.kind = AttentionKind::l2, .W_Q = 5.0 * one, .W_V = one, .W_O = one},
          .norm = Norm::two,
          .exceeds = exceeds,
          .bound = "kim2021_2_printed",
          .x = Matrix::Zero(2, 1),
          .y = Matrix::Ones(2, 1)};
}

const std::string quick = "bound-sweep --tokens 3,5 --restarts 2 ";

TEST_CASE_METHOD(CliTest, "lipsa: help and version", "[cli]") {
  const Outcome help = lipsa("--help");
  CHECK(help.code == 0);
  CHECK_THAT(help.out, Contains("bound-sweep") && Contains("bounds ") &&
                           Contains("counterexample") && Contains("falsify") &&
                           Contains("invert ") && Contains("lm ") && Contains("paper-tables") &&
                           Contains("verify") && Contains("Exit codes"));
  CHECK(help.err.empty());
  CHECK_THAT(lipsa("--version").out, Catch::StartsWith("lipsa 0."));
  const Outcome sweep = lipsa("bound-sweep --help");
  CHECK(sweep.code == 0);
  CHECK_THAT(sweep.out, Contains("--attention arg (=l2)") && Contains("Examples") &&
                            Contains("kim2021-fig2") && Contains("--restarts arg (=50)"));
  CHECK(lipsa("").code == 2);
}

TEST_CASE_METHOD(CliTest, "lipsa: a wrong command line exits with 2 and says what to do", "[cli]") {
  const auto [arguments, message] = GENERATE(table<std::string, std::string>(
      {{"bound-swep", "there is no command 'bound-swep'"},
       {"bound-sweep --tokns 3", "tokns"},
       {"bound-sweep --token 3", "token"},  // no guessing (case G2)
       {"bound-sweep --tokens 3,x", "--tokens must be a number, got 'x'"},
       {"bound-sweep --tokens 2.5", "--tokens must be whole numbers"},
       {"bound-sweep --tokens -3",
        "tokens must be at least 1, got -3"},  // read as a number (case G1)
       {"bound-sweep --tokens 3 --radius -1:3:1", "radius must be positive, got -1"},
       {"bound-sweep --tokens 8:2:2x", "a rising range"},
       {"bound-sweep --tokens 3 --norm 3", "3"},
       {"bound-sweep --tokens 3 --attention softmax",
        "attention must be dot, l2, l2-untied, cosine or sigmoid, got 'softmax'"},
       {"bound-sweep --tokens 3 --mask diagonal", "--mask must be none or causal, got 'diagonal'"},
       {"bound-sweep --tokens 3 --seed -1", "--seed must be a whole number"},
       {"bound-sweep --tokens 3 --threads -2", "--threads must be from 0 (all) to 1024, got -2"},
       {"bound-sweep --tokens 3 --format html",
        "format must be text, csv, json, markdown or latex"},
       {"bound-sweep --tokens 3 --dim 4 --heads 3", "heads must divide dim = 4, got 3"},
       {"bound-sweep --preset figure-2",
        "--preset must be one of dot-growth, kim2021-fig2, kim2021-lip2"},
       {"bound-sweep --attention dot",
        "give --tokens, or tokens in a file by --input, or a --preset"},
       {"bound-sweep --tokens 3 --input X.npy", "--tokens must not be given with --input"},
       {"bound-sweep --steps 5 --input X.npy", "--steps must not be given with --input"},
       {"bound-sweep --tokens 3 --dim 4 --weights w.npz",
        "--dim must not be given with --weights w.npz"},
       {"bound-sweep --tokens 1000000000 --dim 100", "GB of memory, this machine has"},
       {"bound-sweep extra", "positional"},
       {"verify", "give the file of a witness"},
       {"verify a.npz b.npz", "too many positional options"},
       {"verify a.npz --bits-max 32", "--bits-max must be from 64 to 1000000, got 32"},
       {"verify a.npz --format csv", "--format must be text or json, got 'csv'"}}));
  CAPTURE(arguments);
  const Outcome outcome = lipsa(arguments);
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains(message));
  CHECK_THAT(outcome.err, Contains("Try 'lipsa"));
  CHECK(outcome.out.empty());
  CHECK(folder.count() == 2);  // out.txt and err.txt: nothing was begun
}

TEST_CASE_METHOD(CliTest, "lipsa: a bad file exits with 3 and is named", "[cli]") {
  put_bytes(folder / "w.npz", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  put_bytes(folder / "text.npz", "hello");
  write_npy(folder / "X.npy", to_array(Matrix(Matrix::Ones(3, 2))));
  write_npz(folder / "part.npz", {{"W_Q", to_array(Matrix(Matrix::Ones(2, 2)))}});
  Witness named = against_printed_2(20.17);
  named.bound = "kim2022";
  write_witness(folder / "named.npz", named, {});
  const auto [arguments, message] = GENERATE(table<std::string, std::string>(
      {{"bound-sweep --tokens 3 --weights missing.npz", "missing.npz"},
       {"bound-sweep --tokens 3 --weights w.npz", "this is a Git LFS pointer, fetch the real file"},
       {"bound-sweep --tokens 3 --weights text.npz", "text.npz"},
       {"bound-sweep --tokens 3 --weights part.npz",
        "part.npz: expected a member heads, found none"},
       {"bound-sweep --dim 3 --input X.npy",
        "X.npy: expected tokens of 3 features as the layer has, found 2"},
       {"bound-sweep --input missing.npy", "missing.npy"},
       {"verify missing.npz", "missing.npz"},
       {"verify part.npz", "part.npz: expected a member digest, found none"},
       {"verify named.npz", "named.npz: member \"claim\": bound: find_entry: "}}));
  CAPTURE(arguments);
  const Outcome outcome = lipsa(arguments);
  CHECK(outcome.code == 3);
  CHECK_THAT(outcome.err, Contains(message));
  CHECK(outcome.out.empty());
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: files agree with stdout, data only on stdout",
                 "[cli]") {
  const Outcome csv = lipsa(quick + "--out r --format csv");
  CHECK(csv.code == 0);
  CHECK(csv.out == get_bytes(folder / "r/sweep.csv"));
  CHECK_THAT(csv.out, Catch::StartsWith(
                          "attention,weights,mask,n,D,H,d,radius,norm,seed,restarts,lower_bound,"));
  CHECK_THAT(csv.out, Contains(",tightness_upper_bound,status\n"));
  CHECK_THAT(csv.err, Contains("r: sweep.csv, sweep.json"));
  const Outcome json = lipsa(quick + "--out r --format json --quiet");
  CHECK(json.out == get_bytes(folder / "r/sweep.json"));
  CHECK(json.err.empty());
  CHECK_THAT(get_bytes(folder / "r/sweep.meta.json"),
             Contains("\"seconds\"") && Contains("--format json"));
  CHECK_FALSE(std::filesystem::exists(folder / "r/sweep.journal"));
  CHECK_THAT(get_bytes(folder / "r/sweep.gp"), Contains("set logscale xy"));
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: the same bytes for 1 and 2 threads", "[cli]") {
  const std::string grid = quick +
                           "--attention l2,dot,l2-untied,cosine,sigmoid --norm inf,2,1 --dim 4 "
                           "--heads 2 --weights glorot "
                           "--radius 2 --mask none,causal --format csv --quiet ";
  const Outcome one = lipsa(grid + "--threads 1 --out one");
  const Outcome two = lipsa(grid + "--threads 2 --out two");
  CHECK((one.code == 0 || one.code == 4));
  CHECK(one.out == two.out);
  CHECK(one.out.size() > 1000);
}

TEST_CASE_METHOD(CliTest, "README: the numbers of its example are those of the program", "[cli]") {
  const std::string readme = get_bytes(LIPSA_README);
  const std::string printed =
      lipsa("bound-sweep --preset kim2021-fig2 --tokens 100,300,1000 --quiet").out +
      lipsa("bound-sweep --preset dot-growth --quiet").out;
  std::istringstream lines(
      readme.substr(readme.find("kim2021-fig2\n"), readme.find("Tables, settings and pictures")));
  std::string line;
  int rows = 0;
  while (std::getline(lines, line) && line != "```") {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word.empty() || std::isdigit(word.front()) == 0) {
      continue;
    }
    ++rows;
    std::string pattern = "(^|\n) *" + word;  // the words of the row, in order, in one row printed
    while (words >> word) {
      pattern += "[^\n]* " + word + "(?=[ \n])";
    }
    CAPTURE(line);
    CHECK(std::regex_search(printed, std::regex(pattern)));
  }
  CHECK(rows == 5);
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: what is typed wins over the preset", "[cli]") {
  const Outcome outcome =
      lipsa("bound-sweep --preset kim2021-fig2 --tokens 3 --restarts 1 --format csv --quiet");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("\nl2,identity,none,3,1,1,1,inf,inf,0,1,"));
  CHECK(std::filesystem::exists(folder / "bound-sweep/kim2021-fig2/sweep.csv"));
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: an ascent cut short exits with 4 and keeps its row",
                 "[cli]") {
  const Outcome outcome =
      lipsa("bound-sweep --tokens 50 --restarts 1 --steps 2 --format csv --quiet");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.out, Contains(",step limit\n"));
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: an output that cannot be written exits with 5",
                 "[cli]") {
  put_bytes(folder / "file", "in the way");
  const Outcome outcome = lipsa(quick + "--out file");
  CHECK(outcome.code == 5);
  CHECK(outcome.out.empty());
  CHECK(get_bytes(folder / "file") == "in the way");
}

TEST_CASE_METHOD(CliTest, "lipsa: standard output that cannot be written exits with 5", "[cli]") {
  CHECK(std::system("'" LIPSA_PROGRAM "' --help >/dev/full 2>/dev/null") / 256 == 5);
  CHECK(std::system("'" LIPSA_PROGRAM "' --version >/dev/full 2>/dev/null") / 256 == 5);
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: an overflow is a row, not the end", "[cli]") {
  const Outcome outcome = lipsa(
      "bound-sweep --attention dot --tokens 3 --radius 1,1e200 --restarts 2 --format csv --quiet");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.out, Contains(",converged\n") && Contains(",non-finite\n"));
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: a full disk exits with 5, keeps old results whole",
                 "[cli]") {
  CHECK(lipsa(quick + "--out r").code == 0);
  const std::string before = get_bytes(folder / "r/sweep.csv");
  // One block of 512 bytes a file is all there is, and a write beyond it fails.
  const Outcome outcome =
      lipsa("bound-sweep --tokens 3,5,7 --restarts 2 --out r", "trap '' XFSZ; ulimit -f 1;");
  CHECK(outcome.code == 5);
  CHECK(get_bytes(folder / "r/sweep.csv") == before);
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: kill -9, then --resume, gives the same bytes",
                 "[cli]") {
  const std::string grid = "bound-sweep --tokens 20:120:5 --restarts 8 --format csv --quiet ";
  const Outcome whole = lipsa(grid + "--out whole");
  // Killed as soon as the journal holds a row.
  lipsa(grid +
        "--out r & victim=$!; for i in $(seq 500); do [ \"$(wc -l 2>/dev/null < r/sweep.journal)\" "
        "-ge 2 ] "
        "2>/dev/null && break; sleep 0.01; done; kill -9 $victim; wait $victim; true");
  REQUIRE(std::filesystem::exists(folder / "r/sweep.journal"));
  CHECK_THAT(lipsa(grid + "--out r").err, Contains("continue it with --resume"));
  CHECK_THAT(lipsa(grid + "--seed 1 --out r --resume").err, Contains("of other settings"));
  const Outcome resumed = lipsa(grid + "--out r --resume");
  CHECK(resumed.code == whole.code);
  CHECK(resumed.out == whole.out);
  CHECK(get_bytes(folder / "r/sweep.json") == get_bytes(folder / "whole/sweep.json"));
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: without gnuplot leaves the script and a note",
                 "[cli]") {
  const Outcome outcome = lipsa(quick + "--out r", "PATH=/nowhere;");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Contains("The script is r/sweep.gp"));
  CHECK(std::filesystem::exists(folder / "r/sweep.gp"));
  CHECK_FALSE(std::filesystem::exists(folder / "r/sweep.png"));
}

TEST_CASE_METHOD(CliTest, "lipsa bound-sweep: the norm at tokens of a file", "[cli]") {
  write_npy(folder / "X.npy", to_array(Matrix((Matrix(3, 1) << 0.0, 1.5, -1.5).finished())));
  const Outcome outcome =
      lipsa("bound-sweep --input X.npy --attention l2,dot --norm inf,1,2 --format csv --quiet");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains(",local_norm,local_norm_kind,residual,lower_bound,") &&
                              Contains(",estimate,") && Contains(",converged\n"));
}

TEST_CASE_METHOD(CliTest,
                 "lipsa verify: proved, refuted and undecided have exit codes of their own",
                 "[cli]") {
  const auto path = folder / "w.npz";
  write_witness(path, against_printed_2(20.17), {});
  const Outcome proved = lipsa("verify w.npz");
  CHECK(proved.code == 0);
  CHECK(proved.out ==
        "PROVED: |J(X) V|_2 > 20.17 |V|_2 for a layer of l2 attention, n = 2, D = 1, H = 1, mask "
        "none, against the bound kim2021_2_printed\n"
        "ratio: certified lower bound 25, certified upper bound 25\nprecision: 64 bits\n");
  CHECK(proved.err.empty());
  const Outcome json = lipsa("verify --witness w.npz --format json");
  CHECK(json.code == 0);
  CHECK_THAT(json.out, Contains("\"outcome\": \"proved\"") &&
                           Contains("\"ratio_certified_lower_bound\": \"25\""));

  write_witness(path, against_printed_2(20.0), {});
  const Outcome below = lipsa("verify w.npz");
  CHECK(below.code == 1);
  CHECK_THAT(below.out, Catch::StartsWith("REFUTED: |J(X) V|_2 > 20 |V|_2") &&
                            Contains("reason: K = 20 lies below the bound kim2021_2_printed"));
  write_witness(path, against_printed_2(25.0), {});
  const Outcome equal = lipsa("verify w.npz");
  CHECK(equal.code == 1);
  CHECK_THAT(equal.out, Contains("reason: the ratio is at most 25\n"));

  Witness close = against_printed_2(1.0);
  close.form = WitnessForm::pair;
  close.bound = "";
  close.y = close.x;
  close.y(0, 0) = 0x1p-200;
  close.x(1, 0) = 0.25;
  close.y(1, 0) = 0.25;
  write_witness(path, close, {});
  const Outcome undecided = lipsa("verify w.npz --bits-max 64");
  CHECK(undecided.code == 4);
  CHECK_THAT(undecided.out,
             Catch::StartsWith("UNDECIDED: |F(X) - F(Y)|_2 > 1 |X - Y|_2") && Contains("64 bits"));
  CHECK(lipsa("verify w.npz").code == 0);
}

/// A layer file with tokens in it.
void put_layer(const std::filesystem::path& path) {
  Rng rng(31);
  write_npz(path, {{"W_Q", to_array(normal_matrix(rng, 4, 4))},
                   {"W_K", to_array(normal_matrix(rng, 4, 4))},
                   {"W_V", to_array(normal_matrix(rng, 4, 4))},
                   {"W_O", to_array(normal_matrix(rng, 4, 4))},
                   {"heads", to_array(2.0)},
                   {"X", to_array(normal_matrix(rng, 5, 4))}});
}

TEST_CASE_METHOD(CliTest, "lipsa bounds: at tokens, no bound that holds is below the norm",
                 "[cli]") {
  put_layer(folder / "layer.npz");
  const std::string attention = GENERATE("dot", "l2", "l2-untied", "cosine", "sigmoid");
  const std::string p = GENERATE("2", "inf", "1", "max-token");
  CAPTURE(attention, p);
  const std::string question =
      "bounds --weights layer.npz --at layer.npz --format csv --attention " + attention +
      " --norm " + p;
  const Outcome outcome = lipsa(question + " --threads 1");
  CHECK(outcome.code == 0);
  CHECK(lipsa(question + " --threads 2").out == outcome.out);
  std::istringstream lines(outcome.out);
  std::string line;
  std::getline(lines, line);
  CHECK_THAT(line,
             Catch::StartsWith("attention,mask,norm,n,radius,around,local_norm,residual,"
                               "lower_bound,lower_bound_source,measurement,bound,upper_bound"));
  const std::regex numbers(
      "^[^,]*,[^,]*,[^,]*,5,[^,]*,0,[^,]*,[^,]*,([^,]*),x,converged,[^,]*,([^,]+),");
  while (std::getline(lines, line)) {
    std::smatch match;
    if (std::regex_search(line, match, numbers)) {
      CHECK(std::stod(match[1]) <= std::stod(match[2]));
    }
  }
}

TEST_CASE_METHOD(
    CliTest, "proofs/README.md: has a row for every bound with what --explain says, and no other",
    "[cli]") {
  const std::string page = get_bytes(LIPSA_PROOFS);
  const auto cell = [](const std::string& text) {
    const std::string escaped = std::regex_replace(text, std::regex("\\|"), "\\|");
    return std::regex_replace(escaped, std::regex("\\b[A-Z][A-Za-z]*\\.[A-Za-z]\\w*"), "`$&`");
  };
  std::istringstream blocks(lipsa("bounds --explain all").out + "\n");
  std::size_t entries = 0;
  std::string name;
  std::map<std::string, std::string> says;
  for (std::string line; std::getline(blocks, line);) {
    if (line.empty()) {
      std::string rests = says["rests on"];
      if (says.contains("refuted")) {
        rests = "nothing: " + says["refuted"] +
                (says.contains("refuted by") ? "; " + says["refuted by"] : "");
      }
      CAPTURE(name, rests);
      CHECK_FALSE(rests.empty());
      CHECK(page.find("| `" + name + "` | " + cell(says["L"]) + " | " + cell(says["source"]) +
                      " | " + cell(rests) + " | ") != std::string::npos);
      ++entries;
      says.clear();
    } else if (line.front() != ' ') {
      name = line;
    } else {
      const std::string mark = line.starts_with("  L = ") ? " = " : ": ";
      const std::size_t at = line.find(mark);
      says[line.substr(2, at - 2)] = line.substr(at + mark.size());
    }
  }
  CHECK(entries > 40);
  std::size_t rows = 0;
  for (std::size_t at = page.find("\n| `"); page.find("## Other claims") > at;
       at = page.find("\n| `", at + 1)) {
    ++rows;
  }
  CHECK(rows == entries);
}

TEST_CASE_METHOD(CliTest, "lipsa bounds: explains every bound, and shows a block by component",
                 "[cli]") {
  const Outcome all = lipsa("bounds --explain all");
  CHECK(all.code == 0);
  CHECK_THAT(all.out, Contains("sharp_l2_inf\n") && Contains("L = ") && Contains("refuted: "));
  CHECK_THAT(lipsa("bounds --explain castin2024_ball").out,
             Contains("Theorem 3.3") && Contains("domain: |x_i|_2 <= R"));
  const Outcome block =
      lipsa("bounds --attention dot --dim 4 --weights glorot --tokens 6 --block pre-norm");
  CHECK(block.code == 0);
  CHECK_THAT(block.out, Contains("LayerNorm") && Contains("attention, |x_i|_2 <= ") &&
                            Contains("residual") && Contains("block"));
}

TEST_CASE_METHOD(CliTest,
                 "lipsa bounds, counterexample, falsify: a wrong command line exits with 2",
                 "[cli]") {
  put_layer(folder / "layer.npz");
  const auto [arguments, message] = GENERATE(table<std::string, std::string>(
      {{"bounds", "give --tokens, at least 1"},
       {"bounds --tokens 3 --around 1", "--around must be given with --at"},
       {"bounds --tokens 3 --at layer.npz", "--tokens must not be given with --at"},
       {"bounds --tokens 3 --radius 0", "radius must be positive, got 0"},
       {"bounds --at layer.npz --weights layer.npz --radius 0.1",
        "radius must hold for the tokens"},
       {"bounds --explain kim", "got 'kim'"},
       {"bounds --tokens 3 --block post", "--block must be residual, pre-norm or post-norm"},
       {"bounds --tokens 3 --attention l3", "got 'l3'"},
       {"bounds --tokens 3 --weights layer.npz --dim 4", "--dim must not be given with --weights"},
       {"counterexample", "give --exceed or --refute"},
       {"counterexample --exceed 5 --refute kim2021_2", "one of them"},
       {"counterexample --exceed -5", "exceed must be above 0"},
       {"counterexample --exceed nan", "exceed must be above 0"},
       {"counterexample --refute kim", "got 'kim'"},
       {"counterexample --refute kim2021_2 --tokens 3", "--tokens must not be given with --refute"},
       {"counterexample --exceed 5 --out w.txt", "--out must end in .npz"},
       {"falsify --bounds kim", "got 'kim'"},
       {"falsify --trials -1", "--trials must not be negative"},
       {"falsify --threads -1", "--threads must be from 0"}}));
  CAPTURE(arguments);
  const Outcome outcome = lipsa(arguments);
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains(message));
  CHECK(outcome.out.empty());
}

TEST_CASE_METHOD(CliTest, "lipsa counterexample: refutes with 1, and verify proves the file",
                 "[cli]") {
  put_layer(folder / "layer.npz");
  const std::string command = GENERATE(
      "--attention dot --weights layer.npz --tokens 4 --norm inf --mask causal --exceed 1e60",
      "--attention l2-untied --weights layer.npz --tokens 4 --exceed 1e9",
      "--attention l2 --tokens 5 --exceed 1", "--refute kim2021_2_printed --trials 2000",
      "--refute newhouse2025_eq23 --trials 2000", "--refute softmax_quarter");
  CAPTURE(command);
  const Outcome outcome = lipsa("counterexample " + command + " --out found.npz");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Catch::StartsWith("refuted: |") && Contains("certified lower bound"));
  CHECK(std::filesystem::exists(folder / "found.json"));
  const Outcome verdict = lipsa("verify found.npz");
  CHECK(verdict.code == 0);
  CHECK_THAT(verdict.out, Catch::StartsWith("PROVED: "));
}

TEST_CASE_METHOD(CliTest, "README: the proof of its counterexample is what the program prints",
                 "[cli]") {
  CHECK(lipsa("counterexample --refute kim2021_2_printed").code == 1);
  const Outcome verdict = lipsa("verify witness.npz");
  CHECK(verdict.code == 0);
  CHECK_THAT(get_bytes(LIPSA_README), Contains("```text\n" + verdict.out + "```"));
}

TEST_CASE_METHOD(CliTest,
                 "lipsa counterexample: 0 for what is true, 4 for what is open, 5 unwritten",
                 "[cli]") {
  CHECK_THAT(lipsa("counterexample --attention l2 --tokens 5 --exceed 20").out,
             Catch::StartsWith("no such pair exists: the map is Lipschitz: l2_2_sum gives 4.7"));
  CHECK(lipsa("counterexample --attention dot --tokens 1 --exceed 5").code == 0);
  CHECK(lipsa("counterexample --attention l2 --tokens 5 --exceed 4.6").code == 4);
  CHECK(lipsa("counterexample --refute kim2021_2 --trials 50").code == 0);
  CHECK(lipsa("counterexample --refute dot_not_lipschitz_2 --trials 50").code == 4);
  CHECK(lipsa("counterexample --refute softmax_quarter --out none/w.npz").code == 5);
  CHECK_FALSE(std::filesystem::exists(folder / "witness.npz"));
}

TEST_CASE_METHOD(CliTest, "lipsa falsify: the same bytes for 1 and 2 threads, and when resumed",
                 "[cli]") {
  const Outcome one = lipsa("falsify --trials 5000 --threads 1 --out one");
  CHECK(one.code == 0);
  CHECK(lipsa("falsify --trials 4500 --threads 2 --out two").code == 0);
  const Outcome two = lipsa("falsify --trials 5000 --threads 2 --out two --resume");
  CHECK(two.out == one.out);
  CHECK(get_bytes(folder / "two" / "falsify.csv") == get_bytes(folder / "one" / "falsify.csv"));
  CHECK(lipsa("falsify --trials 9000 --seed 1 --out two --resume").code == 3);
}

TEST_CASE_METHOD(CliTest, "lipsa falsify: stops at a violation with a witness that is proved",
                 "[cli]") {
  const Outcome outcome = lipsa("falsify --bounds castin2024_code,kim2021_2 --trials 100000");
  CHECK(outcome.code == 1);
  CHECK_THAT(outcome.out, Contains("violated: castin2024_code"));
  CHECK_THAT(outcome.err, Contains("4096 trials"));
  CHECK(lipsa("verify falsify/castin2024_code.npz").code == 0);
}

const std::string small_invert =
    "invert --tokens 6 --dim 4 --heads 2 --batch 3 --contraction 0.1,0.2 ";

TEST_CASE_METHOD(CliTest, "lipsa invert: refuses what it cannot do, before a file is begun",
                 "[cli]") {
  write_npy(folder / "Y.npy", to_array(Matrix(Matrix::Ones(3, 2))));
  const auto [arguments, message] = GENERATE(table<std::string, std::string>(
      {{"invert --contraction 1", "contraction must be between 0 and 1, got 1"},  // case D3
       {"invert --contraction 0", "contraction must be between 0 and 1, got 0"},
       {"invert --contraction -0.5", "contraction must be between 0 and 1, got -0.5"},
       {"invert --range 0", "range must be positive and finite, got 0"},
       {"invert --batch 0", "batch must be at least 1, got 0"},
       {"invert --dim 6 --heads 4", "heads must divide dim = 6, got 4"},
       {"invert --divide kim2022 --attention l2",
        "divisor must be kim2021, sharp, two or the name"},
       {"invert --divide two", "dot_not_lipschitz_2 gives no finite constant"},
       {"invert --preset kim2021-fig2", "--preset must be one of kim2021-fig3"},
       {"bound-sweep --preset kim2021-fig3", "--preset must be one of dot-growth"},
       {"invert --dim 4 --weights w.npz", "--dim must not be given with --weights w.npz"},
       {"invert --at Y.npy", "give --contraction, one number, with --at"},
       {"invert --at Y.npy --contraction 0.5,0.9", "--contraction must be one number"},
       {"invert --at Y.npy --contraction 0.5 --batch 4", "--batch must not be given with --at"},
       {"invert --at Y.npy --contraction 0.5 --preset kim2021-fig3", "--preset must not be given"},
       {"invert --at Y.npy --contraction 0.5 --attention l2,dot", "got 'l2,dot'"},
       {"invert --at Y.npy --contraction 0.5 --out X.npz", "--out must end in .npy"}}));
  CAPTURE(arguments);
  const Outcome outcome = lipsa(arguments);
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains(message));
  CHECK(outcome.out.empty());
  CHECK(folder.count() == 3);  // and Y.npy
}

TEST_CASE_METHOD(CliTest, "lipsa invert: files agree with stdout, the same for 1 and 2 threads",
                 "[cli]") {
  const Outcome csv = lipsa(small_invert + "--format csv --out r --threads 1");
  CHECK(csv.code == 0);
  CHECK(csv.out == get_bytes(folder / "r/inversion.csv"));
  CHECK_THAT(csv.out,
             Catch::StartsWith("attention,weights,mask,n,D,H,contraction,divisor,gain,range,seed,"
                               "batch,anderson,norm,iteration,reconstruction_error_estimate,"));
  CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') == 1 + 2 * 2 * 26);
  const Outcome json = lipsa(small_invert + "--format json --out s --threads 2");
  CHECK(json.out == get_bytes(folder / "s/inversion.json"));
  CHECK(get_bytes(folder / "r/inversion.json") == json.out);
  CHECK_THAT(get_bytes(folder / "r/inversion.meta.json"),
             Contains("\"command_line\": \"lipsa invert --tokens 6"));
  CHECK_THAT(csv.err, Contains("r: inversion.csv, inversion.json, inversion.meta.json"));
  CHECK_THAT(get_bytes(folder / "r/inversion.gp"), Contains("dot-product attention"));
  const Outcome text = lipsa(small_invert + "--attention l2 --divide sharp --log-det");
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Catch::StartsWith("weights=glorot mask=none n=6 D=4 H=2 divisor=sharp"));
  CHECK_THAT(text.out, Contains("upper_bound_error") && Contains("log_det_estimate") &&
                           Contains("converged"));
  CHECK(std::filesystem::exists(folder / "invert/inversion.csv"));
}

TEST_CASE_METHOD(CliTest, "lipsa invert: figure 3 in small, dot-product attention fails far out",
                 "[cli]") {
  const Outcome outcome = lipsa(
      "invert --preset kim2021-fig3 --tokens 12 --dim 16 --heads 2 --batch 2 --range 10 --quiet");
  CHECK(outcome.code == 4);
  CHECK(outcome.err.empty());
  std::istringstream lines(outcome.out);
  std::string line;
  int rows = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with("l2 ") || line.starts_with("dot ")) {
      ++rows;
      CAPTURE(line);
      CHECK((line.ends_with("  converged") == line.starts_with("l2 ")));
    }
  }
  CHECK(rows == 6);
  CHECK(std::filesystem::exists(folder / "invert/kim2021-fig3/inversion.json"));
}

TEST_CASE_METHOD(CliTest, "lipsa invert: solves for X at a given Y, with a proved error", "[cli]") {
  Rng rng(3);
  put_layer(folder / "layer.npz");
  const Matrix y = normal_matrix(rng, 5, 4);
  write_npy(folder / "Y.npy", to_array(y));
  const std::string divisor = GENERATE("kim2021", "sharp", "two");
  CAPTURE(divisor);
  const Outcome outcome = lipsa(
      "invert --at Y.npy --weights layer.npz --contraction 0.9 --log-det --format csv "
      "--out back.npy --divide " +
      divisor);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("upper_bound_error") && Contains("inverse_log_det_estimate"));
  CHECK_THAT(outcome.err, Contains("X: back.npy"));
  const auto g =
      ResidualAttention::contractive(read_layer_file(folder / "layer.npz", AttentionKind::l2).layer,
                                     5, {.factor = 0.9, .divisor = divisor});
  const Matrix x = to_matrix(read_npy(folder / "back.npy"));
  CHECK((g.forward(x) - y).cwiseAbs().maxCoeff() < 1e-12);
  CHECK(lipsa("invert --at Z.npy --weights layer.npz --contraction 0.9").code == 3);
}

TEST_CASE_METHOD(CliTest, "lipsa invert: a map that is not contractive exits with 4 and its rate",
                 "[cli]") {  // case D1
  Rng rng(4);
  put_layer(folder / "layer.npz");
  write_npy(folder / "Y.npy", to_array(Matrix(30.0 * normal_matrix(rng, 5, 4))));
  const Outcome outcome =
      lipsa("invert --at Y.npy --weights layer.npz --contraction 0.9 --attention dot --log-det");
  CHECK(outcome.code == 4);
  CHECK_THAT(outcome.out, Contains("rate_estimate") && Contains("not contractive"));
  CHECK_THAT(outcome.err, Contains("No X is written"));
  CHECK(lipsa("invert --at Y.npy --weights layer.npz --contraction 0.9 --out ./Y.npy").code == 2);
  CHECK_FALSE(std::filesystem::exists(folder / "X.npy"));
}

const std::string small_lm =
    "--depth 1 --dim 8 --heads 2 --feed-forward 8 --context 16 --batch 4 --log-every 1 "
    "--evaluate-every 4 --checkpoint-every 5 ";

TEST_CASE_METHOD(CliTest, "lipsa lm: trains, evaluates, writes and measures", "[cli]") {
  put_bytes(folder / "t.txt", test::grammar_text(1, 4000));
  const std::string kind = GENERATE("dot", "l2-untied", "l2", "contractive-l2", "lstm");
  CAPTURE(kind);
  const Outcome trained =
      lipsa("lm train --text t.txt " + small_lm + "--steps 12 --model " + kind + " --format csv");
  CHECK(trained.code == 0);
  CHECK_THAT(trained.out,
             Catch::StartsWith("step,valid_loss,valid_bits,bigram_valid_loss,status\n12,") &&
                 Catch::EndsWith(",done\n"));
  CHECK_THAT(trained.err, Contains("3600 characters for training, 200 for validation, 200 for "
                                   "test; ") &&
                              Contains("characters: U+000A U+0020 . a b") && !Contains("tokens/s"));
  CHECK_THAT(
      get_bytes(folder / "lm.csv"),
      Catch::StartsWith("step,train_loss,valid_loss,learning_rate,gradient_norm,status\n1,"));

  const Outcome loss = lipsa("lm eval --text t.txt --part valid --format csv");
  CHECK(loss.code == 0);
  CHECK_THAT(loss.out, Catch::StartsWith("part,step,characters,loss,bits,status\nvalid,12,199,"));
  // The same number as after training: the text between two commas.
  const std::string valid = trained.out.substr(trained.out.find("\n12,") + 4);
  CHECK_THAT(loss.out, Contains(",199," + valid.substr(0, valid.find(',') + 1)));

  const Outcome text = lipsa("lm sample --prompt 'the cat' --length 30 --seed 1");
  CHECK(text.code == 0);
  CHECK_THAT(text.out, Catch::StartsWith("the cat"));
  CHECK(text.out.size() == 7 + 30 + 1);
  CHECK(lipsa("lm sample --prompt 'the cat' --length 30 --seed 1 --threads 1").out == text.out);
  CHECK(lipsa("lm sample --length 0").out == "\n");

  const Outcome norms = lipsa("lm lipschitz --text t.txt --inputs 2 --format csv");
  CHECK(norms.code == 0);
  CHECK_THAT(
      norms.out,
      Catch::StartsWith(
          "input,n,part,local_norm_estimate,residual,upper_bound,bound,domain,status\n0,16," +
          std::string(kind == "lstm" ? "network," : "blocks.0.attention,")) &&
          Contains("\n1,16,network,"));
}

TEST_CASE_METHOD(CliTest, "lipsa lm train: kill -9, then --resume, gives the same bytes", "[cli]") {
  put_bytes(folder / "t.txt", test::grammar_text(1, 4000));
  const std::string train = "lm train --text t.txt " + small_lm + "--model l2 --steps 400 ";
  const Outcome whole = lipsa(train + "--quiet --threads 1 --checkpoint whole.safetensors");
  CHECK(whole.code == 0);
  // Killed as soon as there is a checkpoint.
  lipsa(train +
        "& victim=$!; for i in $(seq 500); do [ -e lm.safetensors ] && break; sleep 0.01; done; "
        "kill -9 $victim; wait $victim; true");
  REQUIRE(std::filesystem::exists(folder / "lm.safetensors"));
  const Outcome again = lipsa(train);
  CHECK(again.code == 2);
  CHECK_THAT(again.err, Contains("--checkpoint lm.safetensors is there already: continue it with "
                                 "--resume"));
  const Outcome other = lipsa(train + "--resume --depth 2");
  CHECK(other.code == 2);
  const Outcome contrary = lipsa("lm train --text t.txt --resume --depth 2");
  CHECK(contrary.code == 2);
  CHECK_THAT(contrary.err,
             Contains("--depth 2 must be as in --resume from lm.safetensors, which has 1"));
  const Outcome resumed = lipsa(train + "--resume --threads 2");
  CHECK(resumed.code == 0);
  CHECK(resumed.out == whole.out);
  CHECK(get_bytes(folder / "lm.safetensors") == get_bytes(folder / "whole.safetensors"));
  CHECK(get_bytes(folder / "lm.csv") == get_bytes(folder / "whole.csv"));
  put_bytes(folder / "u.txt", test::grammar_text(2, 4000));
  const Outcome another = lipsa("lm train --text u.txt --steps 500 --resume");
  CHECK(another.code == 3);
  CHECK_THAT(another.err, Contains("it was written in training on another text"));
}

TEST_CASE_METHOD(CliTest, "lipsa lm train: loses no file and no row of a log", "[cli]") {
  put_bytes(folder / "t.txt", test::grammar_text(1, 2000));
  put_bytes(folder / "notes.csv", "mine");
  put_bytes(folder / "m.csv", "mine");
  const std::string train = "lm train --text t.txt " + small_lm + "--quiet --steps 10 ";
  const auto [arguments, message] = GENERATE(table<std::string, std::string>(
      {{"--out t.txt", "--out t.txt must be another file than --text"},
       {"--out ./lm.safetensors", "--out ./lm.safetensors must be another file than --checkpoint"},
       {"--checkpoint ./t.txt", "--checkpoint ./t.txt must be another file than --text"},
       {"--out notes.csv", "--out notes.csv is there already"},
       {"--checkpoint m.safetensors", "--out m.csv is there already"}}));
  CAPTURE(arguments);
  const auto before = folder.count();
  const Outcome outcome = lipsa(train + arguments);
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains(message));
  CHECK(folder.count() == before + 2);  // its stdout and stderr
  CHECK(get_bytes(folder / "notes.csv") == "mine");
}

TEST_CASE_METHOD(CliTest, "lipsa lm train --resume: only with the rhythm of its log", "[cli]") {
  put_bytes(folder / "t.txt", test::grammar_text(1, 2000));
  REQUIRE(lipsa("lm train --text t.txt " + small_lm + "--quiet --steps 10").code == 0);
  const std::string log = get_bytes(folder / "lm.csv");
  const auto [arguments, message] = GENERATE(table<std::string, std::string>(
      {{"--steps 12 --log-every 3 --evaluate-every 4",
        "log_every and evaluate_every must be those"},
       {"--steps 12 --log-every 1 --evaluate-every 5",
        "log_every and evaluate_every must be those"},
       {"--steps 9 --log-every 1 --evaluate-every 4", "--steps 9 must be at least the 10 that"}}));
  CAPTURE(arguments);
  const Outcome outcome = lipsa("lm train --text t.txt --resume " + arguments);
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains(message));
  CHECK(get_bytes(folder / "lm.csv") == log);
  CHECK(lipsa("lm train --text t.txt --resume --steps 12 --log-every 1 --evaluate-every 4").code ==
        0);
  const Outcome other = lipsa("lm eval --text t.txt --test-fraction 0.2");
  CHECK(other.code == 0);
  CHECK_THAT(other.err, Contains("may hold what training has seen"));
  CHECK(lipsa("lm eval --text t.txt").err.empty());
}

TEST_CASE_METHOD(CliTest, "lipsa lm train: a loss that is not finite exits with 4, keeps the model",
                 "[cli]") {
  put_bytes(folder / "t.txt", test::grammar_text(1, 2000));
  const Outcome outcome = lipsa("lm train --text t.txt " + small_lm +
                                "--checkpoint-every 1 --steps 12 --learning-rate 1e200 --quiet");
  CHECK(outcome.code == 2);  // given twice
  const Outcome wild = lipsa(
      "lm train --text t.txt --depth 1 --dim 8 --heads 2 --context 16 --batch 4 "
      "--checkpoint-every 1 --steps 12 --learning-rate 1e200 --quiet");
  CHECK(wild.code == 4);
  CHECK_THAT(wild.out, Contains("non-finite loss"));
  CHECK_THAT(wild.err, Contains("non-finite loss in step 2: training stopped, lm.safetensors is "
                                "the last checkpoint"));
  CHECK_THAT(get_bytes(folder / "lm.csv"), Contains(",non-finite loss\n"));
  CHECK(lipsa("lm sample --length 1").code == 3);  // its weights are finite, its logits are not
}

TEST_CASE_METHOD(CliTest, "lipsa lm: a folder of three files, a sentence a line", "[cli]") {
  std::filesystem::create_directory(folder / "ptb");
  put_bytes(folder / "ptb/ptb.train.txt", test::grammar_text(1, 2000));
  put_bytes(folder / "ptb/ptb.valid.txt", test::grammar_text(2, 500));
  put_bytes(folder / "ptb/ptb.test.txt", test::grammar_text(3, 500));
  CHECK(lipsa("lm train --corpus ptb " + small_lm + "--steps 4 --quiet").code == 0);
  const std::string checkpoint = get_bytes(folder / "lm.safetensors");
  CHECK_THAT(checkpoint, Contains("\"option.examples\":\"sentences\""));
  CHECK_THAT(lipsa("lm eval --corpus ptb --format csv").out, Contains("\ntest,4,499,"));
}

TEST_CASE_METHOD(CliTest, "lipsa lm depth-study: a preset, what is typed wins, and --resume",
                 "[cli]") {
  put_bytes(folder / "t.txt", test::grammar_text(1, 4000));
  const std::string study =
      "lm depth-study --preset kim2021-table1-small --text t.txt --model dot,contractive-l2 "
      "--depth 1,2 --seed 0 --dim 8 --heads 2 --context 16 --batch 4 --format csv ";
  const Outcome whole = lipsa(study + "--steps 10");
  CHECK(whole.code == 0);
  CHECK(whole.out == get_bytes(folder / "depth-study/depth-study.csv"));
  CHECK_THAT(whole.out, Catch::StartsWith("model,depth,seed,step,test_loss,") &&
                            Contains("\ncontractive-l2,2,0,10,"));
  CHECK_THAT(get_bytes(folder / "depth-study/attention-outputs.csv"),
             Catch::StartsWith("model,depth,seed,layer,from,to,count\ndot,1,0,0,"));
  CHECK_THAT(get_bytes(folder / "depth-study/depth-study.gp"), Contains("contractive-l2"));
  CHECK_THAT(get_bytes(folder / "depth-study/attention-outputs.gp"), Contains("\"dot, 1 block\""));
  CHECK_THAT(get_bytes(folder / "depth-study/depth-study.meta.json"),
             Contains("\"command_line\": \"lipsa lm depth-study --preset"));
  CHECK_THAT(get_bytes(folder / "depth-study/dot-1-0.safetensors"),
             Contains("\"option.feed-forward\":\"128\""));
  CHECK(lipsa(study + "--steps 4 --out part --threads 1").code == 0);
  CHECK_THAT(lipsa(study + "--steps 10 --out part").err, Contains("continue it with --resume"));
  CHECK(lipsa(study + "--steps 10 --out part --resume --threads 1").out == whole.out);
  const Outcome less = lipsa(study + "--steps 10 --out part --resume --depth 1");
  CHECK(less.code == 2);  // given twice
  const Outcome fewer = lipsa(
      "lm depth-study --preset kim2021-table1-small --text t.txt --model dot --depth 1,2 --seed 0 "
      "--dim 8 --heads 2 --context 16 --batch 4 --steps 10 --out part --resume");
  CHECK(fewer.code == 2);
  CHECK_THAT(fewer.err,
             Contains("part has the cell contractive-l2-1-0, which is not of this grid"));
  CHECK(lipsa(study + "--steps 3 --learning-rate 1e200 --out wild").code == 4);
  CHECK_THAT(lipsa("lm depth-study --preset kim2021-fig2 --text t.txt").err,
             Contains("--preset must be one of kim2021-fig4-small, kim2021-table1-small, "
                      "kim2021-table1, got "));
}

TEST_CASE_METHOD(CliTest, "lipsa lm: what is wrong is said, with its exit code", "[cli]") {
  put_bytes(folder / "t.txt", test::grammar_text(1, 2000));
  put_bytes(folder / "short.txt", "Hello");
  put_bytes(folder / "empty.txt", "");
  put_bytes(folder / "latin.txt", "caf\xe9");
  put_bytes(folder / "other.txt", std::string(300, 'Q'));
  put_bytes(folder / "text.safetensors", "hello");
  REQUIRE(lipsa("lm train --text t.txt " + small_lm + "--steps 1 --quiet").code == 0);
  const auto before = folder.count();
  const auto [arguments, code, message] = GENERATE(table<std::string, int, std::string>(
      {{"lm", 2, ""},
       {"lm learn", 2, "there is no task 'learn'"},
       {"lm train", 2, "give --text or --corpus, one of them"},
       {"lm train --text t.txt --corpus .", 2, "give --text or --corpus, one of them"},
       {"lm train --text t.txt --depth 0", 2, "--depth must be at least 1, got 0"},
       {"lm train --text t.txt --depth two", 2, "--depth must be a whole number, got 'two'"},
       {"lm train --text t.txt --model cosine", 2,
        "--model must be one of dot, l2-untied, l2, contractive-l2, lstm, got 'cosine'"},
       {"lm train --text t.txt --heads 7", 2, "--heads must divide dim = 64, got 7"},
       {"lm train --text t.txt --log-every 0", 2, "--log-every must be at least 1, got 0"},
       {"lm train --text t.txt --valid-fraction 1", 2, "sum below 1"},
       {"lm train --corpus . --test-fraction 0.1", 2,
        "--test-fraction must not be given with --corpus"},
       {"lm train --text t.txt --out lm.safetensors", 2, "must be another file than --checkpoint"},
       {"lm train --text short.txt --checkpoint n.safetensors", 2,
        "text must be at least one batch of 16 examples, got 5 characters"},
       {"lm train --text empty.txt --checkpoint n.safetensors", 3,
        "empty.txt: expected a text, found an empty file"},
       {"lm train --text latin.txt --checkpoint n.safetensors", 3,
        "latin.txt: byte 3: expected UTF-8"},
       {"lm train --text missing.txt --checkpoint n.safetensors", 3, "missing.txt"},
       {"lm train --corpus . --checkpoint n.safetensors", 3, "expected one file NAME.train.txt"},
       {"lm train --text t.txt --checkpoint none/n.safetensors --quiet", 5, "none"},
       {"lm sample --prompt 'the Cat'", 2,
        "--prompt: encode: text must have only characters of the vocabulary, got U+0043 'C' at "
        "byte 4"},  // case H1
       {"lm sample --prompt ''", 2, "--prompt must not be empty"},
       {"lm sample --temperature -1", 2, "temperature must be from 0"},
       {"lm sample --checkpoint missing.safetensors", 3, "missing.safetensors"},
       {"lm sample --checkpoint text.safetensors", 3, "text.safetensors"},
       {"lm eval --text other.txt", 3, "other.txt, part 'test': encode: text must have only"},
       {"lm eval --text t.txt --part all", 2, "--part must be train, valid or test, got 'all'"},
       {"lm eval --text short.txt", 2,
        "short.txt: the part 'test' must have at least 2 characters, it has 0"},
       {"lm depth-study --text t.txt --depth 0,1 --out n", 2, "--depth must be at least 1, got 0"},
       {"lm depth-study --text t.txt --model l3 --out n", 2, "--model must be one of dot"},
       {"lm depth-study --text t.txt --seed -1 --out n", 2, "--seed must not be negative"},
       {"lm depth-study --text t.txt --dim 30 --out n", 2, "--heads must divide dim = 30, got 4"},
       {"lm lipschitz --text t.txt --inputs 0", 2, "--inputs must be at least 1, got 0"},
       {"lm lipschitz --text t.txt --tolerance 0", 2, "--tolerance must be above 0"}}));
  CAPTURE(arguments);
  const Outcome outcome = lipsa(arguments);
  CHECK(outcome.code == code);
  CHECK_THAT(outcome.err, Contains(message));
  CHECK((outcome.out.empty() || arguments == "lm"));
  CHECK(folder.count() == before);
}

}  // namespace
}  // namespace lipsa
