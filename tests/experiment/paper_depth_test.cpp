#include "experiment/paper_depth.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace lipsa {
namespace {

using Catch::Contains;

DepthStudyCell made_up(LanguageModelKind model, Index depth, std::uint64_t seed, double nats,
                       double deviation = 1.0) {
  DepthStudyCell cell{.model = model,
                      .depth = depth,
                      .seed = seed,
                      .test = {.nats = nats},
                      .status = std::isnan(nats) ? "diverged"
                                : nats < 3.0     ? "done"
                                                 : "stuck"};
  if (!std::isnan(nats)) {
    cell.values.push_back({.input_deviation = 1.0, .output_deviation = deviation, .largest = 1.0});
    cell.values.back().counts.assign(AttentionValues::bins, 1);
  }
  return cell;
}

/// Dot-product attention with one seed stuck in depth, L2 attention trained throughout.
DepthStudyResult as_claimed() {
  using enum LanguageModelKind;
  return {.cells = {made_up(dot, 2, 0, 2.125, 6.0), made_up(dot, 2, 1, 2.375, 8.0),
                    made_up(dot, 18, 0, 2.5), made_up(dot, 18, 1, 3.01),
                    made_up(l2, 2, 0, 2.25, 2.0), made_up(l2, 18, 0, 2.25)},
          .unigram = 3.0,
          .bigram = 2.4};
}

TEST_CASE("depth_loss_table: means over the seeds that trained, by model and depth",
          "[experiment]") {
  const Table table = depth_loss_table(as_claimed());
  REQUIRE(table.rows.size() == 4);
  CHECK(format_table(table, TableFormat::csv) ==
        "model,depth,seeds,trained,test_loss_estimate,test_loss_estimate_least,"
        "test_loss_estimate_most,status\n"
        "dot,2,2,2,2.25,2.125,2.375,trained\ndot,18,2,1,2.5,2.5,2.5,some seeds did not train\n"
        "l2,2,1,1,2.25,2.25,2.25,trained\nl2,18,1,1,2.25,2.25,2.25,trained\n");
}

TEST_CASE("depth_verdict: what is claimed is seen, or not, or not tested", "[experiment]") {
  DepthStudyResult result = as_claimed();
  CHECK(depth_verdict(result) ==
        "dot trains to 2 blocks, and beyond with some seeds; l2 trains to 18 blocks. The "
        "claim that dot-product attention fails where L2 attention trains is seen at this scale.");
  result.cells[3] = made_up(LanguageModelKind::dot, 18, 1, std::nan(""));
  CHECK_THAT(depth_verdict(result), Contains("is seen at this scale"));
  result.cells[3] = made_up(LanguageModelKind::dot, 18, 1, 2.9);
  CHECK_THAT(depth_verdict(result), Contains("dot trains to 18 blocks") && Contains("is not seen"));
  result = as_claimed();
  result.cells[4] = made_up(LanguageModelKind::l2, 2, 0, 3.5);
  CHECK_THAT(depth_verdict(result),
             Contains("l2 does not train with every seed") && Contains("is not seen"));
  result.cells.resize(4);
  CHECK_THAT(depth_verdict(result), Contains("is not tested"));
}

TEST_CASE("depth_agreements: whether ours trains where the paper's does", "[experiment]") {
  const std::vector<PaperFact> facts{
      {"Table 1", "test loss of dot with 2 layers", "1.061", "recalled", ""},
      {"Table 1", "test loss of dot with 18 layers", "-", "recalled", ""},
      {"Table 1", "test loss of l2 with 18 layers", "-", "recalled", ""},
      {"Table 1", "test loss of l2 with 4 layers", "1.04", "recalled", ""},
      {"Table 1", "something else", "1", "sure", ""},
      {"Table 1", "dot-product attention at a fixed rate", "fails beyond 10 layers", "sure", ""},
      {"Table 1", "L2 and contractive L2 at a fixed rate", "train at 18 layers", "sure", ""}};
  DepthStudyResult study = as_claimed();
  auto rows = depth_agreements(facts, study);
  REQUIRE(rows.size() == 5);
  CHECK(rows[0].agreement == "both train");
  CHECK(std::get<double>(rows[0].ours) == Approx(2.25));
  CHECK(rows[1].agreement == "neither trains");
  CHECK(rows[2].agreement == "only ours trains");
  CHECK(rows[3].agreement == "agrees");
  CHECK(rows[4].agreement == "not tested");  // no contractive model
  study.cells.push_back(made_up(LanguageModelKind::contractive_l2, 18, 0, 2.5));
  CHECK(depth_agreements(facts, study)[4].agreement == "agrees");
  study.cells[3].status = "done";
  study.cells[5].status = "stuck";
  rows = depth_agreements(facts, study);
  CHECK(rows[3].agreement == "does not agree");
  CHECK(rows[4].agreement == "agrees in 1 of 2");
  study.cells.resize(2);
  rows = depth_agreements(facts, study);
  CHECK(rows[1].agreement == "not tested");
  CHECK(rows[2].agreement == "not tested");
}

TEST_CASE("figure_4_agreements: claim by claim, at the depths where both trained", "[experiment]") {
  using enum LanguageModelKind;
  const std::vector<PaperFact> facts{
      {"Figure 4", "dot-product attention at 3 to 5 layers", "slightly better", "recalled", ""},
      {"Figure 4", "L2 untied", "like dot-product", "recalled", ""},
      {"Figure 4", "L2 tied", "tying costs a little", "recalled", ""},
      {"Figure 4", "contractive L2 at equal depth", "worse", "recalled", ""},
      {"Figure 4", "contractive L2 with depth", "keeps improving", "recalled", ""},
      {"Figure 4", "dropout", "0", "recalled", ""},
      {"Figure 4", "test loss of the best LSTM", "about 1.0", "recalled", ""}};
  DepthStudyResult study{
      .cells = {made_up(lstm, 1, 0, 2.0), made_up(dot, 3, 0, 1.9), made_up(dot, 5, 0, 1.84),
                made_up(l2_untied, 3, 0, 1.91), made_up(l2_untied, 5, 0, 1.83),
                made_up(l2, 3, 0, 1.95), made_up(l2, 5, 0, 1.95),
                made_up(contractive_l2, 3, 0, 2.5), made_up(contractive_l2, 5, 0, 2.2)},
      .unigram = 3.0,
      .bigram = 2.4};
  const auto agreements = [&] {
    std::vector<std::string> list;
    for (const Agreement& row : figure_4_agreements(facts, study)) {
      list.push_back(row.agreement);
    }
    return list;
  };
  CHECK(agreements() == std::vector<std::string>{"agrees", "agrees", "agrees", "agrees", "agrees",
                                                 "another setting", "another setting"});
  CHECK(figure_4_verdict(figure_4_agreements(facts, study)) ==
        "Claim by claim: dot-product attention at 3 to 5 layers (slightly better): agrees; L2 "
        "untied (like "
        "dot-product): agrees; L2 tied (tying costs a little): agrees; contractive L2 at equal "
        "depth (worse): agrees; contractive L2 with depth (keeps improving): agrees.");
  CHECK_THAT(
      std::get<std::string>(figure_4_agreements(facts, study)[2].ours),
      Contains("l2 above, by less than 10 %, l2-untied at 2 of 2 depths: by 0.040 to 0.120"));
  study.cells[5].test.nats = 1.9099;  // below it by a tenth of what is shown
  CHECK_THAT(std::get<std::string>(figure_4_agreements(facts, study)[2].ours),
             Contains(": by 0.000 to 0.120"));
  study.cells[5].test.nats = 1.95;
  study.cells.push_back(made_up(contractive_l2, 5, 1, 2.6));  // another seed: 2.4 +- 0.2
  CHECK(agreements()[4] == "does not agree");
  study.cells.back().test.nats = 2.1;
  CHECK(agreements()[4] == "agrees");
  CHECK_THAT(std::get<std::string>(figure_4_agreements(facts, study)[4].ours),
             Contains("seeds differ by up to 0.100") && !Contains("counted pairs"));
  study.bigram = 2.0;
  CHECK_THAT(std::get<std::string>(figure_4_agreements(facts, study)[4].ours),
             Contains("never better than counted pairs"));
  study.bigram = 2.4;
  study.cells.pop_back();
  study.cells[0].test.nats = 1.7;   // the LSTM is better
  study.cells[4].test.nats = 2.1;   // untied is not like dot, and tied is below it, at 5 layers
  study.cells[7].test.nats = 1.94;  // contractive is better at 3, and does not improve
  CHECK(agreements() == std::vector<std::string>{"does not agree", "agrees in 1 of 2",
                                                 "agrees in 1 of 2", "agrees in 1 of 2",
                                                 "does not agree", "another setting",
                                                 "another setting"});
  study.cells[0].test.nats = 2.0;
  study.cells[1].test.nats = 1.0;  // much better than the LSTM
  CHECK(agreements()[0] == "agrees in 1 of 2");
  study.cells.erase(study.cells.begin() + 3, study.cells.end());
  CHECK(agreements() == std::vector<std::string>{"agrees in 1 of 2", "not tested", "not tested",
                                                 "not tested", "not tested", "another setting",
                                                 "another setting"});
}

TEST_CASE("output_variance: at the least depth at which both trained", "[experiment]") {
  using enum LanguageModelKind;
  DepthStudyResult result = as_claimed();
  OutputVariance found = output_variance(result);
  CHECK(found.depth == 2);
  CHECK(found.ratio == Approx((36.0 + 64.0) / 2.0 / 4.0));
  CHECK_THAT(output_verdict(found), Contains("12.5 times the variance") && Contains("2 blocks") &&
                                        Contains("they vary more, as in the paper"));
  CHECK_THAT(output_verdict({.depth = 1, .ratio = 0.9}),
             Contains("1 block ") && Contains("they do not vary more."));
  CHECK_THAT(output_verdict(
                 {.depth = 1, .ratio = 2.0, .deeper = 2, .least_deeper = 0.5, .most_deeper = 0.75}),
             Contains("At 2 greater depths it is 0.5 to 0.75 times"));
  result.cells[4] = made_up(l2, 2, 0, 3.5);  // no tied model trained with two blocks
  result.cells[2] = made_up(dot, 18, 0, 2.5, 3.0);
  result.cells[5] = made_up(l2, 18, 0, 2.5, 1.0);
  found = output_variance(result);
  CHECK(found.depth == 18);
  CHECK(found.ratio == Approx(9.0));
  result.cells.resize(4);
  CHECK(output_variance(result).depth == 0);
  CHECK_THAT(output_verdict(output_variance(result)), Contains("Not computed"));
}

}  // namespace
}  // namespace lipsa
