#include "lipsa/train/language_model_training.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/check.hpp"
#include "core/input_file.hpp"
#include "core/shape.hpp"
#include "lipsa/core/parameter_file.hpp"
#include "lipsa/core/rng.hpp"
#include "lipsa/model/cross_entropy.hpp"

namespace lipsa {
namespace {

constexpr std::uint64_t weight_stream = 0x6c6d776569676800U;  // "lmweigh": apart from other streams
constexpr Index most_at_once = Index{1} << 24U;               // of characters and of examples
constexpr Index most_steps = Index{1} << 32U;                 // that dropout has streams for
constexpr std::string_view format_name = "lipsa language model 1";
constexpr std::string_view model_prefix = "model.";
constexpr std::string_view option_prefix = "option.";

/// The names of an option's values.
template <class E>
struct Named {
  std::string_view name;
  E value;
};
template <class E>
Named(std::string_view, E) -> Named<E>;  // Clang 14 does not find it of an aggregate

constexpr std::array kinds{
    Named{"dot", LanguageModelKind::dot}, Named{"l2-untied", LanguageModelKind::l2_untied},
    Named{"l2", LanguageModelKind::l2}, Named{"contractive-l2", LanguageModelKind::contractive_l2},
    Named{"lstm", LanguageModelKind::lstm}};
constexpr std::array placements{Named{"post", NormPlacement::post},
                                Named{"pre", NormPlacement::pre}};
constexpr std::array activations{Named{"relu", Activation::relu}, Named{"gelu", Activation::gelu}};
constexpr std::array example_kinds{Named{"windows", ExampleKind::windows},
                                   Named{"sentences", ExampleKind::sentences}};
constexpr std::array schedules{Named{"fixed", LearningRate::Kind::fixed},
                               Named{"warm-up", LearningRate::Kind::warm_up}};
constexpr std::array bounds{Named{"kim2021_inf", 0}, Named{"sharp_l2_inf", 1},
                            Named{"kim2021_2", 2}, Named{"l2_2_fused", 3}};

constexpr const auto& names_of(LanguageModelKind /*of*/) {
  return kinds;
}
constexpr const auto& names_of(NormPlacement /*of*/) {
  return placements;
}
constexpr const auto& names_of(Activation /*of*/) {
  return activations;
}
constexpr const auto& names_of(ExampleKind /*of*/) {
  return example_kinds;
}
constexpr const auto& names_of(LearningRate::Kind /*of*/) {
  return schedules;
}

template <class Names>
std::string list_of(const Names& names) {
  std::string list;
  for (const auto& named : names) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", named.name);
  }
  return list;
}

template <class T>
requires std::is_enum_v<T> std::string text_of(T value) {
  const auto& names = names_of(value);
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const auto& named) { return named.value == value; });
  return std::string(found->name);
}
std::string text_of(double value) {
  return fmt::format("{}", value);  // the shortest that reads back the same
}
std::string text_of(const std::string& value) {
  return value;
}
template <std::integral T>
std::string text_of(T value) {
  return fmt::format("{}", value);
}

template <class T>
requires std::is_enum_v<T>
void read(std::string_view name, std::string_view text, T& value) {
  const auto& names = names_of(value);
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const auto& named) { return named.name == text; });
  require(found != names.end(), "{} must be one of {}, got '{}'", name, list_of(names), text);
  value = found->value;
}
template <class T>
requires std::is_arithmetic_v<T>
void read(std::string_view name, std::string_view text, T& value) {
  T number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  require(error == std::errc() && end == last, "{} must be a {}number, got '{}'", name,
          std::is_integral_v<T> ? "whole " : "", text);
  value = number;
}
void read(std::string_view name, std::string_view text, std::string& value) {
  require(std::any_of(bounds.begin(), bounds.end(),
                      [&](const auto& named) { return named.name == text; }),
          "{} must be one of {}, got '{}'", name, list_of(bounds), text);
  value = text;
}

