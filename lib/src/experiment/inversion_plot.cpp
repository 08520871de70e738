#include "lipsa/experiment/inversion_plot.hpp"

#include "experiment/inversion_curves.hpp"
#include "experiment/plot_style.hpp"

namespace lipsa {

std::string inversion_gnuplot(const Inversion& inversion, const std::vector<InversionRow>& rows) {
  const InversionSettings& s = inversion.settings();
  const InversionCurves curves = inversion_curves({.attention = s.attention,
                                                   .contractions = s.contractions,
                                                   .ranges = s.ranges,
                                                   .iterations = s.iterations,
                                                   .divisor = s.divisor,
                                                   .error = "largest |x_k - x|, estimate"},
                                                  rows);
  if (curves.data.empty()) {
    return {};
  }
  return "# Draws inversion.svg and inversion.png: gnuplot inversion.gp\nset encoding utf8\n" +
         curves.data +
         into_svg_and_png("inversion", curves.plots, 100 + 450 * s.attention.size(), 560);
}

}  // namespace lipsa
