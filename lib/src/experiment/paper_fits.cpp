#include "experiment/paper_fits.hpp"

#include <algorithm>

namespace lipsa {
namespace {

using Points = std::vector<std::pair<double, double>>;

double mean_of(const Points& points, double std::pair<double, double>::*part) {
  double sum = 0.0;
  for (const auto& point : points) {
    sum += point.*part;
  }
  return sum / static_cast<double>(points.size());
}

template <class Curve>
double r_squared(const Points& points, const Curve& curve) {
  const double mean = mean_of(points, &std::pair<double, double>::second);
  double left = 0.0;
  double total = 0.0;
  for (const auto& [x, y] : points) {
    left += (y - curve(x)) * (y - curve(x));
    total += (y - mean) * (y - mean);
  }
  return points.size() >= 3 && total > 0.0 ? 1.0 - left / total
                                           : std::numeric_limits<double>::quiet_NaN();
}

PowerFit with_exponent(const Points& points, double exponent) {
  double xy = 0.0;
  double xx = 0.0;
  for (const auto& [x, y] : points) {
    const double power = std::pow(x, exponent);
    xy += power * y;
    xx += power * power;
  }
  PowerFit fit{.exponent = exponent, .factor = xy / xx};
  fit.r_squared =
      r_squared(points, [&](double x) { return fit.factor * std::pow(x, fit.exponent); });
  return fit;
}

}  // namespace

LineFit fit_line(const Points& points) {
  if (points.size() < 2) {
    return {};
  }
  const double x_mean = mean_of(points, &std::pair<double, double>::first);
  const double y_mean = mean_of(points, &std::pair<double, double>::second);
  double xy = 0.0;
  double xx = 0.0;
  for (const auto& [x, y] : points) {
    xy += (x - x_mean) * (y - y_mean);
    xx += (x - x_mean) * (x - x_mean);
  }
  LineFit fit{.slope = xy / xx, .intercept = y_mean - xy / xx * x_mean};
  fit.r_squared = r_squared(points, [&](double x) { return fit.slope * x + fit.intercept; });
  return fit;
}

PowerFit fit_power(const Points& points) {
  if (points.size() < 3) {
    return {};
  }
  constexpr int cells = 400;  // of [0, 4]; then ever finer about the best
  double width = 0.01;
  PowerFit best = with_exponent(points, 0.0);
  for (int k = 1; k <= cells; ++k) {
    const PowerFit fit = with_exponent(points, width * k);
    if (!(fit.r_squared <= best.r_squared)) {
      best = fit;
    }
  }
  for (int halving = 0; halving < 40; ++halving) {
    width *= 0.5;
    for (const double exponent : {best.exponent - width, best.exponent + width}) {
      const PowerFit fit = with_exponent(points, std::clamp(exponent, 0.0, 4.0));
      if (fit.r_squared > best.r_squared) {
        best = fit;
      }
    }
  }
  return best;
}

}  // namespace lipsa
