#include "lipsa/train/adam.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/check.hpp"
#include "core/input_file.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/core/parameter_file.hpp"

namespace lipsa {
namespace {

/// A stretch of one of the arrays: what a thread takes at once.
struct Stretch {
  std::size_t array;
  Index first;
  Index count;
};

template <class Arrays>
std::vector<Stretch> stretches(const Arrays& arrays) {
  constexpr Index longest = 16384;
  std::vector<Stretch> list;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    for (Index first = 0; first < arrays[k].values.size(); first += longest) {
      list.push_back({k, first, std::min(longest, arrays[k].values.size() - first)});
    }
  }
  return list;
}

/// The Euclidean norm of all gradients together, of any size, by stretches in their order. Not
/// finite when one of them is not.
double norm_of(const std::vector<ConstParameter>& gradients, const std::vector<Stretch>& parts) {
  std::vector<double> of_part(parts.size());
  const auto for_parts = [&](const auto& value) {
    parallel_for(static_cast<Index>(parts.size()), [&](Index k) {
      const Stretch& part = parts[static_cast<std::size_t>(k)];
      of_part[static_cast<std::size_t>(k)] =
          value(gradients[part.array].values.segment(part.first, part.count));
    });
  };
  for_parts([](const auto& g) {
    return g.allFinite() ? g.cwiseAbs().maxCoeff() : std::numeric_limits<double>::quiet_NaN();
  });
  double largest = 0.0;
  for (const double x : of_part) {
    largest = x <= largest ? largest : x;  // NaN is kept
    if (std::isnan(largest)) {
      return largest;
    }
  }
  if (largest == 0.0) {
    return 0.0;
  }
  const double scale = std::ldexp(1.0, std::min(1000, -std::ilogb(largest)));
  for_parts([&](const auto& g) { return (g * scale).squaredNorm(); });
  double sum = 0.0;
  for (const double x : of_part) {
    sum += x;
  }
  return std::sqrt(sum) / scale;
}

}  // namespace

double learning_rate(const LearningRate& rate, Index step) {
  require(step >= 1, "learning_rate: step must be at least 1, got {}", step);
  require(rate.gamma > 0.0 && std::isfinite(rate.gamma),
          "learning_rate: gamma must be above 0 and finite, got {}", rate.gamma);
  if (rate.kind == LearningRate::Kind::fixed) {
    return rate.gamma;
  }
  require(rate.width >= 1 && rate.warm_up >= 1,
          "learning_rate: width and warm_up must be at least 1, got {} and {}", rate.width,
          rate.warm_up);
  const auto t = static_cast<double>(step);
  const auto w = static_cast<double>(rate.warm_up);
  return rate.gamma / std::sqrt(static_cast<double>(rate.width)) *
         std::min(1.0 / std::sqrt(t), t / (w * std::sqrt(w)));
}

Adam::Adam(const std::vector<ConstParameter>& arrays, const AdamOptions& options)
    : options_(options) {
  const auto decay = [](double beta) { return beta >= 0.0 && beta < 1.0; };
  require(decay(options.beta1) && decay(options.beta2),
          "Adam: beta1 and beta2 must be from 0 below 1, got {} and {}", options.beta1,
          options.beta2);
  require(options.epsilon > 0.0 && std::isfinite(options.epsilon),
          "Adam: epsilon must be above 0 and finite, got {}", options.epsilon);
  require(options.clip_norm > 0.0, "Adam: clip_norm must be above 0, got {}", options.clip_norm);
  moments_.reserve(arrays.size());
  for (const ConstParameter& array : arrays) {
    const Index size = array.values.size();
    moments_.push_back({array.name, array.shape, Vector::Zero(size), Vector::Zero(size)});
  }
}

