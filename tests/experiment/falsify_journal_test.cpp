#include "lipsa/experiment/falsify_journal.hpp"

#include <catch2/catch.hpp>

#include "files.hpp"

namespace lipsa {
namespace {

TEST_CASE("falsify journal: a run in two halves is the run in one", "[experiment]") {
  const TemporaryFolder folder;
  const FalsifyOptions options{.bounds = {"sharp_l2_inf", "dot_ball_2_sum"}, .seed = 7};
  FalsifyProgress half{.next = 150, .tallies = falsify(options, 0, 150)};
  write_progress(folder / "state.json", options, half);
  FalsifyProgress read = read_progress(folder / "state.json", options);
  CHECK(read.next == 150);
  merge(read.tallies, falsify(options, 150, 150));
  const std::string whole = format_table(falsify_table(falsify(options, 0, 300)), TableFormat::csv);
  CHECK(format_table(falsify_table(read.tallies), TableFormat::csv) == whole);
  CHECK_THAT(whole, Catch::Contains("not violated"));
}

TEST_CASE("falsify journal: another run, and what is no journal, are refused", "[experiment]") {
  const TemporaryFolder folder;
  const FalsifyOptions options{.bounds = {"sharp_l2_inf"}};
  write_progress(folder / "state.json", options, {.next = 5, .tallies = falsify(options, 0, 5)});
  CHECK_THROWS_WITH(read_progress(folder / "state.json", {.bounds = {"sharp_l2_inf"}, .seed = 1}),
                    Catch::Contains("another run"));
  CHECK_THROWS_WITH(read_progress(folder / "state.json", {}), Catch::Contains("another run"));
  CHECK_THROWS_WITH(read_progress(folder / "none.json", options),
                    Catch::Contains("no run to resume"));
  put_bytes(folder / "cut.json", get_bytes(folder / "state.json").substr(0, 40));
  CHECK_THROWS_WITH(read_progress(folder / "cut.json", options), Catch::Contains("malformed"));
  put_bytes(folder / "empty.json", "{}");
  CHECK_THROWS_AS(read_progress(folder / "empty.json", options), std::runtime_error);
}

TEST_CASE("falsify journal: a state that no run can have is refused", "[experiment]") {
  const TemporaryFolder folder;
  const FalsifyOptions options{.bounds = {"sharp_l2_inf", "dot_ball_2_sum"}};
  const FalsifyProgress good{.next = 50, .tallies = falsify(options, 0, 50)};
  const auto refused = [&](const FalsifyProgress& state) {
    write_progress(folder / "state.json", options, state);
    CHECK_THROWS_WITH(read_progress(folder / "state.json", options),
                      Catch::Contains("no state of this run"));
  };
  FalsifyProgress bad = good;
  std::swap(bad.tallies[0], bad.tallies[1]);
  refused(bad);
  bad = good;
  bad.tallies.pop_back();
  refused(bad);
  bad = good;
  bad.tallies[0].trials = 51;
  refused(bad);
  bad = good;
  bad.tallies[0].worst_ratio = -1.0;
  refused(bad);
  bad = good;
  bad.tallies[1].worst_trial = 50;
  refused(bad);
}

}  // namespace
}  // namespace lipsa
