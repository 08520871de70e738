/// \file
/// What the pictures have in common. Private to lib/.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>

namespace lipsa {

// Curves are told apart by mark and dash where colour is lost: paper, screens in the sun, eyes.
inline constexpr std::array plot_marks{5, 7, 9, 11, 13};
inline constexpr std::array plot_colours{"#0072b2", "#d55e00", "#009e73", "#7a5c00", "#8b3a8b"};
inline constexpr std::array plot_dashes{"1", "(12,5)", "(3,4)", "(12,4,2,4)", "(20,4)"};

/// The `plots` twice, into STEM.svg and STEM.png.
inline std::string into_svg_and_png(const std::string& stem, const std::string& plots,
                                    std::size_t width, std::size_t height) {
  return fmt::format(
             "set terminal svg size {},{} dynamic font \"sans-serif,14\" background rgb \"white\"\n"
             "set output \"{}.svg\"\n",
             width, height, stem) +
         plots +
         fmt::format(
             "set output\nset terminal pngcairo size {},{} font \"sans-serif,14\"\n"
             "set output \"{}.png\"\n",
             width * 3 / 2, height * 3 / 2, stem) +
         plots + "set output\n";
}

}  // namespace lipsa
