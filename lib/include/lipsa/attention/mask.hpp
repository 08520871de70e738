/// \file
/// Which tokens a token may attend to.
#pragma once

#include <string_view>
#include <vector>

#include "lipsa/core/types.hpp"

namespace lipsa {

/// A mask of attention: `visible(i, j)` says whether token i may attend to token j.
/// A token that sees nothing has zero attention: zero output of each head, zero Jacobian rows.
class Mask {
 public:
  enum class Kind { none, causal, arbitrary };
  using Visible = Eigen::Array<bool, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  static Mask none() { return Mask(Kind::none); }
  static Mask causal() { return Mask(Kind::causal); }  ///< j ≤ i

  /// \param visible  n × n
  /// \throws std::invalid_argument  not square
  static Mask arbitrary(Visible visible);

  Kind kind() const { return kind_; }

  bool visible(Index i, Index j) const {
    return kind_ == Kind::none || (kind_ == Kind::causal ? j <= i : visible_(i, j));
  }

  /// Number of tokens it is made for; 0 when it fits any.
  Index tokens() const { return kind_ == Kind::arbitrary ? visible_.rows() : 0; }

  /// The tokens among n that see nothing, ascending.
  std::vector<Index> blind_tokens(Index n) const;

 private:
  explicit Mask(Kind kind) : kind_(kind) {}

  Kind kind_;
  Visible visible_{};
};

std::string_view to_string(Mask::Kind kind);  ///< "none", "causal", "arbitrary"

}  // namespace lipsa
