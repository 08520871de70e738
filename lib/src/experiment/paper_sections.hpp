/// \file
/// The sections of paper_tables, one function each. Private to lib/.
#pragma once

#include "lipsa/experiment/paper_tables.hpp"

namespace lipsa {

ReportSection section_theorem_3_1(const PaperTableOptions& options);
ReportSection section_theorem_3_2(const PaperTableOptions& options);
ReportSection section_figure_2(const PaperTableOptions& options);
ReportSection section_appendix_ascent(const PaperTableOptions& options);
ReportSection section_figure_3(const PaperTableOptions& options);
ReportSection section_figure_4(const PaperTableOptions& options);
ReportSection section_table_1(const PaperTableOptions& options);
ReportSection section_output_variance(const PaperTableOptions& options);
ReportSection section_layer_norm(const PaperTableOptions& options);
ReportSection section_all_bounds(const PaperTableOptions& options);

}  // namespace lipsa
