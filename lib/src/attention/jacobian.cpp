#include "lipsa/attention/jacobian.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <variant>

#include "core/check.hpp"
#include "linalg/row_products.hpp"
#include "lipsa/attention/cosine.hpp"
#include "lipsa/attention/dot_product.hpp"
#include "lipsa/attention/l2.hpp"
#include "lipsa/attention/sigmoid.hpp"
#include "lipsa/attention/softmax.hpp"

namespace lipsa {
namespace {

void require_no_overflow(bool finite, std::string_view what) {
  if (!finite) {
    throw OverflowError(fmt::format("Jacobian: {} overflow; scale x or the weights down", what));
  }
}

using Scores = std::variant<DotProductScores, L2Scores>;

constexpr Index tile_rows = 64;  // a tile of P (64 × n) stays in the second-level cache

/// c = a op(b), rows of a in parallel.
void multiply(const ConstMatrixRef& a, const ConstMatrixRef& b, Op op_b, MatrixRef c) {
  for_pieces(a.rows(), tile_rows, [&](Index first, Index count) {
    gemm(1.0, a.middleRows(first, count), Op::plain, b, op_b, 0.0, c.middleRows(first, count));
  });
}

/// What the closed form of J needs beyond the products. Rows of the heads lie beside each other:
/// row (k, h) is row k H + h.
struct ClosedForm {
  Matrix value_output{};  ///< (m_V W_O)ᵀ, row (feature, head): (D_out H) × D
  Matrix values{};        ///< V W_O, row (token, head): (n H) × D_out
  Matrix outputs{};       ///< O W_O, row (token, head): (r H) × D_out; 0 for sigmoid
  Matrix carriers{};      ///< m_V v̂, row (token, head): (n H) × D; cosine only
};

/// The rows of one head in a matrix of rows (k, head).
auto rows_of_head(Matrix& m, Index head, Index heads) {
  return Eigen::Map<Matrix, 0, Eigen::OuterStride<>>(m.data() + head * m.cols(), m.rows() / heads,
                                                     m.cols(),
                                                     Eigen::OuterStride<>(heads * m.cols()));
}

}  // namespace

/// Two steps differ between kinds beyond the scores. *Features* are Q, K and V, which for cosine
/// are normalised rows: through_features is that map's derivative, on tangents after they were
/// projected and on gradients before they are projected back. *Weights* are P, by softmax or
/// sigmoid: through_weights takes the derivative of the scores to that of P, and back.
///
/// X is centred where it can be: scores of L2 attention, and the Jacobian wherever rows of P sum to
/// one, see differences of values only, and a common offset must not cost digits.
struct Jacobian::State {
  MultiHead layer;
  TokenRange range;
  std::vector<Index> blind{};
  Scores scores{};
  Matrix fused{};  ///< [W_Q | W_K | m_V of all heads], D × (H (2d + d_v)); without W_K when tied
  Matrix features{};  ///< [Q | K | V] of X, n × the same; V of the centred X, see `centred`
  std::vector<RowNormalisation> normalised{};  ///< of blocks of `features`, Q first; cosine only
  Vector offset{};                             ///< what centring took from V, H d_v
  std::vector<Matrix> P{};                     ///< a head, r × n
  std::vector<Matrix> slopes{};                ///< P ∘ (1 − P) likewise; sigmoid only

  mutable std::once_flag closed_once{};
  mutable ClosedForm closed{};

  State(const MultiHead& layer_in, const ConstMatrixRef& x, const Mask& mask, TokenRange outputs);

  bool tied() const { return layer.kind == AttentionKind::l2; }
  bool cosine() const { return layer.kind == AttentionKind::cosine; }
  bool sigmoid() const { return layer.kind == AttentionKind::sigmoid; }
  /// Whether offsets of the values are taken out: they pass through P unchanged.
  bool centred() const { return !cosine() && !sigmoid(); }
  Index n() const { return features.rows(); }
  Index r() const { return range.count; }
  Index D() const { return layer.width(); }
  Index d() const { return layer.head_width(); }
  Index d_v() const { return layer.value_width(); }
  Index D_out() const { return layer.output_width(); }

