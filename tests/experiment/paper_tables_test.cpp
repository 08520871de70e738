#include "lipsa/experiment/paper_tables.hpp"

#include <catch2/catch.hpp>
#include <set>

namespace lipsa {
namespace {

TEST_CASE("paper_tables: every name once, as files and anchors can be called", "[experiment]") {
  std::set<std::string_view> names;
  for (const PaperTable& table : paper_tables()) {
    CAPTURE(table.name);
    CHECK(names.insert(table.name).second);
    CHECK(table.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") ==
          std::string_view::npos);
    CHECK_FALSE(table.title.empty());
  }
  CHECK(names.size() == 10);
}

TEST_CASE("facts_at: those of one place", "[experiment]") {
  const PaperTableOptions options{
      .facts = {{"Table 1", "a", "1", "sure", ""}, {"Table 10", "b", "2", "sure", ""}}};
  REQUIRE(facts_at(options, "Table 1").size() == 1);
  CHECK(facts_at(options, "Table 1")[0].quantity == "a");
  CHECK(facts_at(options, "Figure 2").empty());
}

TEST_CASE("paper_tables: without a study the sections that need one say so", "[experiment]") {
  for (const PaperTable& table : paper_tables()) {
    if (table.name == "figure-4" || table.name == "table-1" || table.name == "output-variance") {
      const ReportSection section =
          table.compute({.shallow_study = {{}, "None."}, .depth_study = {{}, "None."}});
      CHECK(section.method == "None.");
      CHECK(section.name == table.name);
      CHECK(section.verdict == "Not computed.");
      CHECK(section.tables.empty());
    }
  }
}

}  // namespace
}  // namespace lipsa
