#include "common/list.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <stdexcept>

namespace lipsa::cli {
namespace {

constexpr double largest_count = 1e6;

[[noreturn]] void refuse(std::string_view option, std::string_view expected, std::string_view got) {
  throw std::invalid_argument(fmt::format("--{} must be {}, got '{}'", option, expected, got));
}

double parse_real(std::string_view option, std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value)) {
    refuse(option, "a number", text);
  }
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

/// first:last:step, or first:last:ratio with an x behind the ratio.
std::vector<double> parse_range(std::string_view option, const std::vector<std::string_view>& parts,
                                std::string_view text) {
  std::string_view step_text = parts[2];
  const bool geometric = step_text.ends_with('x');
  if (geometric) {
    step_text.remove_suffix(1);
  }
  const double first = parse_real(option, parts[0]);
  const double last = parse_real(option, parts[1]);
  const double step = parse_real(option, step_text);
  const bool proper =
      std::isfinite(first) && std::isfinite(last) && std::isfinite(step) &&
      (geometric ? first > 0.0 && last >= first && step > 1.0 : last >= first && step > 0.0);
  if (!proper) {
    refuse(option, "a rising range first:last:step or first:last:ratiox", text);
  }
  const double exact = geometric ? std::log(last / first) / std::log(step) : (last - first) / step;
  if (exact >= largest_count) {
    refuse(option, "a range of at most a million values", text);
  }
  const auto count = static_cast<Index>(std::floor(exact * (1.0 + 1e-12) + 1e-9));
  std::vector<double> values;
  for (Index k = 0; k <= count; ++k) {
    const auto steps = static_cast<double>(k);
    double value = geometric ? first * std::pow(step, steps) : first + steps * step;
    const double nearest = std::round(value);  // 10 and not 9.999999999999998
    value = std::abs(value - nearest) <= 1e-12 * std::abs(value) ? nearest : value;
    values.push_back(std::fmin(value, last));
  }
  return values;
}

}  // namespace

std::vector<std::string_view> parse_words(std::string_view option, std::string_view text) {
  auto words = split(text, ',');
  for (const std::string_view word : words) {
    if (word.empty()) {
      refuse(option, "words between commas", text);
    }
  }
  return words;
}

std::vector<double> parse_reals(std::string_view option, std::string_view text) {
  std::vector<double> values;
  for (const std::string_view part : split(text, ',')) {
    const auto range = split(part, ':');
    if (range.size() == 3) {
      const auto more = parse_range(option, range, part);
      values.insert(values.end(), more.begin(), more.end());
    } else if (range.size() == 1) {
      values.push_back(parse_real(option, part));
    } else {
      refuse(option, "numbers, first:last:step or first:last:ratiox", part);
    }
  }
  return values;
}

std::vector<Index> parse_indices(std::string_view option, std::string_view text) {
  std::vector<Index> values;
  for (const double value : parse_reals(option, text)) {
    if (value != std::floor(value) || std::abs(value) > 1e9) {
      refuse(option, "whole numbers up to 1e9", text);
    }
    values.push_back(static_cast<Index>(value));
  }
  return values;
}

}  // namespace lipsa::cli