  /// Columns of head h in a matrix laid out as `fused`.
  Index key_column(Index h) const { return (tied() ? 0 : layer.heads * d()) + h * d(); }
  Index value_column(Index h) const { return (tied() ? 1 : 2) * layer.heads * d() + h * d_v(); }
  template <class M>
  auto queries(M& m, Index h) const {
    return m.middleCols(h * d(), d());
  }
  template <class M>
  auto keys(M& m, Index h) const {
    return m.middleCols(key_column(h), d());
  }
  template <class M>
  auto values(M& m, Index h) const {
    return m.middleCols(value_column(h), d_v());
  }

  /// m, laid out as `fused`, through the derivative of the features by X·fused. It is symmetric.
  void through_features(Matrix& m) const;

  /// Rows [first, first + ds.rows()) of head h: dS becomes dP. It is symmetric.
  void through_weights(Index h, Index first, MatrixRef ds) const {
    if (sigmoid()) {
      ds.array() *= slope(h).middleRows(first, ds.rows()).array();
    } else {
      softmax_derivative(P[static_cast<std::size_t>(h)].middleRows(first, ds.rows()), ds);
    }
  }

  /// ∂P_ij/∂S_ij, the softmax's less the part that P_i shares: P, or P ∘ (1 − P) of the sigmoid.
  const Matrix& slope(Index h) const {
    return (sigmoid() ? slopes : P)[static_cast<std::size_t>(h)];
  }

  /// The columns of block b of `normalised` in a matrix laid out as `fused`.
  template <class M>
  auto block(M& m, Index b) const {
    const bool value = b >= 2 * layer.heads;
    return value ? m.middleCols(value_column(b - 2 * layer.heads), d_v())
                 : m.middleCols(b * d(), d());
  }

  /// O of all heads, r × (H d_v), of the values as `features` has them.
  Matrix head_outputs() const;

  /// out = a W_O, or a where there is none.
  void to_output(const ConstMatrixRef& a, MatrixRef out) const;
  /// The cotangent of the heads' outputs, gY W_Oᵀ.
  Matrix from_output(const ConstMatrixRef& gy) const;

  const ClosedForm& closed_form() const;

  /// Runs body(head, first, count, gradient) over tiles of output tokens, adding into gradients
  /// laid out as `features`: heads in parallel, and the tiles of a head in a fixed number of groups
  /// whose sums are then added in order.
  template <class Body>
  Matrix accumulate(const Body& body) const;

