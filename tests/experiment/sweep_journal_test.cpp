#include "lipsa/experiment/sweep_journal.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "files.hpp"
#include "lipsa/core/atomic_file.hpp"
#include "small_sweep.hpp"

namespace lipsa {
namespace {

using test::run_all;
using test::small;

std::string csv_of(const Sweep& sweep, const std::vector<SweepRow>& rows) {
  return format_table(sweep_table(sweep, rows), TableFormat::csv);
}

TEST_CASE("SweepJournal: an interrupted sweep goes on to the same bytes", "[experiment]") {
  const TemporaryFolder folder;
  const auto path = folder / "sweep.journal";
  const Sweep sweep(small());
  const std::string whole = csv_of(sweep, run_all(sweep));
  {
    SweepJournal journal(path, sweep, false);
    journal.append(1, sweep.run(1));
  }
  std::ofstream(path, std::ios::app) << R"({"row": 0, "local_no)";  // killed while writing
  CHECK_THROWS_WITH(SweepJournal(path, sweep, false), Catch::Contains("continue it with --resume"));
  SweepJournal journal(path, sweep, true);
  CHECK_FALSE(journal.row(0));
  REQUIRE(journal.row(1));
  journal.append(0, sweep.run(0));
  CHECK(csv_of(sweep, {*journal.row(0), *journal.row(1)}) == whole);
  journal.remove();
  CHECK(folder.count() == 0);
}

TEST_CASE("SweepJournal: refuses a journal of other settings, and a damaged one", "[experiment]") {
  const TemporaryFolder folder;
  const auto path = folder / "sweep.journal";
  const Sweep sweep(small());
  {
    SweepJournal journal(path, sweep, false);
    journal.append(0, sweep.run(0));
  }
  SweepSettings other = small();
  other.seed = 1;
  CHECK_THROWS_WITH(SweepJournal(path, Sweep(other), true), Catch::Contains("of other settings"));
  { CHECK_NOTHROW(SweepJournal(path, sweep, true)); }
  std::ofstream(path, std::ios::app) << "{\"row\": 7}\n";
  CHECK_THROWS_WITH(SweepJournal(path, sweep, true), Catch::Contains("line 3: expected a row"));
}

TEST_CASE("SweepJournal: without a row it is in nobody's way, what is no file is", "[experiment]") {
  const TemporaryFolder folder;
  const auto path = folder / "sweep.journal";
  SweepSettings other = small();
  other.seed = 1;
  { const SweepJournal journal(path, Sweep(other), false); }
  CHECK_NOTHROW(SweepJournal(path, Sweep(small()), false));
  std::filesystem::create_directory(folder / "folder");
  CHECK_THROWS_AS(SweepJournal(folder / "folder", Sweep(small()), false), WriteError);
}

TEST_CASE("SweepJournal: one process at a time", "[experiment]") {
  const TemporaryFolder folder;
  const Sweep sweep(small());
  const SweepJournal journal(folder / "sweep.journal", sweep, false);
  CHECK_THROWS_WITH(SweepJournal(folder / "sweep.journal", sweep, true),
                    Catch::Contains("another process is writing this sweep"));
}

}  // namespace
}  // namespace lipsa
