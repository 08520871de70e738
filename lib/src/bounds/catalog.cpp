#include "lipsa/bounds/catalog.hpp"

#include <algorithm>
#include <cmath>

#include "bounds/context.hpp"
#include "core/check.hpp"

namespace lipsa {
MaskFacts mask_facts(const Mask& mask, Index tokens) {
  if (mask.kind() != Mask::Kind::arbitrary) {
    return {
        .most_seen = tokens, .most_seeing = tokens, .most_others = tokens - 1, .mixes = tokens > 1};
  }
  MaskFacts facts;
  std::vector<Index> seeing(static_cast<std::size_t>(tokens), 0);
  for (Index i = 0; i < tokens; ++i) {
    Index seen = 0;
    for (Index j = 0; j < tokens; ++j) {
      seen += mask.visible(i, j) ? 1 : 0;
      seeing[static_cast<std::size_t>(j)] += mask.visible(i, j) ? 1 : 0;
    }
    const bool itself = mask.visible(i, i);
    facts.most_seen = std::max(facts.most_seen, seen);
    facts.mixes = facts.mixes || (itself && seen > 1);
    if (seen > 0 && !itself && facts.hidden_from_itself < 0) {
      facts.hidden_from_itself = i;
    }
  }
  facts.most_seeing = *std::max_element(seeing.begin(), seeing.end());
  for (Index j = 0; j < tokens; ++j) {
    const Index others = seeing[static_cast<std::size_t>(j)] - (mask.visible(j, j) ? 1 : 0);
    facts.most_others = std::max(facts.most_others, others);
  }
  return facts;
}

std::string hidden_token(const BoundContext& context) {
  const Index hidden = context.mask().hidden_from_itself;
  return hidden < 0 ? "" : fmt::format("token {} sees other tokens and not itself", hidden);
}

std::string masked(const BoundContext& context) {
  return context.setting().mask.kind() == Mask::Kind::none ? ""
                                                           : "it speaks of attention without masks";
}

std::string biased(const BoundContext& context) {
  return context.layer().b_Q.isZero(0.0) ? "" : "it speaks of scores without biases, b_Q is not 0";
}

namespace {

/// Squares of products of such numbers stay far from overflow.
constexpr double largest_coordinate = 1e100;

std::string too_large(const Matrix& x) {
  return x.cwiseAbs().maxCoeff() > largest_coordinate ? "a coordinate of X is above 1e100" : "";
}

/// Why the domain asked about is not one the entry speaks of; empty when it is.
std::string outside(const BoundSetting& setting, Domain domain) {
  switch (domain) {
    case Domain::everywhere:
      return "";
    case Domain::token_ball:
      return std::isfinite(setting.radius) ? "" : "it needs a finite radius";
    case Domain::around_point:
    case Domain::from_point:
      return setting.x == nullptr ? "it needs tokens X" : too_large(*setting.x);
    case Domain::point:
      return setting.x == nullptr    ? "it needs tokens X"
             : setting.around == 0.0 ? too_large(*setting.x)
             : setting.around != 0.0 ? "it speaks of X alone, not of what lies around it"
                                     : "";
  }
  return "";
}

Bound evaluated(const CatalogEntry& entry, const BoundContext& context) {
  const BoundSetting& setting = context.setting();
  const AttentionKind kind = setting.layer.kind;
  std::string reason = outside(setting, entry.domain);
  if (entry.subject == Subject::attention && kind != entry.attention) {
    reason = fmt::format("it speaks of {} attention, the layer is {}", to_string(entry.attention),
                         to_string(kind));
  } else if (entry.subject == Subject::softmax && kind == AttentionKind::sigmoid) {
    reason = "sigmoid attention has no softmax";
  } else if (entry.subject == Subject::normalisation && setting.normalisation == nullptr) {
    reason = "it needs a normalisation";
  }
  const Evaluation evaluation = reason.empty() ? entry.formula(context) : fails(std::move(reason));
  const bool refuted = !entry.refutation.empty();
  Bound bound{.name = std::string(entry.name),
              .subject = entry.subject,
              .norm = entry.norm,
              .domain = entry.domain,
              .holds = evaluation.holds && !refuted,
              .refuted = refuted,
              .reason = evaluation.reason,
              .source = std::string(entry.source),
              .proof = std::string(entry.proof),
              .kind = entry.kind,
              .statement = std::string(entry.statement)};
  if (refuted && evaluation.holds) {
    bound.reason = fmt::format("refuted: {}", entry.refutation);
  }
  if (evaluation.value) {
    bound.value = evaluation.value->value();
    bound.log10_value = evaluation.value->log10_value();
  }
  return bound;
}

}  // namespace

Bound CatalogEntry::evaluate(const BoundSetting& setting) const {
  return evaluated(*this, BoundContext(setting));
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

std::vector<Bound> bounds_for(const BoundSetting& setting, Norm norm, Subject subject) {
  const BoundContext context(setting);
  std::vector<Bound> bounds;
  for (const CatalogEntry& entry : catalog()) {
    const bool speaks = subject != Subject::attention || entry.attention == setting.layer.kind;
    if (entry.subject == subject && speaks && entry.norm == norm) {
      bounds.push_back(evaluated(entry, context));
    }
  }
  return bounds;
}

std::vector<std::optional<Bound>> evaluate_entries(const BoundSetting& setting,
                                                   std::span<const CatalogEntry* const> entries,
                                                   Domain domain) {
  const BoundContext context(setting);
  std::vector<std::optional<Bound>> bounds(entries.size());
  for (std::size_t e = 0; e < entries.size(); ++e) {
    if (entries[e]->attention == setting.layer.kind && entries[e]->domain == domain) {
      bounds[e] = evaluated(*entries[e], context);
    }
  }
  return bounds;
}

Bound best_bound(const BoundSetting& setting, Norm norm) {
  Bound best{.norm = norm, .reason = "no bound of the catalogue holds"};
  for (Bound& bound : bounds_for(setting, norm)) {
    if (bound.domain == Domain::from_point && setting.around > 0.0) {
      continue;  // what starts at x says nothing of pairs elsewhere in the ball
    }
    if (!bound.holds) {
      if (!best.holds && !bound.refuted) {
        best.reason += fmt::format("; {}: {}", bound.name, bound.reason);
      }
    } else if (!best.holds || bound.log10_value < best.log10_value) {
      best = std::move(bound);
    }
  }
  return best;
}

}  // namespace lipsa