  /// The gradient of ⟨gO, O⟩ in the features.
  Matrix feature_gradient(const Matrix& gO) const;
};

Jacobian::State::State(const MultiHead& layer_in, const ConstMatrixRef& x, const Mask& mask,
                       TokenRange outputs)
    : layer(layer_in), range(outputs) {
  require_valid(layer);
  const Index tokens = x.rows();
  require(tokens >= 1, "Jacobian: x must have at least one row, got {}", tokens);
  require(x.cols() == D(), "Jacobian: x must have {} columns (rows of W_Q), got {}", D(), x.cols());
  require(mask.tokens() == 0 || mask.tokens() == tokens,
          "Jacobian: mask must be for {} tokens as x, got {}", tokens, mask.tokens());
  for (Index i = 0; i < tokens; ++i) {
    for (Index a = 0; a < D(); ++a) {
      require(std::isfinite(x(i, a)), "Jacobian: x must be finite, got {} at ({}, {})", x(i, a), i,
              a);
    }
  }
  if (range.count < 0) {
    range = {0, tokens};
  }
  require(range.first >= 0 && range.count >= 1 && range.count <= tokens - range.first,
          "Jacobian: outputs must be tokens of [0, {}), got {} from {}", tokens, range.count,
          range.first);

  const SerialBlas serial;
  const Index H = layer.heads;
  fused.resize(D(), value_column(H));
  fused.leftCols(H * d()) = layer.W_Q;
  if (!tied()) {
    fused.middleCols(key_column(0), H * d()) = layer.W_K;
  }
  for (Index h = 0; h < H; ++h) {
    values(fused, h) = value_map(layer, h);
  }

  features.resize(tokens, fused.cols());
  offset = Vector::Zero(H * d_v());
  const double s = layer.score_scale();
  const auto add_bias = [](auto columns, const Vector& bias) {
    if (bias.size() > 0) {
      columns.rowwise() += bias.transpose();
    }
  };
  if (centred()) {
    const Eigen::RowVectorXd mean = x.colwise().mean();
    const Matrix differences = x.rowwise() - mean;
    multiply(differences, fused, Op::plain, features);
    const Eigen::RowVectorXd shift = mean * fused;  // what the features miss by centring
    offset = shift.segment(value_column(0), H * d_v()).transpose();
    if (layer.b_V.size() > 0) {
      offset += layer.b_V;
    }
    if (layer.kind == AttentionKind::dot) {
      scores = DotProductScores{s};
      // What is common to all keys, b_K too, adds a constant to a row of scores, which the softmax
      // forgets; here it would only cost digits.
      features.leftCols(H * d()).rowwise() += shift.head(H * d());
      add_bias(features.leftCols(H * d()), layer.b_Q);
    } else {
      if (!tied()) {  // q_i − k_j keeps what the two shifts differ by
        features.leftCols(H * d()).rowwise() += mean * (layer.W_Q - layer.W_K);
        add_bias(features.leftCols(H * d()), layer.b_Q);
        add_bias(features.middleCols(H * d(), H * d()), layer.b_K);
      }
      const auto q = features.leftCols(H * d());
      const auto k = features.middleCols(key_column(0), H * d());
      scores = L2Scores{s, L2Scores::needs_differences(s, q, k)};
    }
  } else {
    scores = DotProductScores{s};
    multiply(x, fused, Op::plain, features);
    add_bias(features.leftCols(H * d()), layer.b_Q);
    add_bias(features.middleCols(H * d(), H * d()), layer.b_K);
    add_bias(features.rightCols(H * d_v()), layer.b_V);
  }
  require_no_overflow(features.allFinite() && offset.allFinite(), "products of x and the weights");

  for (Index b = 0; cosine() && b < 3 * H; ++b) {
    normalised.push_back(RowNormalisation::normalise(layer.epsilon, block(features, b)));
    require_no_overflow((normalised.back().inverse_length.array() > 0.0).all(),
                        "lengths of queries, keys or values");
  }

  blind = mask.blind_tokens(tokens);
  std::erase_if(blind, [&](Index i) { return i < range.first || i >= range.first + range.count; });
  P.assign(static_cast<std::size_t>(H), Matrix(r(), tokens));
  if (sigmoid()) {
    slopes.assign(static_cast<std::size_t>(H), Matrix(r(), tokens));
  }
  const Index tiles = pieces(r(), tile_rows);
  parallel_for(H * tiles, [&](Index task) {
    const Index h = task / tiles;
    const Index first = task % tiles * tile_rows;
    const Index count = std::min(tile_rows, r() - first);
    auto p = P[static_cast<std::size_t>(h)].middleRows(first, count);
    const auto q = queries(features, h).middleRows(range.first + first, count);
    std::visit([&](const auto& kind) { kind.scores(q, keys(features, h), p); }, scores);
    require_no_overflow(p.allFinite(), "scores");
    if (mask.kind() != Mask::Kind::none) {
      for (Index i = 0; i < count; ++i) {
        for (Index j = 0; j < tokens; ++j) {
          if (!mask.visible(range.first + first + i, j)) {
            p(i, j) = -std::numeric_limits<double>::infinity();
          }
        }
      }
    }
    if (sigmoid()) {
      sigmoid_weights(layer.score_bias, p,
                      slopes[static_cast<std::size_t>(h)].middleRows(first, count));
    } else {
      softmax_rows(p);
    }
  });
}

void Jacobian::State::through_features(Matrix& m) const {
  parallel_for(static_cast<Index>(normalised.size()), [&](Index b) {
    normalised[static_cast<std::size_t>(b)].derivative(block(features, b), block(m, b));
  });
}

Matrix Jacobian::State::head_outputs() const {
  const SerialBlas serial;
  Matrix o(r(), layer.heads * d_v());
  const Index tiles = pieces(r(), tile_rows);
  parallel_for(layer.heads * tiles, [&](Index task) {
    const Index h = task / tiles;
    const Index first = task % tiles * tile_rows;
    const Index count = std::min(tile_rows, r() - first);
    gemm(1.0, P[static_cast<std::size_t>(h)].middleRows(first, count), Op::plain,
         values(features, h), Op::plain, 0.0, o.block(first, h * d_v(), count, d_v()));
  });
  return o;
}

void Jacobian::State::to_output(const ConstMatrixRef& a, MatrixRef out) const {
  if (layer.W_O.size() == 0) {
    out = a;
  } else {
    multiply(a, layer.W_O, Op::plain, out);
  }
}

Matrix Jacobian::State::from_output(const ConstMatrixRef& gy) const {
  if (layer.W_O.size() == 0) {
    return gy;
  }
  Matrix go(gy.rows(), layer.W_V.cols());
  multiply(gy, layer.W_O, Op::transposed, go);
  return go;
}

template <class Body>
Matrix Jacobian::State::accumulate(const Body& body) const {
  const Index tiles = pieces(r(), tile_rows);
  const Index groups = layer.heads > 1 ? 1 : std::min<Index>(4, tiles);
  Matrix total = Matrix::Zero(n(), fused.cols());
  std::vector<Matrix> partial(static_cast<std::size_t>(groups - 1),
                              Matrix::Zero(n(), fused.cols()));
  parallel_for(layer.heads * groups, [&](Index task) {
    const Index h = task / groups;
    const Index group = task % groups;
    Matrix& gradient = group == 0 ? total : partial[static_cast<std::size_t>(group - 1)];
    for (Index tile = group; tile < tiles; tile += groups) {
      const Index first = tile * tile_rows;
      body(h, first, std::min(tile_rows, r() - first), gradient);
    }
  });
  for (const Matrix& part : partial) {
    total += part;
  }
  return total;
}

Matrix Jacobian::State::feature_gradient(const Matrix& gO) const {
  return accumulate([&](Index h, Index first, Index count, Matrix& g) {
    const auto p = P[static_cast<std::size_t>(h)].middleRows(first, count);
    const auto go = gO.block(first, h * d_v(), count, d_v());
    const auto at = range.first + first;
    Matrix gS(count, n());
    gemm(1.0, go, Op::plain, values(features, h), Op::transposed, 0.0, gS);
    through_weights(h, first, gS);
    gemm(1.0, p, Op::transposed, go, Op::plain, 1.0, values(g, h));
    std::visit(
        [&](const auto& kind) {
          kind.adjoint(queries(features, h).middleRows(at, count), keys(features, h), gS,
                       queries(g, h).middleRows(at, count), keys(g, h));
        },
        scores);
  });
}

const ClosedForm& Jacobian::State::closed_form() const {
  std::call_once(closed_once, [this] {
    const SerialBlas serial;
    const Index H = layer.heads;
    closed.value_output.resize(D_out() * H, D());
    closed.values.resize(n() * H, D_out());
    closed.outputs.resize(r() * H, D_out());
    closed.carriers.resize(cosine() ? n() * H : 0, D());
    const Matrix o = head_outputs();
    parallel_for(H, [&](Index h) {
      Matrix w_o = Matrix::Zero(d_v(), D_out());
      if (layer.W_O.size() == 0) {
        w_o.middleCols(h * d_v(), d_v()).setIdentity();
      } else {
        w_o = layer.W_O.middleRows(h * d_v(), d_v());
      }
      const auto product = [](const ConstMatrixRef& a, Op op_a, const ConstMatrixRef& b, Op op_b) {
        Matrix c(op_a == Op::plain ? a.rows() : a.cols(), op_b == Op::plain ? b.cols() : b.rows());
        gemm(1.0, a, op_a, b, op_b, 0.0, c);
        return c;
      };
      rows_of_head(closed.value_output, h, H) =
          product(w_o, Op::transposed, values(fused, h), Op::transposed);
      rows_of_head(closed.values, h, H) = product(values(features, h), Op::plain, w_o, Op::plain);
      if (sigmoid()) {
        rows_of_head(closed.outputs, h, H).setZero();
      } else {
        rows_of_head(closed.outputs, h, H) =
            product(o.middleCols(h * d_v(), d_v()), Op::plain, w_o, Op::plain);
      }
      if (cosine()) {
        rows_of_head(closed.carriers, h, H) =
            product(values(features, h), Op::plain, values(fused, h), Op::transposed);
      }
    });
  });
  return closed;
}

/// The D_out rows of J of one output token, some at a time: H n (2D + D_out) of memory.
///
/// Block j is a sum over heads of a number times the value map, and of a product of vectors. For
/// cosine the value map has N'(v_j) = a I − b v̂_j v̂_jᵀ between its factors: the first part scales
/// the number, the second is one more product of vectors for each head, and memory doubles.
class Jacobian::RowStream {
 public:
  RowStream(const State& state, Index token)
      : state_(state),
        maps_(state.closed_form().value_output),
        own_(state.range.first + token),
        products_((state.cosine() ? 2 : 1) * state.layer.heads) {
    const SerialBlas serial;
    const Index n = state.n();
    const Index H = state.layer.heads;
    const ClosedForm& closed = state.closed_form();
    weights_.resize(n, H);
    keys_.resize(n * products_, state.D());
    if (products_ == H) {
      spread_ = closed.values;
    } else {
      spread_.resize(n * products_, state.D_out());
      for (Index j = 0; j < n; ++j) {
        spread_.middleRows(j * products_, H) = closed.values.middleRows(j * H, H);
        spread_.middleRows(j * products_ + H, H) = closed.values.middleRows(j * H, H);
      }
    }
    for (Index j = 0; j < n; ++j) {
      spread_.middleRows(j * products_, H) -= closed.outputs.middleRows(token * H, H);
    }
    queries_ = Matrix::Zero(state.D_out(), state.D());
    for (Index h = 0; h < H; ++h) {
      const auto p = state.P[static_cast<std::size_t>(h)].row(token).transpose();
      const auto slope = state.slope(h).row(token).transpose();
      const auto q = state.queries(state.features, h).row(own_);
      const auto k = state.keys(state.features, h);
      weights_.col(h) = p;

      Matrix gradient(n, state.d());
      std::visit([&](const auto& kind) { kind.key_gradient(q, k, gradient); }, state.scores);
      gradient.array().colwise() *= slope.array();

      Eigen::RowVectorXd mean_key = Eigen::RowVectorXd::Zero(state.d());
      if (!state.sigmoid()) {
        mean_key = p.transpose() * k;
      }
      Matrix keys = k.rowwise() - mean_key;
      keys.array().colwise() *= slope.array();
      const double factor =
          std::visit([](const auto& kind) { return kind.query_factor(); }, state.scores);
      Matrix covariance(state.D_out(), state.d());
      gemm(factor, rows_of_head(spread_, h, products_), Op::transposed, keys, Op::plain, 0.0,
           covariance);

      if (state.cosine()) {
        normalise(h, gradient, covariance);
      }
      Matrix rows(n, state.D());
      gemm(1.0, gradient, Op::plain, state.keys(state.fused, h), Op::transposed, 0.0, rows);
      rows_of_head(keys_, h, products_) = rows;
      gemm(1.0, covariance, Op::plain, state.queries(state.fused, h), Op::transposed, 1.0,
           queries_);
    }
  }

