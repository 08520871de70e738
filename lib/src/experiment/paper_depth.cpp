#include "experiment/paper_depth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "experiment/paper_parts.hpp"
#include "lipsa/experiment/depth_study_plot.hpp"

namespace lipsa {
namespace {

std::string name_of(LanguageModelKind model) {
  return settings({.model = model}).front().value;
}

/// The cells of a model at a depth, over the seeds.
struct Group {
  Index trained = 0;  ///< below the loss of counted characters
  Index cells = 0;
  double sum = 0.0;  ///< of the losses of those that trained
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  bool all_trained() const { return trained == cells; }
  double mean() const { return sum / static_cast<double>(trained); }
};

using Groups = std::map<std::pair<std::string, Index>, Group>;

/// In the order of the study.
std::vector<std::string> models_of(const DepthStudyResult& result) {
  std::vector<std::string> models;
  for (const DepthStudyCell& cell : result.cells) {
    if (std::find(models.begin(), models.end(), name_of(cell.model)) == models.end()) {
      models.push_back(name_of(cell.model));
    }
  }
  return models;
}

Groups groups_of(const DepthStudyResult& result) {
  Groups groups;
  for (const DepthStudyCell& cell : result.cells) {
    Group& group = groups[{name_of(cell.model), cell.depth}];
    group.cells += 1;
    if (cell.status == "done") {
      group.trained += 1;
      group.sum += cell.test.nats;
      group.least = std::min(group.least, cell.test.nats);
      group.most = std::max(group.most, cell.test.nats);
    }
  }
  return groups;
}

/// The deepest study of a model of which every seed trained, all shallower ones too; 0: none.
Index deepest_trained(const Groups& groups, const std::string& model) {
  Index deepest = 0;
  for (const auto& [key, group] : groups) {  // by depth
    if (key.first != model) {
      continue;
    }
    if (!group.all_trained()) {
      break;
    }
    deepest = key.second;
  }
  return deepest;
}

/// "Table 1,test loss of dot with 2 layers": the model and the depth; nothing of other facts.
std::optional<std::pair<std::string, Index>> cell_of(const PaperFact& fact) {
  constexpr std::string_view begin = "test loss of ";
  const std::size_t with = fact.quantity.find(" with ");
  if (!fact.quantity.starts_with(begin) || with == std::string::npos) {
    return {};
  }
  return std::pair{fact.quantity.substr(begin.size(), with - begin.size()),
                   static_cast<Index>(std::strtol(fact.quantity.c_str() + with + 6, nullptr, 10))};
}

/// "agrees" when all do, "does not agree" when none does.
std::string agreement_of(Index agreeing, Index all) {
  return all == 0          ? std::string("not tested")
         : agreeing == all ? std::string("agrees")
         : agreeing == 0   ? std::string("does not agree")
                           : fmt::format("agrees in {} of {}", agreeing, all);
}

Agreement fails_beyond_10(const PaperFact& fact, const Groups& groups) {
  Index deeper = 0;
  Index failing = 0;
  Index without = 0;
  for (const auto& [key, group] : groups) {
    if (key.first == "dot" && key.second > 10) {
      deeper += 1;
      failing += group.all_trained() ? 0 : 1;
      without += group.trained == 0 ? 1 : 0;
    }
  }
  return {.fact = fact,
          .ours = fmt::format("of {} depths beyond 10, no seed trains at {}, not every seed at {}",
                              deeper, without, failing),
          .kind = "estimate",
          .agreement = agreement_of(failing, deeper)};
}

Agreement trains_at_18(const PaperFact& fact, const Groups& groups) {
  Index cells = 0;
  Index trained = 0;
  for (const char* model : {"l2", "contractive-l2"}) {
    const auto group = groups.find({model, 18});
    if (group == groups.end()) {
      return not_tested(fact);
    }
    cells += group->second.cells;
    trained += group->second.trained;
  }
  return {.fact = fact,
          .ours = fmt::format("{} of {} models of 18 blocks", trained, cells),
          .kind = "estimate",
          .agreement = agreement_of(trained, cells)};
}

/// The mean loss of a model at a depth; NaN when it is not there or a seed did not train.
double loss_of(const Groups& groups, const std::string& model, Index depth) {
  const auto group = groups.find({model, depth});
  return group != groups.end() && group->second.all_trained() ? group->second.mean() : std::nan("");
}

/// Never "-0.000".
std::string thousandths(double x) {
  return fmt::format("{:.3f}", std::round(x * 1e3) / 1e3 + 0.0);
}

/// At how many of the depths where both trained `property` holds of the two losses.
template <class F>
Agreement compare(const PaperFact& fact, const Groups& groups, const std::string& model,
                  const std::string& other, std::string_view words, const F& property) {
  Index all = 0;
  Index holding = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (const auto& [key, group] : groups) {
    const double a = key.first == model ? loss_of(groups, model, key.second) : std::nan("");
    const double b = loss_of(groups, other, key.second);
    if (std::isnan(a) || std::isnan(b)) {
      continue;
    }
    all += 1;
    holding += property(a, b) ? 1 : 0;
    least = std::min(least, a - b);
    most = std::max(most, a - b);
  }
  if (all == 0) {
    return {.fact = fact, .ours = std::string("not in this study"), .agreement = "not tested"};
  }
  return {.fact = fact,
          .ours = fmt::format("{} {} {} at {} of {} depths: by {} to {}", model, words, other,
                              holding, all, thousandths(least), thousandths(most)),
          .kind = "estimate",
          .agreement = agreement_of(holding, all)};
}

/// Whether a model deeper than `depth` trained with any seed.
bool any_trained_beyond(const Groups& groups, const std::string& model, Index depth) {
  return std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
    return group.first.first == model && group.first.second > depth && group.second.trained > 0;
  });
}