/// f(name, option, meaning) for each option.
template <MaybeConst<TrainingOptions> O, class F>
void for_each_option(O& o, const F& f) {
  f("model", o.model,
    "a Transformer with attention dot, l2-untied, l2 (tied) or contractive-l2; or lstm");
  f("depth", o.depth, "number of blocks, of LSTM layers");
  f("dim", o.dim, "number of features D, width of an LSTM layer");
  f("heads", o.heads, "number of heads H");
  f("feed-forward", o.feed_forward, "features inside the feed-forward pieces");
  f("context", o.context, "characters n that a prediction may see");
  f("placement", o.placement, "of the norms: post (as in the paper), pre");
  f("activation", o.activation, "relu, gelu");
  f("dropout", o.dropout, "rate, in training");
  f("l2-scale", o.l2_scale, "k: L2 attention weights begin uniform on +-k/sqrt(D)");
  f("bound", o.bound,
    "of contractive-l2, what it is divided by: kim2021_inf, sharp_l2_inf, kim2021_2, l2_2_fused");
  f("contraction", o.contraction, "c of contractive-l2: its attention is times c/bound");
  f("examples", o.examples, "windows of the text, or sentences: one a line");
  f("batch", o.batch, "examples a step");
  f("schedule", o.schedule, "fixed, or warm-up: gamma/sqrt(D) min(1/sqrt(t), t/w^1.5)");
  f("learning-rate", o.learning_rate, "of the schedule fixed; gamma of warm-up");
  f("warm-up", o.warm_up, "steps w of warm-up");
  f("clip", o.clip, "largest norm of the gradient, scaled down above; inf for off");
  f("steps", o.steps, "steps of training in all");
  f("seed", o.seed, "seed of weights, batches and dropout");
}

AttentionKind attention_of(LanguageModelKind kind) {
  switch (kind) {
    case LanguageModelKind::l2_untied:
      return AttentionKind::l2_untied;
    case LanguageModelKind::l2:
    case LanguageModelKind::contractive_l2:
      return AttentionKind::l2;
    case LanguageModelKind::dot:
    case LanguageModelKind::lstm:
      break;
  }
  return AttentionKind::dot;
}

/// Gives each block of a contractive model its gain, and returns the bounds: none of other models.
std::vector<BoundGradient> contract(AnyLanguageModel& model, const TrainingOptions& options) {
  std::vector<BoundGradient> list;
  if (options.model == LanguageModelKind::contractive_l2) {
    std::vector<Block>& blocks = std::get<LanguageModel>(model).stack.blocks;
    list.reserve(blocks.size());
    for (Block& block : blocks) {
      AttentionLayer& layer = block.attention;
      // Of the longest sequence: bounds rise with n, so that it covers shorter ones.
      list.push_back(bound_gradient(options.bound, layer.weights, layer.mask, options.context));
      layer.gain = contractive_gain(list.back(), options.contraction);
    }
  }
  return list;
}

bool all_finite(const AnyLanguageModel& model) {
  const auto list = parameters(model);
  return std::all_of(list.begin(), list.end(),
                     [](const ConstParameter& array) { return array.values.allFinite(); });
}

const std::string& metadata_of(const Safetensors& file, const std::string& name) {
  const auto found = file.metadata.find(name);
  if (found == file.metadata.end()) {
    malformed(file.origin, "expected metadata {:?} of a language model, found none", name);
  }
  return found->second;
}

void require_shape(const Safetensors& file, std::string_view name,
                   const std::vector<Index>& shape) {
  const std::string full = fmt::format("{}{}", model_prefix, name);
  const auto found = file.tensors.find(full);
  if (found == file.tensors.end()) {
    malformed(file.origin, "expected a tensor {:?}, found none", full);
  }
  if (found->second.shape != shape) {
    malformed(found->second.origin, "expected shape {} as its options say, found {}",
              tuple_text(shape), tuple_text(found->second.shape));
  }
}

