#include "lipsa/experiment/falsify_journal.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lipsa/bounds/catalog.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "lipsa/core/version.hpp"

namespace lipsa {
namespace {

using nlohmann::ordered_json;

ordered_json identity_of(const FalsifyOptions& options) {
  return {{"lipsa", std::string(version())},
          {"bounds", options.bounds},
          {"seed", options.seed},
          {"shrink", options.shrink}};
}

}  // namespace

void write_progress(const std::filesystem::path& path, const FalsifyOptions& options,
                    const FalsifyProgress& progress) {
  ordered_json json{{"run", identity_of(options)}, {"next", progress.next}};
  json["tallies"] = ordered_json::array();
  for (const FalsifyTally& tally : progress.tallies) {
    json["tallies"].push_back({tally.name, tally.trials, tally.worst_ratio, tally.worst_trial,
                               tally.worst_ratio_one_token, tally.worst_trial_one_token});
  }
  write_file_atomically(path, json.dump() + "\n");
}

FalsifyProgress read_progress(const std::filesystem::path& path, const FalsifyOptions& options) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw std::runtime_error(fmt::format("{}: there is no run to resume", path.string()));
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  FalsifyProgress progress;
  try {
    const auto json = ordered_json::parse(text);
    if (json.at("run") != identity_of(options)) {
      throw std::runtime_error(
          fmt::format("{}: it is of another run: {}", path.string(), json.at("run").dump()));
    }
    progress.next = json.at("next").get<std::int64_t>();
    for (const auto& tally : json.at("tallies")) {
      progress.tallies.push_back({.name = tally.at(0).get<std::string>(),
                                  .trials = tally.at(1).get<std::int64_t>(),
                                  .worst_ratio = tally.at(2).get<double>(),
                                  .worst_trial = tally.at(3).get<std::int64_t>(),
                                  .worst_ratio_one_token = tally.at(4).get<double>(),
                                  .worst_trial_one_token = tally.at(5).get<std::int64_t>()});
      static_cast<void>(find_entry(progress.tallies.back().name));
    }
  } catch (const nlohmann::json::exception& e) {
    throw std::runtime_error(fmt::format("{}: malformed: {}", path.string(), e.what()));
  } catch (const std::invalid_argument& e) {
    throw std::runtime_error(fmt::format("{}: malformed: {}", path.string(), e.what()));
  }
  const auto fresh = falsify(options, 0, 0);
  bool sound = progress.next >= 0 && progress.tallies.size() == fresh.size();
  for (std::size_t e = 0; sound && e < fresh.size(); ++e) {
    const FalsifyTally& t = progress.tallies[e];
    const auto ratio = [](double r) { return r >= 0.0 && std::isfinite(r); };
    const auto trial = [&](std::int64_t k) { return k >= -1 && k < progress.next; };
    sound = t.name == fresh[e].name && t.trials >= 0 && t.trials <= progress.next &&
            ratio(t.worst_ratio) && ratio(t.worst_ratio_one_token) && trial(t.worst_trial) &&
            trial(t.worst_trial_one_token);
  }
  if (!sound) {
    throw std::runtime_error(fmt::format(
        "{}: it is no state of this run: an entry or a number is out of place", path.string()));
  }
  return progress;
}

Table falsify_table(const std::vector<FalsifyTally>& tallies) {
  Table table{{"bound", "norm", "domain", "kind", "trials", "worst_ratio_estimate", "worst_trial",
               "one_token_ratio_estimate", "status"},
              {}};
  for (const FalsifyTally& tally : tallies) {
    const CatalogEntry& entry = find_entry(tally.name);
    const bool violated = tally.worst() > 1.0 + measurement_error;
    table.rows.push_back({tally.name, std::string(to_string(entry.norm)),
                          std::string(to_string(entry.domain)), std::string(to_string(entry.kind)),
                          std::int64_t{tally.trials}, tally.worst_ratio,
                          tally.worst_trial < 0 ? Cell() : Cell(std::int64_t{tally.worst_trial}),
                          tally.worst_ratio_one_token,
                          std::string(violated            ? "violated"
                                      : tally.trials == 0 ? "never compared"
                                                          : "not violated")});
  }
  return table;
}

}  // namespace lipsa