bool beats_pairs(const DepthStudyResult& result, const std::string& model) {
  return std::any_of(result.cells.begin(), result.cells.end(), [&](const DepthStudyCell& cell) {
    return name_of(cell.model) == model && cell.status == "done" && cell.test.nats < result.bigram;
  });
}

constexpr double alike = 0.02;   // of the loss: "like"
constexpr double little = 0.10;  // of the loss: "slightly", "a little"

/// Dot-product attention of 3 to 5 layers against the best LSTM of any depth.
Agreement against_lstm(const PaperFact& fact, const Groups& groups) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [key, group] : groups) {
    if (key.first == "lstm" && group.trained > 0) {
      best = std::min(best, group.least);
    }
  }
  Index all = 0;
  Index better = 0;
  double loss = std::numeric_limits<double>::infinity();
  for (Index depth = 3; depth <= 5; ++depth) {
    const double mean = loss_of(groups, "dot", depth);
    if (!std::isnan(mean)) {
      all += 1;
      better += mean < best && mean > (1.0 - little) * best ? 1 : 0;
      loss = std::min(loss, mean);
    }
  }
  if (all == 0 || !std::isfinite(best)) {
    return {.fact = fact, .ours = std::string("not in this study"), .agreement = "not tested"};
  }
  return {.fact = fact,
          .ours = fmt::format("better than the best LSTM, by less than 10 %, at {} of {} depths "
                              "from 3 to 5: {:.3f} at best against {:.3f}",
                              better, all, loss, best),
          .kind = "estimate",
          .agreement = agreement_of(better, all)};
}

Agreement lstm_loss(const PaperFact& fact, const Groups& groups) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [key, group] : groups) {
    if (key.first == "lstm" && group.all_trained()) {
      best = std::min(best, group.mean());
    }
  }
  if (std::isinf(best)) {
    return {.fact = fact, .ours = std::string("not in this study"), .agreement = "not tested"};
  }
  return {.fact = fact, .ours = best, .kind = "estimate", .agreement = "another setting"};
}