AdamStep Adam::step(const std::vector<Parameter>& arrays,
                    const std::vector<ConstParameter>& gradients, double rate) {
  require(rate >= 0.0 && std::isfinite(rate), "Adam: rate must be from 0 and finite, got {}", rate);
  const auto require_fit = [&](std::string_view what, const auto& list) {
    require(list.size() == moments_.size(), "Adam: {} must be {} arrays as at the start, got {}",
            what, moments_.size(), list.size());
    for (std::size_t k = 0; k < list.size(); ++k) {
      require(list[k].name == moments_[k].name && list[k].shape == moments_[k].shape,
              "Adam: {} must have names and shapes as at the start, got {} instead of {}, or of "
              "another shape",
              what, list[k].name, moments_[k].name);
    }
  };
  require_fit("parameters", arrays);
  require_fit("gradients", gradients);

  const std::vector<Stretch> parts = stretches(gradients);
  AdamStep result{.gradient_norm = norm_of(gradients, parts)};
  const double used = std::min(result.gradient_norm, options_.clip_norm);
  if (!std::isfinite(result.gradient_norm) || !std::isfinite(used * used)) {
    return result;
  }
  const bool clip = result.gradient_norm > options_.clip_norm;
  const auto t = static_cast<double>(++steps_);
  const double scale_m = 1.0 / (1.0 - std::pow(options_.beta1, t));
  const double scale_v = 1.0 / (1.0 - std::pow(options_.beta2, t));
  parallel_for(static_cast<Index>(parts.size()), [&](Index k) {
    const Stretch& part = parts[static_cast<std::size_t>(k)];
    const double* const g = gradients[part.array].values.data() + part.first;
    Eigen::Map<Vector> values = arrays[part.array].values;
    double* const x = values.data() + part.first;
    double* const m = moments_[part.array].m.data() + part.first;
    double* const v = moments_[part.array].v.data() + part.first;
    for (Index i = 0; i < part.count; ++i) {
      const double gi = clip ? g[i] / result.gradient_norm * options_.clip_norm : g[i];
      m[i] = options_.beta1 * m[i] + (1.0 - options_.beta1) * gi;
      v[i] = options_.beta2 * v[i] + (1.0 - options_.beta2) * gi * gi;
      x[i] -= rate * (m[i] * scale_m) / (std::sqrt(v[i] * scale_v) + options_.epsilon);
    }
  });
  result.taken = true;
  return result;
}

void Adam::store(Safetensors& file, const std::string& prefix) const {
  std::vector<ConstParameter> list;
  for (const Moments& moments : moments_) {
    const auto add = [&](const char* which, const Vector& values) {
      list.push_back({which + moments.name, moments.shape, {values.data(), values.size()}});
    };
    add("m.", moments.m);
    add("v.", moments.v);
  }
  const Vector steps = Vector::Constant(1, static_cast<double>(steps_));
  list.push_back({"steps", {}, {steps.data(), 1}});
  store_parameters(file, prefix, list);
}

void Adam::load(const Safetensors& file, const std::string& prefix) {
  std::vector<Moments> moments = moments_;
  Vector steps(1);
  std::vector<Parameter> list{{"steps", {}, {steps.data(), 1}}};
  for (Moments& array : moments) {
    list.push_back({"m." + array.name, array.shape, {array.m.data(), array.m.size()}});
    list.push_back({"v." + array.name, array.shape, {array.v.data(), array.v.size()}});
  }
  load_parameters(file, prefix, list);
  const auto refuse = [&](const std::string& name, std::string_view expected, double found) {
    malformed(file.origin.empty() ? "safetensors" : file.origin,
              "tensor {:?}: expected {}, found {}", prefix + name, expected, found);
  };
  if (!(steps(0) >= 0.0 && steps(0) < 0x1p53 && steps(0) == std::floor(steps(0)))) {
    refuse("steps", "a whole number from 0", steps(0));
  }
  for (const Moments& array : moments) {
    if (array.v.size() > 0 && array.v.minCoeff() < 0.0) {
      refuse("v." + array.name, "squares", array.v.minCoeff());
    }
  }
  moments_ = std::move(moments);
  steps_ = static_cast<Index>(steps(0));
}

}  // namespace lipsa