LanguageModelFile model_of(const Safetensors& file) {
  if (const std::string& format = metadata_of(file, "format"); format != format_name) {
    malformed(file.origin, "metadata \"format\": expected {:?}, found {:?}", format_name, format);
  }
  LanguageModelFile result;
  try {
    for (const Setting& setting : settings({})) {
      set(result.options, setting.name,
          metadata_of(file, fmt::format("{}{}", option_prefix, setting.name)));
    }
    require_valid(result.options);
    const std::string& characters = metadata_of(file, "vocabulary");
    result.vocabulary = Vocabulary(characters);
    require(!characters.empty() && result.vocabulary.characters() == characters,
            "vocabulary must be its characters in order, each once, got {} bytes",
            characters.size());
  } catch (const std::invalid_argument& e) {
    malformed(file.origin, "metadata: {}", e.what());
  }
  // Before memory is claimed by what the options say.
  const TrainingOptions& o = result.options;
  if (o.depth > static_cast<Index>(file.tensors.size())) {
    malformed(file.origin, "expected depth {}, found {} tensors in all", o.depth,
              file.tensors.size());
  }
  require_shape(file, "embedding.tokens", {result.vocabulary.size(), o.dim});
  double numbers = 0.0;
  for (const auto& [name, tensor] : file.tensors) {
    numbers += static_cast<double>(tensor.data.size());
  }
  const auto depth = static_cast<double>(o.depth);
  const auto dim = static_cast<double>(o.dim);
  const double needed = o.model == LanguageModelKind::lstm
                            ? depth * 8.0 * dim * dim
                            : depth * dim * (3.0 * dim + 2.0 * static_cast<double>(o.feed_forward));
  if (numbers < needed) {
    malformed(file.origin, "expected at least {:g} numbers as its options say, found {:g}", needed,
              numbers);
  }
  if (o.model == LanguageModelKind::lstm) {
    require_shape(file, fmt::format("layers.{}.W_H", o.depth - 1), {o.dim, 4 * o.dim});
  } else {
    require_shape(file, "embedding.positions", {o.context, o.dim});
    require_shape(file, "blocks.0.attention.W_Q", {o.dim, o.dim});
    require_shape(file, fmt::format("blocks.{}.feed_forward.in.W", o.depth - 1),
                  {o.dim, o.feed_forward});
  }
  result.model = initial_language_model(o, result.vocabulary.size());
  load_parameters(file, std::string(model_prefix), parameters(result.model));
  static_cast<void>(contract(result.model, o));
  Adam adam(result.model);
  adam.load(file);
  result.step = adam.steps();
  if (result.step > most_steps) {
    malformed(file.origin, "expected at most {} steps, found {}", most_steps, result.step);
  }
  result.text_hash = metadata_of(file, "text");
  return result;
}

/// Refuses a text that the checkpoint was not trained on.
LanguageModelFile model_of(const Safetensors& file, std::span<const CharacterId> text) {
  LanguageModelFile result = model_of(file);
  if (const std::string& hash = metadata_of(file, "text"); hash != text_hash(text)) {
    malformed(
        file.origin,
        "it was written in training on another text, or on another part of it: expected hash {}, "
        "found {}",
        hash, text_hash(text));
  }
  return result;
}

}  // namespace

std::string text_hash(std::span<const CharacterId> text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const CharacterId id : text) {
    auto word = static_cast<std::uint32_t>(id);
    for (int byte = 0; byte < 4; ++byte, word >>= 8U) {
      hash = (hash ^ (word & 255U)) * 0x100000001b3U;
    }
  }
  return fmt::format("{:016x}", hash);
}

std::vector<Setting> settings(const TrainingOptions& options) {
  std::vector<Setting> list;
  for_each_option(options, [&](const char* name, const auto& option, const char* meaning) {
    list.push_back({name, text_of(option), meaning});
  });
  return list;
}

void set(TrainingOptions& options, std::string_view name, std::string_view value) {
  bool found = false;
  for_each_option(options, [&](std::string_view known, auto& option, const char* /*meaning*/) {
    if (name == known) {
      read(name, value, option);
      found = true;
    }
  });
  require(found, "set: name must be that of an option of training, got '{}'", name);
}

void require_valid(const TrainingOptions& o) {
  const auto at_least = [](const char* name, Index value, Index least) {
    require(value >= least, "{} must be at least {}, got {}", name, least, value);
  };
  const auto positive = [](const char* name, double value) {
    require(value > 0.0 && std::isfinite(value), "{} must be above 0 and finite, got {}", name,
            value);
  };
  at_least("depth", o.depth, 1);
  at_least("dim", o.dim, 1);
  at_least("heads", o.heads, 1);
  require(o.dim % o.heads == 0, "heads must divide dim = {}, got {}", o.dim, o.heads);
  at_least("feed-forward", o.feed_forward, 1);
  at_least("context", o.context, 1);
  require(o.dropout >= 0.0 && o.dropout < 1.0, "dropout must be from 0 below 1, got {}", o.dropout);
  positive("l2-scale", o.l2_scale);
  require(o.contraction > 0.0 && o.contraction <= 1.0,
          "contraction must be above 0 and at most 1, got {}", o.contraction);
  at_least("batch", o.batch, 1);
  for (const auto& [name, value] : {std::pair{"context", o.context}, std::pair{"batch", o.batch}}) {
    require(value <= most_at_once, "{} must be at most {}, got {}", name, most_at_once, value);
  }
  positive("learning-rate", o.learning_rate);
  at_least("warm-up", o.warm_up, 1);
  require(o.clip > 0.0, "clip must be above 0, got {}", o.clip);
  at_least("steps", o.steps, 0);
  require(o.steps <= most_steps, "steps must be at most {}, got {}", most_steps, o.steps);
  require(o.seed <= std::uint64_t{INT64_MAX}, "seed must be at most 2^63 - 1, got {}", o.seed);
}