/// Whether each depth is better than the one before, in the mean over seeds, and the last better
/// than the first by more than seeds differ.
Agreement improves(const PaperFact& fact, const DepthStudyResult& result,
                   const std::string& model) {
  const Groups groups = groups_of(result);
  std::vector<double> losses;
  double spread = 0.0;
  for (const auto& [key, group] : groups) {  // by depth
    if (key.first == model && group.all_trained()) {
      losses.push_back(group.mean());
      spread = std::max(spread, group.most - group.least);
    }
  }
  if (losses.size() < 2) {
    return {.fact = fact, .ours = std::string("not in this study"), .agreement = "not tested"};
  }
  Index better = 0;
  for (std::size_t k = 1; k < losses.size(); ++k) {
    better += losses[k] < losses[k - 1] ? 1 : 0;
  }
  const auto steps = static_cast<Index>(losses.size()) - 1;
  return {.fact = fact,
          .ours = fmt::format(
              "{:.3f} at the least depth, {:.3f} at the most; better in {} of {} "
              "steps between; seeds differ by up to {:.3f}{}",
              losses.front(), losses.back(), better, steps, spread,
              beats_pairs(result, model) ? "" : "; never better than counted pairs of characters"),
          .kind = "estimate",
          .agreement = losses.front() - losses.back() > spread ? agreement_of(better, steps)
                                                               : "does not agree"};
}

}  // namespace

Table depth_loss_table(const DepthStudyResult& result) {
  const Groups groups = groups_of(result);
  Table table{{"model", "depth", "seeds", "trained", "test_loss_estimate",
               "test_loss_estimate_least", "test_loss_estimate_most", "status"},
              {}};
  for (const std::string& model : models_of(result)) {
    for (const auto& [key, group] : groups) {
      if (key.first != model) {
        continue;
      }
      const bool any = group.trained > 0;
      table.rows.push_back({model, std::int64_t{key.second}, std::int64_t{group.cells},
                            std::int64_t{group.trained}, any ? Cell(group.mean()) : Cell(),
                            any ? Cell(group.least) : Cell(), any ? Cell(group.most) : Cell(),
                            std::string(group.all_trained() ? "trained"
                                        : any               ? "some seeds did not train"
                                                            : "did not train")});
    }
  }
  return table;
}

std::vector<Agreement> depth_agreements(const std::vector<PaperFact>& facts,
                                        const DepthStudyResult& result) {
  const Groups groups = groups_of(result);
  std::vector<Agreement> list;
  for (const PaperFact& fact : facts) {
    if (fact.quantity == "dot-product attention at a fixed rate") {
      list.push_back(fails_beyond_10(fact, groups));
      continue;
    }
    if (fact.quantity == "L2 and contractive L2 at a fixed rate") {
      list.push_back(trains_at_18(fact, groups));
      continue;
    }
    const auto cell = cell_of(fact);
    const auto group = cell ? groups.find(*cell) : groups.end();
    if (group == groups.end()) {
      continue;
    }
    const bool theirs = fact.as_printed != "-";
    const bool ours = group->second.all_trained();
    list.push_back({.fact = fact,
                    .ours = group->second.trained > 0 ? Cell(group->second.mean())
                                                      : Cell(std::string("did not train")),
                    .kind = group->second.trained > 0 ? "estimate" : "",
                    .agreement = theirs && ours ? "both train"
                                 : ours         ? "only ours trains"
                                 : theirs       ? fmt::format("theirs trains, {} of our {} seeds",
                                                              group->second.trained, group->second.cells)
                                                : "neither trains"});
  }
  return list;
}