  /// Rows [first, first + out.rows()) of the block, each n D doubles.
  void rows(Index first, MatrixRef out) const {
    const Index n = state_.n();
    const Index D = state_.D();
    const Index H = state_.layer.heads;
    const Index count = out.rows();
    if (products_ == 1) {  // a single pass over J, which is as fast as memory takes it
      for (Index a = 0; a < count; ++a) {
        for (Index j = 0; j < n; ++j) {
          out.row(a).segment(j * D, D) =
              weights_(j, 0) * maps_.row(first + a) + spread_(j, first + a) * keys_.row(j);
        }
      }
    } else {
      for (Index a = 0; a < count; ++a) {
        gemm(1.0, weights_, Op::plain, maps_.middleRows((first + a) * H, H), Op::plain, 0.0,
             Eigen::Map<Matrix>(out.row(a).data(), n, D));
      }
      for (Index j = 0; j < n; ++j) {
        gemm(1.0, spread_.block(j * products_, first, products_, count), Op::transposed,
             keys_.middleRows(j * products_, products_), Op::plain, 1.0, out.middleCols(j * D, D));
      }
    }
    out.middleCols(own_ * D, D) += queries_.middleRows(first, count);
  }

  /// Calls body(first, rows) for all rows of the block, in pieces of about a megabyte.
  template <class Body>
  void for_rows(const Body& body) const {
    const Index D_out = state_.D_out();
    const Index columns = state_.n() * state_.D();
    const Index size = std::clamp<Index>((Index{1} << 17) / columns, 1, D_out);
    Matrix buffer(size, columns);
    for (Index first = 0; first < D_out; first += size) {
      auto piece = buffer.topRows(std::min(size, D_out - first));
      rows(first, piece);
      body(first, piece);
    }
  }

