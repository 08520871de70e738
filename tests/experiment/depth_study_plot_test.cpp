#include "lipsa/experiment/depth_study_plot.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace lipsa {
namespace {

using Catch::Contains;

DepthStudyCell made_up(LanguageModelKind model, Index depth, std::uint64_t seed, double nats) {
  DepthStudyCell cell{.model = model, .depth = depth, .seed = seed, .test = {.nats = nats}};
  if (std::isfinite(nats)) {
    AttentionValues values{.input_deviation = 1.0, .output_deviation = 0.25, .largest = 3.0};
    values.counts.assign(AttentionValues::bins, 2);
    cell.values.assign(static_cast<std::size_t>(depth), values);
  }
  return cell;
}

DepthStudyResult result() {
  const double lost = std::nan("");
  return {.cells = {made_up(LanguageModelKind::dot, 2, 0, 1.5),
                    made_up(LanguageModelKind::dot, 2, 1, 1.7),
                    made_up(LanguageModelKind::dot, 6, 0, 1.2),
                    made_up(LanguageModelKind::dot, 6, 1, lost),
                    made_up(LanguageModelKind::l2, 2, 0, 1.4)},
          .unigram = 2.9,
          .bigram = 2.4};
}

TEST_CASE("depth_study_gnuplot: cells, means over all seeds or none, crosses on the upper edge",
          "[experiment]") {
  const std::string script = depth_study_gnuplot(result());
  for (const char* part :
       {"$mean0 << EOD\n1.9399999999999999 1.6000000000000001\n\nEOD", "\n1.9399999999999999 1.5\n",
        "$lost0", "\"dot diverged\"", "title \"l2\"", "set xtics (2, 6)", "set xlabel \"blocks\"",
        "test loss, nats a character", "depth-study.svg", "depth-study.png", "counts of pairs"}) {
    CHECK_THAT(script, Contains(part));
  }
  CHECK_THAT(script, !Contains("l2 diverged") && !Contains("nan"));
  CHECK(depth_study_gnuplot({}).empty());
}

TEST_CASE("depth_study_gnuplot: a study of which nothing is left is still a picture",
          "[experiment]") {
  DepthStudyResult lost = result();
  for (DepthStudyCell& cell : lost.cells) {
    cell = made_up(cell.model, cell.depth, cell.seed, HUGE_VAL);
  }
  CHECK_THAT(depth_study_gnuplot(lost),
             Contains("$lost0") && !Contains("$mean") && !Contains("inf"));
  CHECK(attention_outputs_gnuplot(lost).empty());
}

TEST_CASE("attention_outputs_gnuplot: densities of the shallowest cells, a panel a model",
          "[experiment]") {
  DepthStudyResult some = result();
  const std::string script = attention_outputs_gnuplot(some);
  // 60 bins of width 0.1, all alike: density 1/6.
  for (const char* part :
       {"$hist0_0 << EOD\n-2.95 0.166666667\n", "$hist1_1", "\"dot, 2 blocks\"", "\"l2, 2 blocks\"",
        "layer 0, deviation 0.25", "density", "attention-outputs.svg"}) {
    CHECK_THAT(script, Contains(part));
  }
  CHECK_THAT(script, !Contains("$hist0_2"));
  for (AttentionValues& values : some.cells.back().values) {
    values.largest = 0.0;
  }
  CHECK_THAT(attention_outputs_gnuplot(some), Contains("plot NaN notitle"));
}

}  // namespace
}  // namespace lipsa