std::vector<Agreement> figure_4_agreements(const std::vector<PaperFact>& facts,
                                           const DepthStudyResult& result) {
  const Groups groups = groups_of(result);
  const auto above = [](double a, double b) { return a > b; };
  constexpr std::array<std::string_view, 2> scaled{"batch and H and D", "learning rate"};
  constexpr std::array<std::string_view, 3> others{"corpus", "dropout", "initialisation"};
  std::vector<Agreement> list;
  for (const PaperFact& fact : facts) {
    if (fact.quantity == "dot-product attention at 3 to 5 layers") {
      list.push_back(against_lstm(fact, groups));
    } else if (fact.quantity == "L2 untied") {
      list.push_back(compare(fact, groups, "l2-untied", "dot", "within 2 % of",
                             [](double a, double b) { return std::abs(a - b) <= alike * b; }));
    } else if (fact.quantity == "L2 tied") {
      list.push_back(compare(fact, groups, "l2", "l2-untied", "above, by less than 10 %,",
                             [](double a, double b) { return a > b && a < (1.0 + little) * b; }));
    } else if (fact.quantity == "contractive L2 at equal depth") {
      list.push_back(compare(fact, groups, "contractive-l2", "l2", "above", above));
    } else if (fact.quantity == "contractive L2 with depth") {
      list.push_back(improves(fact, result, "contractive-l2"));
    } else if (std::find(scaled.begin(), scaled.end(), fact.quantity) != scaled.end()) {
      list.push_back({.fact = fact, .ours = std::string("scaled"), .agreement = "another setting"});
    } else if (std::find(others.begin(), others.end(), fact.quantity) != others.end()) {
      list.push_back(
          {.fact = fact, .ours = std::string("another"), .agreement = "another setting"});
    } else if (fact.quantity == "test loss of the best LSTM") {
      list.push_back(lstm_loss(fact, groups));
    } else if (fact.quantity == "models" && models_of(result).size() == 5) {
      list.push_back(
          {.fact = fact, .ours = std::string("the same five"), .agreement = "same setting"});
    } else if (fact.quantity == "dot-product attention of more layers") {
      list.push_back({.fact = fact, .ours = std::string("see Table 1"), .agreement = "not tested"});
    } else {
      list.push_back(not_tested(fact));
    }
  }
  return list;
}

std::string figure_4_verdict(const std::vector<Agreement>& agreements) {
  std::string text;
  for (const Agreement& row : agreements) {
    if (row.agreement == "not tested" || row.agreement.ends_with("setting")) {
      continue;
    }
    text += fmt::format("{}{} ({}): {}", text.empty() ? "" : "; ", row.fact.quantity,
                        row.fact.as_printed, row.agreement);
  }
  return text.empty() ? std::string("Nothing to compare.") : "Claim by claim: " + text + ".";
}

std::string depth_verdict(const DepthStudyResult& result) {
  const Groups groups = groups_of(result);
  const std::vector<std::string> models = models_of(result);
  Index deepest_asked = 0;
  for (const auto& [key, group] : groups) {
    deepest_asked = std::max(deepest_asked, key.second);
  }
  std::string text;
  for (const std::string& model : models) {
    const Index deepest = deepest_trained(groups, model);
    text += fmt::format(
        "{}{} {}{}", text.empty() ? "" : "; ", model,
        deepest == deepest_asked ? fmt::format("trains to {} blocks", deepest)
        : deepest > 0
            ? fmt::format("trains to {} blocks, and beyond with {}", deepest,
                          any_trained_beyond(groups, model, deepest) ? "some seeds" : "no seed")
            : std::string("does not train with every seed"),
        beats_pairs(result, model) ? "" : ", never better than counted pairs of characters");
  }
  const auto studied = [&](const char* model) {
    return std::find(models.begin(), models.end(), model) != models.end();
  };
  const bool both = studied("dot") && studied("l2");
  const bool supports = both && deepest_trained(groups, "dot") < deepest_asked &&
                        deepest_trained(groups, "l2") == deepest_asked;
  return text + fmt::format(
                    ". The claim that dot-product attention fails where L2 attention trains "
                    "is {} at this scale.",
                    !both      ? "not tested"
                    : supports ? "seen"
                               : "not seen");
}

