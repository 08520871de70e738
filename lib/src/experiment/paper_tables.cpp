#include "lipsa/experiment/paper_tables.hpp"

#include "experiment/paper_sections.hpp"

namespace lipsa {

const std::vector<PaperTable>& paper_tables() {
  static const std::vector<PaperTable> all{
      {"theorem-3.1", "Theorem 3.1: dot-product attention is not Lipschitz", &section_theorem_3_1},
      {"theorem-3.2", "Theorem 3.2: bounds of L2 attention", &section_theorem_3_2},
      {"figure-2", "Figure 2: how tight the infinity bound is", &section_figure_2},
      {"appendix-ascent", "Appendix: ascent on the 2-norm, and on dot-product attention",
       &section_appendix_ascent},
      {"figure-3", "Figure 3: inverting X + c F(X)", &section_figure_3},
      {"figure-4", "Figure 4: five kinds of language models, scaled", &section_figure_4},
      {"table-1", "Table 1: language models by depth at a fixed rate, scaled", &section_table_1},
      {"output-variance", "Spread of the outputs of trained attention layers",
       &section_output_variance},
      {"layer-norm", "Appendix: the Lipschitz constant of LayerNorm", &section_layer_norm},
      {"all-bounds", "Beyond the paper: every bound on the same layers", &section_all_bounds}};
  return all;
}

std::vector<PaperFact> facts_at(const PaperTableOptions& options, std::string_view place) {
  std::vector<PaperFact> found;
  for (const PaperFact& fact : options.facts) {
    if (fact.place == place) {
      found.push_back(fact);
    }
  }
  return found;
}

}  // namespace lipsa