namespace {

LstmModel initial_baseline(const TrainingOptions& o, Index vocabulary) {
  Rng rng(o.seed, weight_stream);
  LstmModel model = initial_lstm_model(
      {.vocabulary = vocabulary, .width = o.dim, .hidden_width = o.dim, .layers = o.depth}, rng);
  model.dropout = o.dropout;
  return model;
}

LanguageModel initial_transformer(const TrainingOptions& o, Index vocabulary) {
  std::uint64_t stream = 0;  // one a matrix
  const auto uniform = [&](Index rows, Index cols, double limit) {
    Rng rng(o.seed, weight_stream, stream++);
    return uniform_matrix(rng, rows, cols, -limit, limit);
  };
  const auto glorot = [&](Index rows, Index cols) {
    return uniform(rows, cols, std::sqrt(6.0 / static_cast<double>(rows + cols)));
  };
  const auto linear = [&](Index rows, Index cols) -> Linear {
    return {.W = glorot(rows, cols), .b = Vector::Zero(cols)};
  };
  const auto norm = [&]() -> LayerNorm {
    return {.gamma = Vector::Ones(o.dim), .beta = Vector::Zero(o.dim)};
  };
  const auto attention_weight = [&] {
    return attention_of(o.model) != AttentionKind::dot
               ? uniform(o.dim, o.dim, o.l2_scale / std::sqrt(static_cast<double>(o.dim)))
               : glorot(o.dim, o.dim);
  };

  LanguageModel model{.dropout = o.dropout};
  model.embedding.tokens = glorot(vocabulary, o.dim);
  model.embedding.positions = glorot(o.context, o.dim);
  for (Index k = 0; k < o.depth; ++k) {
    Block block{.placement = o.placement, .dropout = o.dropout};
    MultiHead& weights = block.attention.weights;
    weights.kind = attention_of(o.model);
    weights.heads = o.heads;
    weights.W_Q = attention_weight();
    if (weights.kind == AttentionKind::l2) {
      ++stream;  // what it has in common with the other kinds is the same
    } else {
      weights.W_K = attention_weight();
    }
    weights.W_V = attention_weight();
    weights.W_O = attention_weight();
    block.attention.mask = Mask::causal();
    block.attention_norm = norm();
    block.feed_forward.in = linear(o.dim, o.feed_forward);
    block.feed_forward.activation = o.activation;
    block.feed_forward.out = linear(o.feed_forward, o.dim);
    block.feed_forward_norm = norm();
    model.stack.blocks.push_back(std::move(block));
  }
  if (o.placement == NormPlacement::pre) {
    model.stack.final_norm = norm();
  }
  model.stack.output = linear(o.dim, vocabulary);
  return model;
}

}  // namespace

AnyLanguageModel initial_language_model(const TrainingOptions& o, Index vocabulary) {
  require_valid(o);
  require(vocabulary >= 1, "initial_language_model: vocabulary must be at least 1, got {}",
          vocabulary);
  if (o.model == LanguageModelKind::lstm) {
    return initial_baseline(o, vocabulary);
  }
  AnyLanguageModel model = initial_transformer(o, vocabulary);
  static_cast<void>(contract(model, o));
  return model;
}

std::vector<Example> examples_of(std::span<const CharacterId> text, const Vocabulary& vocabulary,
                                 const TrainingOptions& options) {
  if (options.examples == ExampleKind::windows) {
    return windows(static_cast<Index>(text.size()), options.context);
  }
  const bool has_lines = vocabulary.characters().find('\n') != std::string::npos;
  return sentences(text, has_lines ? vocabulary.encode("\n").front() : CharacterId{-1},
                   options.context)
      .examples;
}

double TextLoss::bits() const {
  return nats / std::numbers::ln2;
}

TextLoss evaluate(const AnyLanguageModel& model, std::span<const CharacterId> text,
                  const std::vector<Example>& examples, Index batch) {
  require(batch >= 1, "evaluate: batch must be at least 1, got {}", batch);
  require(!examples.empty(), "evaluate: text must have at least 2 characters, got {}", text.size());
  TextLoss loss;
  double sum = 0.0;
  const std::span<const Example> all(examples);
  const auto size = static_cast<std::size_t>(batch);
  for (std::size_t first = 0; first < all.size(); first += size) {
    const Batch some = make_batch(text, all.subspan(first, std::min(size, all.size() - first)));
    const CrossEntropy entropy = cross_entropy(
        AnyLanguageModelAt(model, some.inputs, some.length).take_output(), some.targets);
    sum += entropy.nats * static_cast<double>(entropy.counted);
    loss.predicted += entropy.counted;
  }
  loss.nats = sum / static_cast<double>(loss.predicted);
  return loss;
}

