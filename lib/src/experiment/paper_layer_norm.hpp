/// \file
/// The constant of LayerNorm: what the section says, as functions of what was measured. Private to
/// lib/.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "experiment/paper_sections.hpp"
#include "lipsa/model/layer_norm.hpp"

namespace lipsa {

/// One LayerNorm, the steepest rows found and the bounds.
struct LayerNormRow {
  Index D = 1;
  double epsilon = 1e-5;
  std::string gamma{};  ///< "ones", "random"
  double gamma_max = 1.0;

  double norm_2 = 0.0;  ///< |J|_2, estimate, the largest of the rows tried
  std::string row_2{};  ///< which it was
  double norm_inf = 0.0;
  std::string row_inf{};

  double upper_bound_2 = std::numeric_limits<double>::quiet_NaN();
  double upper_bound_inf = std::numeric_limits<double>::quiet_NaN();
  double upper_bound_inf_paper = std::numeric_limits<double>::quiet_NaN();  ///< as recalled

  std::string status{};  ///< of |J|_2: "converged" when that of every row did
};

/// max|γ| ε^(−½) (D² − 2)/D, rounded upwards; as recalled of the paper. D ≥ 2.
double layer_norm_paper_inf(Index D, double epsilon, double gamma_max);

/// J of one row x, D × D.
Matrix layer_norm_jacobian(const LayerNorm& norm, const ConstMatrixRef& x);

LayerNormRow measure_layer_norm(Index D, double epsilon, bool random_gamma, std::uint64_t seed);

Table layer_norm_table(const std::vector<LayerNormRow>& rows);
std::string layer_norm_gnuplot(const std::vector<LayerNormRow>& rows);  ///< layer-norm.svg
std::vector<Agreement> layer_norm_agreements(const std::vector<PaperFact>& facts,
                                             const std::vector<LayerNormRow>& rows);
std::string layer_norm_verdict(const std::vector<LayerNormRow>& rows);

/// The section for any widths.
ReportSection layer_norm_section(const PaperTableOptions& options, const std::vector<Index>& dims);

}  // namespace lipsa
