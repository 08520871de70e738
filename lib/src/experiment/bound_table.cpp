#include "lipsa/experiment/bound_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/check.hpp"
#include "core/rounding.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/bounds/catalog.hpp"
#include "lipsa/search/ascent.hpp"
#include "lipsa/search/enclosure.hpp"
#include "lipsa/search/measure.hpp"

namespace lipsa {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double radius_of(const BoundQuestion& question) {
  if (!question.x || std::isfinite(question.radius)) {
    return question.radius;
  }
  double longest = std::numeric_limits<double>::min();
  for (Index i = 0; i < question.x->rows(); ++i) {
    longest = std::max(longest, upper_bound_norm_frobenius(question.x->row(i)));
  }
  return add_up(longest, question.around);
}

BoundSetting setting_of(const BoundQuestion& question, double radius) {
  return {.layer = question.layer,
          .mask = question.mask,
          .tokens = question.x ? question.x->rows() : question.tokens,
          .radius = radius,
          .x = question.x ? &*question.x : nullptr,
          .around = question.around,
          .normalisation = question.normalisation ? &*question.normalisation : nullptr};
}

void measure(const BoundQuestion& question, BoundAnswer& answer) {
  if (question.subject != Subject::attention) {
    answer.status = std::string("not measured");
    return;
  }
  if (question.x) {
    const LocalNorm local = local_norm(question.layer, *question.x, question.mask, question.norm);
    answer.local_norm = local.estimate;
    answer.residual = local.residual;
    answer.lower_bound = local.lower_bound;
    answer.lower_bound_source = std::string("x");
    answer.status = local.status;
    return;
  }
  if (question.restarts == 0) {
    answer.status = std::string("not measured");
    return;
  }
  const Ascent ascent = maximise_local_norm(question.layer, question.mask, question.tokens,
                                            {.norm = question.norm,
                                             .restarts = question.restarts,
                                             .radius = answer.radius,
                                             .seed = question.seed});
  answer.lower_bound = ascent.best().lower_bound;
  answer.lower_bound_source = ascent.best().source;
  answer.status = to_string(ascent.best().termination);
}

Cell number(double x) {
  return std::isnan(x) ? Cell() : Cell(x);
}

}  // namespace

BoundAnswer answer(const BoundQuestion& question) {
  BoundAnswer answer{.radius = radius_of(question)};
  const BoundSetting setting = setting_of(question, answer.radius);
  answer.bounds = bounds_for(setting, question.norm, question.subject);
  std::stable_sort(answer.bounds.begin(), answer.bounds.end(), [](const Bound& a, const Bound& b) {
    return a.holds != b.holds ? a.holds : a.holds && a.log10_value < b.log10_value;
  });
  for (const Bound& bound : answer.bounds) {
    const auto certified =
        question.certify && bound.holds ? certified_bound(setting, bound.name) : std::nullopt;
    answer.certified.push_back(certified.value_or(nan));
  }
  measure(question, answer);
  return answer;
}

Table bound_table(const BoundAnswer& answer) {
  Table table{{"bound", "upper_bound", "upper_bound_log10", "certified_upper_bound", "ratio",
               "refuted_value", "domain", "kind", "status", "proof", "source"},
              {}};
  for (std::size_t k = 0; k < answer.bounds.size(); ++k) {
    const Bound& bound = answer.bounds[k];
    const bool comparable = bound.holds && answer.lower_bound > 0.0;
    table.rows.push_back({bound.name, bound.holds ? number(bound.value) : Cell(),
                          bound.holds ? number(bound.log10_value) : Cell(),
                          number(answer.certified[k]),
                          comparable ? number(bound.value / answer.lower_bound) : Cell(),
                          bound.refuted ? number(bound.value) : Cell(),
                          std::string(to_string(bound.domain)), std::string(to_string(bound.kind)),
                          bound.holds && bound.reason.empty() ? std::string("holds") : bound.reason,
                          bound.proof, bound.source});
  }
  return table;
}

Table block_table(const BoundQuestion& question, BlockKind block, const Normalisation& norm) {
  const Index D = question.layer.width();
  require(question.layer.output_width() == D,
          "block_table: the layer must map {} features to as many, got {}", D,
          question.layer.output_width());
  require(block == BlockKind::residual || norm.width == D,
          "block_table: the normalisation must be {} wide, got {}", D, norm.width);
  BoundQuestion inner = question;
  double radius = radius_of(question);
  if (block == BlockKind::pre_norm) {  // attention sees what the normalisation gives, at no X known
    radius = normalisation_radius(norm).value();
    inner.x.reset();
    inner.around = 0.0;
    inner.tokens = question.x ? question.x->rows() : question.tokens;
  }
  const Bound best = best_bound(setting_of(inner, radius), question.norm);
  const UpRounded attention =
      best.holds ? UpRounded(best.value) : UpRounded(std::numeric_limits<double>::infinity());
  const UpRounded normalisation = normalisation_lipschitz(norm, question.norm);
  const bool known = best.holds && std::isfinite(best.value);

  Table table{{"component", "bound", "upper_bound", "upper_bound_log10", "status"}, {}};
  const auto add = [&](std::string component, std::string name, const UpRounded& value, bool finite,
                       std::string status) {
    table.rows.push_back({std::move(component), std::move(name),
                          finite ? Cell(value.value()) : Cell(),
                          finite ? Cell(value.log10_value()) : Cell(), std::move(status)});
  };
  const std::string name = norm.kind == Normalisation::Kind::layer_norm ? "LayerNorm" : "RMSNorm";
  const std::string failure =
      known ? "holds"
      : best.holds && best.reason.empty()
          ? fmt::format("beyond double: log10 of the attention is {}", best.log10_value)
          : best.reason;
  if (block == BlockKind::pre_norm) {
    add(name, "normalisation_lipschitz", normalisation, true, "holds");
  }
  add(fmt::format("attention, |x_i|_2 <= {}", radius), best.name, attention, known, failure);
  const UpRounded branch = block == BlockKind::pre_norm ? attention * normalisation : attention;
  const UpRounded sum = residual_lipschitz(branch);
  add("residual", "1 + L", sum, known, failure);
  if (block == BlockKind::post_norm) {
    add(name, "normalisation_lipschitz", normalisation, true, "holds");
  }
  add("block", "product", block == BlockKind::post_norm ? sum * normalisation : sum, known,
      failure);
  return table;
}

}  // namespace lipsa