 private:
  /// Head h of cosine attention, from the derivatives by normalised rows to those by rows.
  void normalise(Index h, Matrix& gradient, Matrix& covariance) {
    const Index H = state_.layer.heads;
    const auto at = [&](Index b) -> const RowNormalisation& {
      return state_.normalised[static_cast<std::size_t>(b)];
    };
    at(H + h).derivative(state_.keys(state_.features, h), gradient);

    const Index rows = covariance.rows();  // all of one query
    const RowNormalisation& query = at(h);
    const RowNormalisation repeated{Vector::Constant(rows, query.inverse_length(own_)),
                                    Vector::Constant(rows, query.identity(own_)),
                                    Vector::Constant(rows, query.rank_one(own_))};
    repeated.derivative(state_.queries(state_.features, h).row(own_).replicate(rows, 1),
                        covariance);

    const RowNormalisation& value = at(2 * H + h);
    Matrix carriers(state_.n(), state_.D());
    for (Index j = 0; j < state_.n(); ++j) {
      carriers.row(j) =
          -weights_(j, h) * value.rank_one(j) * state_.closed_form().carriers.row(j * H + h);
    }
    rows_of_head(keys_, H + h, products_) = carriers;
    weights_.col(h).array() *= value.identity.array();
  }

  const State& state_;
  const Matrix& maps_;
  Index own_;         ///< the token itself, among all
  Index products_;    ///< of vectors, a token: H, or 2 H for cosine
  Matrix weights_{};  ///< P_ij, times a of N'(v_j) for cosine, n × H
  Matrix spread_{};   ///< (v_j − o_i) W_O, row (token, product); then v̂_j W_O for cosine
  Matrix keys_{};     ///< P_ij W_K ∂S_ij/∂k_j likewise; then −P_ij b m_V v̂_j for cosine
  Matrix queries_{};  ///< Σ_h Σ_k P_ik W_Oᵀ (v_k − o_i) (∂S_ik/∂q_i)ᵀ W_Qᵀ, D_out × D
};

Jacobian::Jacobian(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask,
                   TokenRange outputs)
    : state_(std::make_shared<State>(layer, x, mask, outputs)) {}

Index Jacobian::rows() const {
  return state_->r() * state_->D_out();
}
Index Jacobian::cols() const {
  return state_->n() * state_->D();
}

void Jacobian::apply(const ConstVectorRef& dx, VectorRef dy) const {
  const State& s = *state_;
  require(dx.size() == cols() && dy.size() == rows(),
          "Jacobian: apply must map {} to {} numbers, got {} and {}", cols(), rows(), dx.size(),
          dy.size());
  const SerialBlas serial;
  const Eigen::Map<const Matrix> dX(dx.data(), s.n(), s.D());
  Matrix tangent(s.n(), s.fused.cols());
  multiply(dX, s.fused, Op::plain, tangent);
  s.through_features(tangent);
  Matrix dO(s.r(), s.layer.W_V.cols());
  const Index tiles = pieces(s.r(), tile_rows);
  parallel_for(s.layer.heads * tiles, [&](Index task) {
    const Index h = task / tiles;
    const Index first = task % tiles * tile_rows;
    const Index count = std::min(tile_rows, s.r() - first);
    const auto p = s.P[static_cast<std::size_t>(h)].middleRows(first, count);
    const auto own = [&](const Matrix& m) {
      return s.queries(m, h).middleRows(s.range.first + first, count);
    };
    Matrix dP(count, s.n());
    std::visit(
        [&](const auto& kind) {
          kind.tangent(own(s.features), s.keys(s.features, h), own(tangent), s.keys(tangent, h),
                       dP);
        },
        s.scores);
    s.through_weights(h, first, dP);
    auto out = dO.block(first, h * s.d_v(), count, s.d_v());
    gemm(1.0, dP, Op::plain, s.values(s.features, h), Op::plain, 0.0, out);
    gemm(1.0, p, Op::plain, s.values(tangent, h), Op::plain, 1.0, out);
  });
  s.to_output(dO, Eigen::Map<Matrix>(dy.data(), s.r(), s.D_out()));
}

void Jacobian::apply_adjoint(const ConstVectorRef& dy, VectorRef dx) const {
  const State& s = *state_;
  require(dy.size() == rows() && dx.size() == cols(),
          "Jacobian: apply_adjoint must map {} to {} numbers, got {} and {}", rows(), cols(),
          dy.size(), dx.size());
  const SerialBlas serial;
  const Matrix gO = s.from_output(Eigen::Map<const Matrix>(dy.data(), s.r(), s.D_out()));
  Matrix gradient = s.feature_gradient(gO);
  s.through_features(gradient);
  multiply(gradient, s.fused, Op::transposed, Eigen::Map<Matrix>(dx.data(), s.n(), s.D()));
}

Matrix Jacobian::second_derivative(const ConstVectorRef& u, const ConstVectorRef& v) const {
  const State& s = *state_;
  require(u.size() == rows() && v.size() == cols(),
          "Jacobian: second_derivative must have u of length {} and v of length {}, got {} and {}",
          rows(), cols(), u.size(), v.size());
  const SerialBlas serial;
  const Matrix gO = s.from_output(Eigen::Map<const Matrix>(u.data(), s.r(), s.D_out()));
  Matrix tangent(s.n(), s.fused.cols());
  multiply(Eigen::Map<const Matrix>(v.data(), s.n(), s.D()), s.fused, Op::plain, tangent);
  const Matrix projected = s.cosine() ? tangent : Matrix();
  s.through_features(tangent);

  // φ = ⟨gO, dP V + P dV⟩ with dP = P ∘ Z, Z = dS − (P ∘ dS) 1 1ᵀ; the derivative of φ by S, dS, V.
  // For sigmoid dP = P' ∘ dS, and P' = P ∘ (1 − P) changes by P' ∘ (1 − 2P) ∘ dS.
  Matrix gradient = s.accumulate([&](Index h, Index first, Index count, Matrix& g) {
    const auto p = s.P[static_cast<std::size_t>(h)].middleRows(first, count);
    const auto go = gO.block(first, h * s.d_v(), count, s.d_v());
    const auto at = s.range.first + first;
    const auto own = [&](auto& m) { return s.queries(m, h).middleRows(at, count); };

    Matrix Z(count, s.n());
    std::visit(
        [&](const auto& kind) {
          kind.tangent(own(s.features), s.keys(s.features, h), own(tangent), s.keys(tangent, h), Z);
        },
        s.scores);
    Matrix A(count, s.n());  // ∂φ/∂dP, less its mean
    gemm(1.0, go, Op::plain, s.values(s.features, h), Op::transposed, 0.0, A);
    if (!s.sigmoid()) {
      Z.colwise() -= p.cwiseProduct(Z).rowwise().sum().eval();
      A.colwise() -= p.cwiseProduct(A).rowwise().sum().eval();
    }
    Matrix gS = A.cwiseProduct(Z);
    if (s.sigmoid()) {
      gS.array() *= 1.0 - 2.0 * p.array();
    }
    gemm(1.0, go, Op::plain, s.values(tangent, h), Op::transposed, 1.0, gS);
    s.through_weights(h, first, gS);
    const auto slope = s.slope(h).middleRows(first, count);
    Z.array() *= slope.array();  // dP
    A.array() *= slope.array();  // ∂φ/∂dS

    gemm(1.0, Z, Op::transposed, go, Op::plain, 1.0, s.values(g, h));
    std::visit(
        [&](const auto& kind) {
          kind.adjoint(own(s.features), s.keys(s.features, h), gS, own(g), s.keys(g, h));
          kind.adjoint(own(tangent), s.keys(tangent, h), A, own(g), s.keys(g, h));
        },
        s.scores);
  });
  if (s.cosine()) {  // φ has the projected tangent through N' too, which moves with the rows
    s.through_features(gradient);
    const Matrix by_tangent = s.feature_gradient(gO);
    parallel_for(static_cast<Index>(s.normalised.size()), [&](Index b) {
      s.normalised[static_cast<std::size_t>(b)].second_derivative(
          s.block(s.features, b), s.block(projected, b), s.block(by_tangent, b),
          s.block(gradient, b));
    });
  }
  Matrix gX(s.n(), s.D());
  multiply(gradient, s.fused, Op::transposed, gX);
  return gX;
}

Matrix Jacobian::dense() const {
  Matrix j(rows(), cols());
  dense_into(j);
  return j;
}

void Jacobian::dense_into(MatrixRef out) const {
  require(out.rows() == rows() && out.cols() == cols(),
          "Jacobian: out must be {} x {}, got {} x {}", rows(), cols(), out.rows(), out.cols());
  const State& s = *state_;
  const SerialBlas serial;
  static_cast<void>(s.closed_form());
  parallel_for(s.r(), [&](Index token) {
    RowStream(s, token).rows(0, out.middleRows(token * s.D_out(), s.D_out()));
  });
}

Matrix Jacobian::row_block(Index token) const {
  const State& s = *state_;
  require(token >= 0 && token < s.r(), "Jacobian: token must be in [0, {}), got {}", s.r(), token);
  const SerialBlas serial;
  Matrix block(s.D_out(), cols());
  RowStream(s, token).rows(0, block);
  return block;
}

AttainedNorm Jacobian::norm_inf() const {
  const State& s = *state_;
  const SerialBlas serial;
  static_cast<void>(s.closed_form());
  Vector sums(rows());
  parallel_for(s.r(), [&](Index token) {
    RowStream(s, token).for_rows([&](Index first, const auto& rows) {
      sums.segment(token * s.D_out() + first, rows.rows()) = rows.cwiseAbs().rowwise().sum();
    });
  });
  AttainedNorm norm;
  norm.value = sums.maxCoeff<Eigen::PropagateNaN>(&norm.index);
  return norm;
}

AttainedNorm Jacobian::norm_1() const {
  const State& s = *state_;
  const SerialBlas serial;
  static_cast<void>(s.closed_form());
  const Index size =
      std::max<Index>(1, pieces(s.r(), 8));  // at most 8 partial sums, in fixed places
  const Index groups = pieces(s.r(), size);
  std::vector<Vector> sums(static_cast<std::size_t>(groups), Vector::Zero(cols()));
  for_pieces(s.r(), size, [&](Index first, Index count) {
    Vector& sum = sums[static_cast<std::size_t>(first / size)];
    for (Index token = first; token < first + count; ++token) {
      RowStream(s, token).for_rows(
          [&](Index, const auto& rows) { sum += rows.cwiseAbs().colwise().sum().transpose(); });
    }
  });
  for (std::size_t g = 1; g < sums.size(); ++g) {
    sums[0] += sums[g];
  }
  AttainedNorm norm;
  norm.value = sums[0].maxCoeff<Eigen::PropagateNaN>(&norm.index);
  return norm;
}

double Jacobian::norm_frobenius() const {
  const State& s = *state_;
  const SerialBlas serial;
  static_cast<void>(s.closed_form());
  Vector norms(rows());
  parallel_for(s.r(), [&](Index token) {
    RowStream(s, token).for_rows([&](Index first, const auto& rows) {
      for (Index a = 0; a < rows.rows(); ++a) {
        norms(token * s.D_out() + first + a) = rows.row(a).stableNorm();
      }
    });
  });
  return norms.stableNorm();
}

const Matrix& Jacobian::attention_weights(Index head) const {
  require(head >= 0 && head < state_->layer.heads, "Jacobian: head must be in [0, {}), got {}",
          state_->layer.heads, head);
  return state_->P[static_cast<std::size_t>(head)];
}

Matrix Jacobian::output() const {
  const State& s = *state_;
  const SerialBlas serial;
  Matrix o = s.head_outputs();
  o.rowwise() += s.offset.transpose();
  for (const Index token : s.blind) {
    o.row(token - s.range.first).setZero();
  }
  Matrix y(s.r(), s.D_out());
  s.to_output(o, y);
  if (s.layer.b_O.size() > 0) {
    y.rowwise() += s.layer.b_O.transpose();
  }
  return y;
}

const std::vector<Index>& Jacobian::blind_tokens() const {
  return state_->blind;
}

}  // namespace lipsa
