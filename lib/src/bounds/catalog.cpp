#include "lipsa/bounds/catalog.hpp"

#include <algorithm>
#include <cmath>

#include "bounds/entries.hpp"
#include "core/check.hpp"

namespace lipsa {
namespace {

void require_valid(const BoundSetting& setting) {
  require_valid(setting.layer);
  const Index made_for = setting.mask.tokens();
  require(setting.tokens >= 1, "BoundSetting: tokens must be at least 1, got {}", setting.tokens);
  require(made_for == 0 || made_for == setting.tokens,
          "BoundSetting: mask must be made for {} tokens, got {}", setting.tokens, made_for);
  require(setting.radius > 0.0, "BoundSetting: radius must be positive, got {}", setting.radius);
}

}  // namespace

MaskFacts mask_facts(const Mask& mask, Index tokens) {
  if (mask.kind() != Mask::Kind::arbitrary) {
    return {.most_seen = tokens, .mixes = tokens > 1};
  }
  MaskFacts facts;
  for (Index i = 0; i < tokens; ++i) {
    Index seen = 0;
    for (Index j = 0; j < tokens; ++j) {
      seen += mask.visible(i, j) ? 1 : 0;
    }
    const bool itself = mask.visible(i, i);
    facts.most_seen = std::max(facts.most_seen, seen);
    facts.mixes = facts.mixes || (itself && seen > 1);
    if (seen > 0 && !itself && facts.hidden_from_itself < 0) {
      facts.hidden_from_itself = i;
    }
  }
  return facts;
}

std::string hidden_token(const BoundSetting& setting) {
  const Index hidden = mask_facts(setting.mask, setting.tokens).hidden_from_itself;
  return hidden < 0 ? "" : fmt::format("token {} sees other tokens and not itself", hidden);
}

Bound CatalogEntry::evaluate(const BoundSetting& setting) const {
  require_valid(setting);
  const Evaluation evaluation =
      setting.layer.kind == attention
          ? formula(setting)
          : fails(fmt::format("it speaks of {} attention, the layer is {}", to_string(attention),
                              to_string(setting.layer.kind)));
  Bound bound{.name = std::string(name),
              .norm = norm,
              .domain = std::string(domain),
              .holds = evaluation.holds,
              .reason = evaluation.reason,
              .source = std::string(source),
              .kind = kind,
              .statement = std::string(statement)};
  if (evaluation.value) {
    bound.value = evaluation.value->value();
    bound.log10_value = evaluation.value->log10_value();
  }
  return bound;
}

std::span<const CatalogEntry> catalog() {
  static const std::vector<CatalogEntry> entries = all_entries();
  return entries;
}

const CatalogEntry& find_entry(std::string_view name) {
  std::string known;
  for (const CatalogEntry& entry : catalog()) {
    if (entry.name == name) {
      return entry;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.name);
  }
  throw std::invalid_argument(
      fmt::format("find_entry: name must be one of {}, got '{}'", known, name));
}

std::vector<Bound> bounds_for(const BoundSetting& setting, Norm norm) {
  require_valid(setting);
  std::vector<Bound> bounds;
  for (const CatalogEntry& entry : catalog()) {
    if (entry.attention == setting.layer.kind && entry.norm == norm) {
      bounds.push_back(entry.evaluate(setting));
    }
  }
  return bounds;
}

Bound best_bound(const BoundSetting& setting, Norm norm) {
  Bound best{.norm = norm, .reason = "no bound of the catalogue holds"};
  for (Bound& bound : bounds_for(setting, norm)) {
    if (!bound.holds || bound.kind == BoundKind::as_printed) {
      if (!best.holds && bound.kind != BoundKind::as_printed) {
        best.reason += fmt::format("; {}: {}", bound.name, bound.reason);
      }
    } else if (!best.holds || bound.log10_value < best.log10_value) {
      best = std::move(bound);
    }
  }
  return best;
}

}  // namespace lipsa