OutputVariance output_variance(const DepthStudyResult& result) {
  std::map<Index, std::map<LanguageModelKind, std::vector<double>>> variances;
  for (const DepthStudyCell& cell : result.cells) {
    if (cell.status == "done" && !cell.values.empty()) {
      const double deviation = cell.values.front().output_deviation;
      variances[cell.depth][cell.model].push_back(deviation * deviation);
    }
  }
  const auto mean = [](const std::vector<double>& list) {
    double sum = 0.0;
    for (const double x : list) {
      sum += x;
    }
    return sum / static_cast<double>(list.size());
  };
  OutputVariance found;
  for (const auto& [depth, by_model] : variances) {
    const auto dot = by_model.find(LanguageModelKind::dot);
    const auto l2 = by_model.find(LanguageModelKind::l2);
    if (dot != by_model.end() && l2 != by_model.end()) {
      const double ratio = mean(dot->second) / mean(l2->second);
      if (found.depth == 0) {
        found.depth = depth;
        found.ratio = ratio;
      } else {
        found.deeper += 1;
        found.least_deeper = std::fmin(found.least_deeper, ratio);
        found.most_deeper = std::fmax(found.most_deeper, ratio);
      }
    }
  }
  return found;
}

std::string output_verdict(const OutputVariance& found) {
  if (found.depth == 0 || !std::isfinite(found.ratio)) {
    return "Not computed: the study has no depth at which dot-product and tied L2 models trained.";
  }
  return fmt::format(
      "In models of {} {} the outputs of the first dot-product attention have {:.3g} times the "
      "variance of those of the first tied L2 attention: {}.{} By how much the paper's do is not "
      "known to us.",
      found.depth, found.depth == 1 ? "block" : "blocks", found.ratio,
      found.ratio > 1.0 ? "they vary more, as in the paper" : "they do not vary more",
      found.deeper == 0 ? std::string()
                        : fmt::format(" At {} greater depths it is {:.3g} to {:.3g} times.",
                                      found.deeper, found.least_deeper, found.most_deeper));
}

namespace {

/// Whether there is a study to show; the section says how it came about or why there is none.
bool has_study(ReportSection& section, const PaperTableOptions& options, const PaperStudy& study) {
  section.command = command_of(options, section.name, study.option);
  section.method = study.origin;
  section.verdict = "Not computed.";
  return study.result.has_value();
}

/// The columns of numbers that are measured, called estimates.
Table with_kinds(Table table) {
  for (std::string& column : table.columns) {
    if (column.find("test_") != std::string::npos ||
        column.find("deviation") != std::string::npos) {
      column += "_estimate";
    }
  }
  return table;
}

/// Of the cells of a study: tables and a figure, called NAME.
void add_losses(ReportSection& section, const std::string& name, const PaperStudy& study) {
  const DepthStudyResult& result = *study.result;
  section.method +=
      " Models of another size on another text than the paper's, so that losses do "
      "not compare; what trains, and the order of models, does. A model trains when it "
      "ends below the loss of counted characters.";
  section.tables.push_back({.name = name,
                            .caption = "Test loss in nats per character, the mean over seeds that "
                                       "trained.",
                            .table = depth_loss_table(result)});
  section.tables.push_back(
      {.name = name + "-cells",
       .caption = "Every training run.",
       .table = with_kinds(depth_study_table(result)),
       .shown = {"model", "depth", "seed", "test_loss_estimate", "unigram_test_loss_estimate",
                 "bigram_test_loss_estimate", "status"}});
  section.figures.push_back(
      {.name = name,
       .caption = "Test loss by depth: one mark per seed, lines through the means of all "
                  "seeds, also of those that did not train; a cross on the upper edge is a seed "
                  "that diverged, if any did.",
       .script = depth_study_gnuplot(result, name)});
}

}  // namespace

