#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "commands.hpp"
#include "common/layer_options.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/experiment/bound_table.hpp"
#include "lipsa/model/layer_file.hpp"

namespace lipsa::cli {
namespace {

namespace po = boost::program_options;

constexpr std::string_view examples =
    "  lipsa bounds --weights layer.npz --attention dot --at layer.npz\n"
    "      every bound of the layer at the tokens in its file, beside the norm there\n"
    "  lipsa bounds --weights glorot --dim 8 --heads 2 --attention l2 --tokens 64 --norm inf\n"
    "      bounds on all X, beside the best lower bound found\n"
    "  lipsa bounds --weights layer.npz --attention dot --tokens 128 --radius 3 --block pre-norm\n"
    "      a block of LayerNorm, attention and residual, component by component\n"
    "  lipsa bounds --weights layer.npz --attention dot --at layer.npz --subject softmax\n"
    "      what is known of the softmax of its rows\n"
    "  lipsa bounds --explain sharp_l2_inf\n"
    "      a bound's formula, source and hypotheses\n";

struct Options {
  LayerOptions layer{};
  std::string norm = "2";
  Index tokens = 0;
  double radius = std::numeric_limits<double>::infinity();
  std::string at{};
  double around = 0.0;
  Index restarts = BoundQuestion{}.restarts;
  bool certify = false;
  std::string explain{};
  std::string subject = "attention";
  std::string block{};
  std::string normalisation = "layer-norm";
  double epsilon = Normalisation{}.epsilon;
  double gamma = Normalisation{}.gamma_max;
  double beta = Normalisation{}.beta_norm;
  Index threads = 0;
  std::string format = "text";
  bool quiet = false;
};

po::options_description describe(Options& o) {
  po::options_description options("Options");
  describe_layer(o.layer, options);
  const auto real = [](double& x) { return po::value(&x)->default_value(x, fmt::format("{}", x)); };
  // clang-format off
  options.add_options()
      ("norm", po::value(&o.norm)->default_value(o.norm), "2, inf, 1 or max-token")
      ("tokens", po::value(&o.tokens), "number of tokens n")
      ("radius", real(o.radius), "of the ball |x_i|_2 <= R; with --at the longest token there")
      ("at", po::value(&o.at), "tokens X, .npy or the X of a .npz: bounds of |J(X)|")
      ("around", real(o.around), "with --at: on |X' - X|_F <= EPS")
      ("restarts", po::value(&o.restarts)->default_value(o.restarts), "random starts of the search for a lower bound, without --at; 0 for none")
      ("certify", po::bool_switch(&o.certify), "also evaluate in ball arithmetic, for the bounds that have it")
      ("subject", po::value(&o.subject)->default_value(o.subject), "whose bounds: attention, its softmax, or a normalisation beside it")
      ("block", po::value(&o.block), "the block around the layer: residual, pre-norm, post-norm")
      ("normalisation", po::value(&o.normalisation)->default_value(o.normalisation), "of the block or the subject: layer-norm, rms-norm")
      ("epsilon", real(o.epsilon), "of the normalisation")
      ("gamma", real(o.gamma), "largest gain of the normalisation")
      ("beta", real(o.beta), "2-norm of the shift of the normalisation")
      ("explain", po::value(&o.explain), "print the formula, source and hypotheses of a bound, or of all")
      ("threads", po::value(&o.threads)->default_value(o.threads), "threads to use, 0 for all; results are the same")
      ("format", po::value(&o.format)->default_value(o.format), "text, csv, json, markdown, latex")
      ("quiet", po::bool_switch(&o.quiet), "no notes on stderr");
  // clang-format on
  return options;
}

void print_explanation(const CatalogEntry& entry) {
  const std::string of = entry.subject == Subject::attention
                             ? fmt::format("{} attention", to_string(entry.attention))
                             : std::string(to_string(entry.subject));
  fmt::print("{}\n  {}, norm {}, domain: {}\n  L = {}\n  source: {}\n  kind: {}\n", entry.name, of,
             to_string(entry.norm), to_string(entry.domain), entry.statement, entry.source,
             to_string(entry.kind));
  if (!entry.refutation.empty()) {
    fmt::print("  refuted: {}\n", entry.refutation);
  }
  if (!entry.proof.empty()) {
    fmt::print("  {}: {}\n", entry.refutation.empty() ? "rests on" : "refuted by", entry.proof);
  }
}

int explain(const std::string& name) {
  if (name != "all") {
    print_explanation(find_entry(name));
    return success;
  }
  for (const CatalogEntry& entry : catalog()) {
    fmt::print("{}", &entry == catalog().data() ? "" : "\n");
    print_explanation(entry);
  }
  return success;
}

Subject parse_subject(const std::string& text) {
  for (const auto subject : {Subject::attention, Subject::softmax, Subject::normalisation}) {
    if (text == to_string(subject)) {
      return subject;
    }
  }
  throw std::invalid_argument(
      fmt::format("--subject must be attention, softmax or normalisation, got '{}'", text));
}

BlockKind parse_block(const std::string& text) {
  if (text == "residual") {
    return BlockKind::residual;
  }
  if (text == "pre-norm") {
    return BlockKind::pre_norm;
  }
  if (text == "post-norm") {
    return BlockKind::post_norm;
  }
  throw std::invalid_argument(
      fmt::format("--block must be residual, pre-norm or post-norm, got '{}'", text));
}

Normalisation::Kind parse_normalisation(const std::string& text) {
  if (text == "layer-norm") {
    return Normalisation::Kind::layer_norm;
  }
  if (text == "rms-norm") {
    return Normalisation::Kind::rms_norm;
  }
  throw std::invalid_argument(
      fmt::format("--normalisation must be layer-norm or rms-norm, got '{}'", text));
}

std::string caption(const BoundQuestion& question, const BoundAnswer& answer) {
  const MultiHead& layer = question.layer;
  const Index n = question.x ? question.x->rows() : question.tokens;
  std::string text =
      fmt::format("attention={} mask={} norm={} n={} D={} H={} d={} radius={}",
                  to_string(layer.kind), to_string(question.mask.kind()), to_string(question.norm),
                  n, layer.width(), layer.heads, layer.head_width(), answer.radius);
  if (!std::isnan(answer.local_norm)) {
    text += fmt::format(" around={} local_norm={} (estimate, residual {})", question.around,
                        answer.local_norm, answer.residual);
  }
  return text + fmt::format(" lower_bound={} source={} status={}\n", answer.lower_bound,
                            answer.lower_bound_source.empty() ? "none" : answer.lower_bound_source,
                            answer.status);
}

/// The question and what was measured, in front of the rows.
void print_answer(const BoundQuestion& question, const BoundAnswer& answer, TableFormat format) {
  Table table = bound_table(answer);
  if (format == TableFormat::csv || format == TableFormat::json) {
    const Index n = question.x ? question.x->rows() : question.tokens;
    const std::vector<std::string> columns{
        "attention",  "mask",       "norm",     "n",           "radius",
        "around",     "local_norm", "residual", "lower_bound", "lower_bound_source",
        "measurement"};
    const auto number = [](double x) { return std::isnan(x) ? Cell() : Cell(x); };
    const std::vector<Cell> cells{std::string(to_string(question.layer.kind)),
                                  std::string(to_string(question.mask.kind())),
                                  std::string(to_string(question.norm)),
                                  std::int64_t{n},
                                  answer.radius,
                                  question.around,
                                  number(answer.local_norm),
                                  number(answer.residual),
                                  answer.lower_bound,
                                  answer.lower_bound_source,
                                  answer.status};
    table.columns.insert(table.columns.begin(), columns.begin(), columns.end());
    for (auto& row : table.rows) {
      row.insert(row.begin(), cells.begin(), cells.end());
    }
  } else {
    table.columns.pop_back();  // the source: --explain has it
    for (auto& row : table.rows) {
      row.pop_back();
    }
    fmt::print("{}{}{}", format == TableFormat::latex ? "% " : "", caption(question, answer),
               format == TableFormat::markdown ? "\n" : "");
  }
  fmt::print("{}", format_table(table, format));
}

int run(Arguments arguments) {
  Options o;
  po::variables_map values;
  if (!parse(cli::bounds, examples, arguments, describe(o), values)) {
    return success;
  }
  po::notify(values);
  const TableFormat format = parse_table_format(o.format);
  const auto limit = thread_limit(o.threads);
  if (!o.explain.empty()) {
    return explain(o.explain);
  }
  BoundQuestion question{.norm = parse_norm(o.norm),
                         .tokens = o.tokens,
                         .radius = o.radius,
                         .around = o.around,
                         .restarts = o.restarts,
                         .certify = o.certify};
  if (!o.at.empty()) {
    if (values.count("tokens") != 0) {
      throw std::invalid_argument("--tokens must not be given with --at, which has its own");
    }
    question.x = read_tokens(o.at);
  } else if (o.tokens < 1) {
    throw std::invalid_argument("give --tokens, at least 1, or tokens in a file by --at");
  } else if (o.around != 0.0) {
    throw std::invalid_argument("--around must be given with --at");
  }
  ChosenLayer chosen = read_layer(o.layer, values, question.x ? question.x->cols() : 0);
  for (const std::string& text : chosen.notes) {
    note(o.quiet, text);
  }
  question.layer = std::move(chosen.layer);
  question.mask = chosen.mask;
  question.seed = chosen.seed;
  if (question.x && question.x->cols() != question.layer.width()) {
    throw std::runtime_error(
        fmt::format("{}: expected tokens of {} features as the layer has, found {}", o.at,
                    question.layer.width(), question.x->cols()));
  }
  const Normalisation normalisation{.kind = parse_normalisation(o.normalisation),
                                    .width = question.layer.width(),
                                    .epsilon = o.epsilon,
                                    .gamma_max = o.gamma,
                                    .beta_norm = o.beta};
  question.subject = parse_subject(o.subject);
  question.normalisation = normalisation;
  if (!o.block.empty()) {
    if (question.subject != Subject::attention) {
      throw std::invalid_argument("--block must not be given with --subject");
    }
    fmt::print("{}",
               format_table(block_table(question, parse_block(o.block), normalisation), format));
    return success;
  }
  const BoundAnswer answered = answer(question);
  print_answer(question, answered, format);
  return answered.status == "converged" || answered.status == "not measured" ||
                 answered.status == "step limit"
             ? success
             : unsettled;
}

}  // namespace

const Command bounds{"bounds", "Every bound of one layer, beside its norm or a lower bound.", &run};

}  // namespace lipsa::cli
