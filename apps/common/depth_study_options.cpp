#include "common/depth_study_options.hpp"

#include <fmt/format.h>

#include "commands.hpp"
#include "common/list.hpp"
#include "common/presets.hpp"

namespace lipsa::cli {

namespace po = boost::program_options;

po::options_description describe_depth_study(DepthStudyOptions& o) {
  po::options_description options("Options");
  options.add_options()("preset", po::value(&o.preset),
                        fmt::format("options from a preset, what is typed wins: {}",
                                    preset_names(lm_depth_study.name))
                            .c_str());
  describe_text(o.text, options);
  for (const Setting& setting : settings({})) {
    std::string value = setting.value;
    std::string meaning(setting.meaning);
    if (setting.name == "model") {
      value = "dot,l2,contractive-l2";
      meaning.insert(0, "list of ");
    } else if (setting.name == "depth") {
      value = "2,4,6";
      meaning.insert(0, "list: ");
    } else if (setting.name == "seed") {
      meaning.insert(0, "list: ");
    }
    options.add_options()(setting.name.c_str(), po::value<std::string>()->default_value(value),
                          meaning.c_str());
  }
  DepthStudy& s = o.study;
  // clang-format off
  options.add_options()
      ("out", po::value(&o.out)->default_value(o.out), "folder of tables, checkpoints and logs")
      ("log-every", po::value(&s.log_every)->default_value(s.log_every), "steps between two rows of a log")
      ("evaluate-every", po::value(&s.evaluate_every)->default_value(s.evaluate_every), "steps between two losses of the validation text")
      ("checkpoint-every", po::value(&s.checkpoint_every)->default_value(s.checkpoint_every), "steps between two checkpoints")
      ("resume", po::bool_switch(&o.resume), "go on with the cells in that folder");
  // clang-format on
  describe_output(o.threads, o.format, o.quiet, options);
  return options;
}

void read_depth_study_options(DepthStudyOptions& o, const po::variables_map& values) {
  DepthStudy& study = o.study;
  const auto text = [&](const std::string& name) { return values[name].as<std::string>(); };
  const std::string model = text("model");
  study.model.clear();
  for (const std::string_view word : parse_words("model", model)) {
    for_option([&] { set(study.training, "model", word); });
    study.model.push_back(study.training.model);
  }
  study.depth = parse_indices("depth", text("depth"));
  study.seed.clear();
  for (const Index seed : parse_indices("seed", text("seed"))) {
    if (seed < 0) {
      throw std::invalid_argument(fmt::format("--seed must not be negative, got {}", seed));
    }
    study.seed.push_back(static_cast<std::uint64_t>(seed));
  }
  for (const Setting& setting : settings({})) {
    if (setting.name != "model" && setting.name != "depth" && setting.name != "seed") {
      for_option([&] { set(study.training, setting.name, text(setting.name)); });
    }
  }
  if (!o.text.corpus.empty() && values["examples"].defaulted()) {
    study.training.examples = ExampleKind::sentences;
  }
  for (const Index depth : study.depth) {
    TrainingOptions cell = study.training;
    cell.depth = depth;
    for_option([&] { require_valid(cell); });
  }
  require_at_least_1({{"log-every", study.log_every},
                      {"evaluate-every", study.evaluate_every},
                      {"checkpoint-every", study.checkpoint_every}});
}

DepthStudy depth_study_of_preset(const std::string& preset) {
  DepthStudyOptions o;
  const po::options_description options = describe_depth_study(o);
  po::variables_map values;
  apply_preset(lm_depth_study, preset, options, values);
  po::store(po::command_line_parser(std::vector<std::string>{}).options(options).run(), values);
  po::notify(values);
  read_depth_study_options(o, values);
  return o.study;
}

}  // namespace lipsa::cli