std::string_view to_string(StepStatus status) {
  switch (status) {
    case StepStatus::taken:
      return "taken";
    case StepStatus::non_finite_loss:
      return "non-finite loss";
    case StepStatus::non_finite_gradient:
      return "non-finite gradient";
    case StepStatus::non_finite_weights:
      return "non-finite weights";
  }
  return "unknown";
}

LanguageModelFile read_language_model(const std::filesystem::path& path) {
  return model_of(read_safetensors(path));
}

Trainer::Trainer(LanguageModelFile file, std::span<const CharacterId> text)
    : file_(std::move(file)),
      text_(text),
      batches_(text_, examples_of(text_, file_.vocabulary, file_.options), file_.options.batch,
               file_.options.seed),
      adam_(file_.model, {.clip_norm = file_.options.clip}),
      bounds_(contract(file_.model, file_.options)) {}

Trainer::Trainer(const TrainingOptions& options, const Vocabulary& vocabulary,
                 std::span<const CharacterId> text)
    : Trainer({.options = options,
               .vocabulary = vocabulary,
               .model = initial_language_model(options, vocabulary.size())},
              text) {}

Trainer::Trainer(const Safetensors& file, std::span<const CharacterId> text)
    : Trainer(model_of(file, text), text) {
  adam_.load(file);
}

Trainer::Trainer(const std::filesystem::path& checkpoint, std::span<const CharacterId> text)
    : Trainer(read_safetensors(checkpoint), text) {}

void Trainer::set_steps(Index steps) {
  TrainingOptions moved = file_.options;
  moved.steps = steps;
  require_valid(moved);
  file_.options = moved;
}

TrainingStep Trainer::step() {
  AnyLanguageModel& model = file_.model;
  const TrainingOptions& options = file_.options;
  const Index done = adam_.steps();
  TrainingStep result{.step = done + 1,
                      .learning_rate = learning_rate({.kind = options.schedule,
                                                      .gamma = options.learning_rate,
                                                      .width = options.dim,
                                                      .warm_up = options.warm_up},
                                                     done + 1)};
  const Batch batch = batches_.at(done);
  result.predicted = batch.predicted;
  AnyLanguageModelAt at(
      model, batch.inputs, batch.length,
      DropoutStream{.seed = options.seed, .step = static_cast<std::uint64_t>(done)});
  CrossEntropy loss = cross_entropy(at.take_output(), batch.targets);
  result.loss = loss.nats;
  if (!std::isfinite(loss.nats)) {
    return result;
  }
  AnyLanguageModel gradient = zeros_like(model);
  if (auto* const transformer = std::get_if<LanguageModel>(&gradient)) {
    for (Block& block : transformer->stack.blocks) {
      block.attention.gain = 0.0;  // no parameter: zeros_like leaves it
    }
  }
  at.backward(std::move(loss.gradient), gradient);
  for (std::size_t k = 0; k < bounds_.size(); ++k) {
    AttentionLayer& layer = std::get<LanguageModel>(gradient).stack.blocks[k].attention;
    const double gain = std::get<LanguageModel>(model).stack.blocks[k].attention.gain;
    add_gain_gradient(bounds_[k], gain, layer.gain, layer.weights);
  }
  const AdamStep taken = adam_.step(model, gradient, result.learning_rate);
  result.gradient_norm = taken.gradient_norm;
  if (!taken.taken) {
    result.status = StepStatus::non_finite_gradient;
    return result;
  }
  if (!all_finite(model)) {
    result.status = StepStatus::non_finite_weights;
    return result;
  }
  file_.step = adam_.steps();
  bounds_ = contract(model, options);
  result.status = StepStatus::taken;
  return result;
}

void Trainer::write(const std::filesystem::path& path) const {
  Safetensors file;
  store_parameters(file, std::string(model_prefix), parameters(file_.model));
  adam_.store(file);
  file.metadata["format"] = format_name;
  file.metadata["vocabulary"] = file_.vocabulary.characters();
  file.metadata["text"] = text_hash(text_);
  for (const Setting& setting : settings(file_.options)) {
    file.metadata[fmt::format("{}{}", option_prefix, setting.name)] = setting.value;
  }
  write_safetensors(path, file);
}

}  // namespace lipsa