ReportSection section_figure_4(const PaperTableOptions& options) {
  ReportSection section{
      .name = "figure-4",
      .title = "Figure 4: five kinds of language models, scaled",
      .claim =
          "On the Penn Treebank by characters, dot-product attention of 3 to 5 layers is slightly "
          "better than the best LSTM; L2 attention is like it, tying costs a little, and "
          "contractive L2 attention is worse at equal depth and improves with depth."};
  const PaperStudy& study = options.shallow_study;
  if (!has_study(section, options, study)) {
    return section;
  }
  add_losses(section, "figure-4", study);
  std::vector<PaperFact> facts = facts_at(options, "Figure 4");
  const std::vector<PaperFact> clock = facts_at(options, "Wall clock");
  facts.insert(facts.end(), clock.begin(), clock.end());
  section.agreements = figure_4_agreements(facts, *study.result);
  section.verdict = figure_4_verdict(section.agreements);
  return section;
}

ReportSection section_table_1(const PaperTableOptions& options) {
  ReportSection section{
      .name = "table-1",
      .title = "Table 1: language models by depth at a fixed rate, scaled",
      .claim =
          "On the Penn Treebank by characters and at a fixed learning rate, Transformers with "
          "dot-product attention do not train beyond 10 layers; with tied L2 and contractive L2 "
          "attention they do, to 18."};
  const PaperStudy& study = options.depth_study;
  if (!has_study(section, options, study)) {
    return section;
  }
  add_losses(section, "table-1", study);
  section.agreements = depth_agreements(facts_at(options, "Table 1"), *study.result);
  section.verdict = depth_verdict(*study.result);
  return section;
}

ReportSection section_output_variance(const PaperTableOptions& options) {
  ReportSection section{
      .name = "output-variance",
      .title = "Spread of the outputs of trained attention layers",
      .claim =
          "The outputs of a trained one-layer dot-product attention vary much more than those "
          "of L2 attention."};
  const PaperStudy& study = options.depth_study;
  if (!has_study(section, options, study)) {
    return section;
  }
  const DepthStudyResult& result = *study.result;
  section.method += " Inputs and outputs of the attention layers at windows of the test text.";
  Table table{{"model", "depth", "seed", "input_deviation_estimate", "output_deviation_estimate",
               "output_variance_estimate", "status"},
              {}};
  for (const DepthStudyCell& cell : result.cells) {
    if (cell.values.empty()) {
      continue;
    }
    const AttentionValues& first = cell.values.front();
    table.rows.push_back({name_of(cell.model), std::int64_t{cell.depth},
                          static_cast<std::int64_t>(cell.seed), first.input_deviation,
                          first.output_deviation, first.output_deviation * first.output_deviation,
                          cell.status});
  }
  section.tables.push_back({.name = "output-variance",
                            .caption = "Standard deviation of what the first attention layer takes "
                                       "and gives.",
                            .table = std::move(table)});
  section.figures.push_back({.name = "attention-outputs",
                             .caption = "Densities of the outputs of attention layers in the "
                                        "shallowest models; each panel has its own scales.",
                             .script = attention_outputs_gnuplot(result)});
  const OutputVariance found = output_variance(result);
  section.verdict = output_verdict(found);
  for (const PaperFact& fact : facts_at(options, "Table 1")) {
    if (fact.quantity.find("outputs") != std::string::npos && std::isfinite(found.ratio)) {
      section.agreements.push_back(
          {.fact = fact,
           .ours = fmt::format("{:.3g} times the variance, {} {}", found.ratio, found.depth,
                               found.depth == 1 ? "block" : "blocks"),
           .kind = "estimate",
           .agreement = found.ratio > 1.0 ? "agrees: more" : "does not agree"});
    }
  }
  return section;
}

}  // namespace lipsa
