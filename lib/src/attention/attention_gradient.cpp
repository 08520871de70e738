#include "lipsa/attention/attention_gradient.hpp"

#include <limits>
#include <vector>

#include "core/same_shapes.hpp"
#include "linalg/row_products.hpp"
#include "lipsa/attention/cosine.hpp"
#include "lipsa/attention/dot_product.hpp"
#include "lipsa/attention/l2.hpp"
#include "lipsa/attention/sigmoid.hpp"
#include "lipsa/attention/softmax.hpp"

namespace lipsa {
namespace {

constexpr Index tile_rows = 32;

void add_bias(const Vector& bias, MatrixRef rows) {
  if (bias.size() > 0) {
    rows.rowwise() += bias.transpose();
  }
}

void add_to(Vector& gradient, const ConstVectorRef& sums) {
  if (gradient.size() > 0) {
    gradient += sums;
  }
}

}  // namespace

/// A *task* is a head of a sequence: task s H + h owns rows [s n, (s + 1) n) and the columns of
/// head h of `features`, and rows [task n, (task + 1) n) of P.
struct AttentionAt::State {
  MultiHead layer;
  Mask mask;
  double gain;
  Index n;
  Matrix x;         ///< without the mean of its sequence where `centred`
  Matrix means{};   ///< B × D, where `centred`
  Matrix fused{};   ///< [W_Q | W_K | m_V of all heads], D × (H (2d + d_v)); without W_K when tied
  Matrix features;  ///< [Q | K | V], the same columns; rows normalised for cosine
  std::vector<RowNormalisation> normalised{};  ///< of Q, K and V, a task; cosine only
  std::vector<L2Scores> l2{};                  ///< a task; L2 only
  Matrix P;                                    ///< n columns; what the mask hides is not kept
  Matrix slopes{};                             ///< P ∘ (1 − P) likewise; sigmoid only
  Matrix O;                                    ///< (B n) × (H d_v)

  State(const MultiHead& layer_in, Matrix x_in, Index tokens, const Mask& mask_in, double gain_in);

  bool tied() const { return layer.kind == AttentionKind::l2; }
  bool cosine() const { return layer.kind == AttentionKind::cosine; }
  bool sigmoid() const { return layer.kind == AttentionKind::sigmoid; }
  /// L2 scores are of differences, and softmax passes offsets of values on unchanged.
  bool centred() const { return tied() || layer.kind == AttentionKind::l2_untied; }
  /// Whether a bias of the keys does anything: a softmax forgets what is common to all keys.
  bool key_bias() const { return layer.kind != AttentionKind::dot && !tied(); }

  Index H() const { return layer.heads; }
  Index D() const { return layer.width(); }
  Index d() const { return layer.head_width(); }
  Index d_v() const { return layer.value_width(); }
  Index D_out() const { return layer.output_width(); }
  Index sequences() const { return x.rows() / n; }
  Index tasks() const { return sequences() * H(); }

  /// Columns of `fused` of all heads.
  Index key_column() const { return tied() ? 0 : H() * d(); }
  Index value_column() const { return key_column() + H() * d(); }

  template <class M>
  auto queries(M& m, Index task) const {
    return m.block(task / H() * n, task % H() * d(), n, d());
  }
  template <class M>
  auto keys(M& m, Index task) const {
    return m.block(task / H() * n, key_column() + task % H() * d(), n, d());
  }
  template <class M>
  auto values(M& m, Index task) const {
    return m.block(task / H() * n, value_column() + task % H() * d_v(), n, d_v());
  }
  template <class M>
  auto outputs(M& m, Index task) const {
    return m.block(task / H() * n, task % H() * d_v(), n, d_v());
  }

  /// body(scores) with the scores of a task.
  template <class Body>
  void with_scores(Index task, const Body& body) const {
    if (l2.empty()) {
      body(DotProductScores{layer.score_scale()});
    } else {
      body(l2[static_cast<std::size_t>(task)]);
    }
  }

  /// body(first, count, seen) for tiles of rows, which see keys among the first `seen`.
  template <class Body>
  void for_tiles(const Body& body) const {
    for (Index first = 0; first < n; first += tile_rows) {
      const Index count = std::min(tile_rows, n - first);
      body(first, count, mask.kind() == Mask::Kind::causal ? first + count : n);
    }
  }

  /// A tile of scores becomes weights.
  void weigh(Index task, Index first, MatrixRef p);

  /// A tile of dS becomes dP, and back: it is symmetric.
  void through_weights(Index task, Index first, MatrixRef ds) const {
    if (sigmoid()) {
      ds.array() *= slopes.block(task * n + first, 0, ds.rows(), ds.cols()).array();
    } else {
      softmax_derivative(P.block(task * n + first, 0, ds.rows(), ds.cols()), ds);
    }
  }

  /// The derivative of the features of a task by X fused, in place. It is symmetric.
  void through_features(Index task, Matrix& m) const {
    if (cosine()) {
      const auto* rows = &normalised[static_cast<std::size_t>(3 * task)];
      rows[0].derivative(queries(features, task), queries(m, task));
      rows[1].derivative(keys(features, task), keys(m, task));
      rows[2].derivative(values(features, task), values(m, task));
    }
  }

  void attend_task(Index task);

  /// gY W_Oᵀ, without the gain.
  Matrix from_output(const ConstMatrixRef& dy) const;

  /// The gradient of ⟨gO, O⟩ in X fused + biases; that in β is added to `score_bias` unless null.
  Matrix feature_gradient(const Matrix& gO, double* score_bias) const;

  /// gX from the gradient in the features.
  Matrix input_gradient(const Matrix& g) const {
    Matrix dx(x.rows(), D());
    multiply_rows(1.0, g, fused, Op::transposed, 0.0, dx);
    return dx;
  }

  void add_weight_gradient(const Matrix& g, MultiHead& gradient) const;
};

AttentionAt::State::State(const MultiHead& layer_in, Matrix x_in, Index tokens, const Mask& mask_in,
                          double gain_in)
    : layer(layer_in), mask(mask_in), gain(gain_in), n(tokens), x(std::move(x_in)) {
  require_valid(layer);
  require(n >= 1, "AttentionAt: tokens must be at least 1, got {}", n);
  require(x.rows() >= n && x.rows() % n == 0,
          "AttentionAt: x must have a positive multiple of {} rows, got {}", n, x.rows());
  require(x.cols() == D(), "AttentionAt: x must have {} columns (rows of W_Q), got {}", D(),
          x.cols());
  require(mask.tokens() == 0 || mask.tokens() == n,
          "AttentionAt: mask must be for {} tokens, got {}", n, mask.tokens());

  const SerialBlas serial;
  fused.resize(D(), value_column() + H() * d_v());
  fused.leftCols(H() * d()) = layer.W_Q;
  if (!tied()) {
    fused.middleCols(key_column(), H() * d()) = layer.W_K;
  }
  parallel_for(H(), [&](Index h) {
    fused.middleCols(value_column() + h * d_v(), d_v()) = value_map(layer, h);
  });

  if (centred()) {
    means.resize(sequences(), D());
    parallel_for(sequences(), [&](Index s) {
      means.row(s) = x.middleRows(s * n, n).colwise().mean();
      x.middleRows(s * n, n).rowwise() -= means.row(s);
    });
  }
  features.resize(x.rows(), fused.cols());
  for_row_pieces(x.rows(), [&](Index first, Index count) {
    auto rows = features.middleRows(first, count);
    gemm(1.0, x.middleRows(first, count), Op::plain, fused, Op::plain, 0.0, rows);
    if (!tied()) {
      add_bias(layer.b_Q, rows.leftCols(H() * d()));
    }
    if (key_bias()) {
      add_bias(layer.b_K, rows.middleCols(key_column(), H() * d()));
    }
    if (!centred()) {
      add_bias(layer.b_V, rows.rightCols(H() * d_v()));
    }
  });
  if (centred() && !tied()) {  // q_i − k_j keeps what the two shifts differ by
    const Matrix shift = means * (layer.W_Q - layer.W_K);
    parallel_for(sequences(), [&](Index s) {
      features.block(s * n, 0, n, H() * d()).rowwise() += shift.row(s);
    });
  }

  if (centred()) {
    l2.resize(static_cast<std::size_t>(tasks()));
  }
  if (cosine()) {
    normalised.resize(static_cast<std::size_t>(3 * tasks()));
  }
  P.resize(tasks() * n, n);
  if (sigmoid()) {
    slopes.resize(tasks() * n, n);
  }
  O.resize(x.rows(), H() * d_v());
  parallel_for(tasks(), [&](Index task) { attend_task(task); });

  if (centred()) {
    Matrix offset = means * fused.rightCols(H() * d_v());
    add_bias(layer.b_V, offset);
    const std::vector<Index> blind = mask.blind_tokens(n);
    parallel_for(sequences(), [&](Index s) {
      O.middleRows(s * n, n).rowwise() += offset.row(s);
      for (const Index token : blind) {
        O.row(s * n + token).setZero();
      }
    });
  }
}

void AttentionAt::State::attend_task(Index task) {
  auto q = queries(features, task);
  auto k = keys(features, task);
  auto v = values(features, task);
  const auto at = static_cast<std::size_t>(task);
  if (cosine()) {
    normalised[3 * at] = RowNormalisation::normalise(layer.epsilon, q);
    normalised[3 * at + 1] = RowNormalisation::normalise(layer.epsilon, k);
    normalised[3 * at + 2] = RowNormalisation::normalise(layer.epsilon, v);
  }
  if (centred()) {
    const double s = layer.score_scale();
    l2[at] = {s, L2Scores::needs_differences(s, q, k)};
  }
  for_tiles([&](Index first, Index count, Index seen) {
    auto p = P.block(task * n + first, 0, count, seen);
    with_scores(task, [&](const auto& scores) {
      scores.scores(q.middleRows(first, count), k.topRows(seen), p);
    });
    weigh(task, first, p);
    gemm(1.0, p, Op::plain, v.topRows(seen), Op::plain, 0.0,
         outputs(O, task).middleRows(first, count));
  });
}

void AttentionAt::State::weigh(Index task, Index first, MatrixRef p) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto slope = [&] { return slopes.block(task * n + first, 0, p.rows(), p.cols()); };
  if (!p.allFinite()) {  // never a number that looks like one, and never a row taken for blind
    p.setConstant(std::numeric_limits<double>::quiet_NaN());
    if (sigmoid()) {
      slope().setConstant(std::numeric_limits<double>::quiet_NaN());
    }
    return;
  }
  if (mask.kind() != Mask::Kind::none) {
    for (Index i = 0; i < p.rows(); ++i) {
      for (Index j = mask.kind() == Mask::Kind::causal ? first + i + 1 : 0; j < p.cols(); ++j) {
        if (!mask.visible(first + i, j)) {
          p(i, j) = -infinity;
        }
      }
    }
  }
  if (sigmoid()) {
    sigmoid_weights(layer.score_bias, p, slope());
  } else {
    softmax_rows(p);
  }
}

Matrix AttentionAt::State::from_output(const ConstMatrixRef& dy) const {
  if (layer.W_O.size() == 0) {
    return dy;
  }
  Matrix gO(x.rows(), H() * d_v());
  multiply_rows(1.0, dy, layer.W_O, Op::transposed, 0.0, gO);
  return gO;
}

Matrix AttentionAt::State::feature_gradient(const Matrix& gO, double* score_bias) const {
  const SerialBlas serial;
  Matrix g(x.rows(), fused.cols());
  Vector bias_sums = Vector::Zero(tasks());
  parallel_for(tasks(), [&](Index task) {
    auto gq = queries(g, task);
    auto gk = keys(g, task);
    auto gv = values(g, task);
    gq.setZero();
    gk.setZero();
    gv.setZero();
    Matrix buffer(std::min(tile_rows, n), n);
    for_tiles([&](Index first, Index count, Index seen) {
      const auto go = outputs(gO, task).middleRows(first, count);
      const auto p = P.block(task * n + first, 0, count, seen);
      auto gS = buffer.topLeftCorner(count, seen);
      gemm(1.0, go, Op::plain, values(features, task).topRows(seen), Op::transposed, 0.0, gS);
      through_weights(task, first, gS);
      gemm(1.0, p, Op::transposed, go, Op::plain, 1.0, gv.topRows(seen));
      with_scores(task, [&](const auto& scores) {
        scores.adjoint(queries(features, task).middleRows(first, count),
                       keys(features, task).topRows(seen), gS, gq.middleRows(first, count),
                       gk.topRows(seen));
      });
      if (score_bias != nullptr) {
        bias_sums(task) += gS.sum();
      }
    });
    through_features(task, g);
  });
  if (score_bias != nullptr) {
    for (const double sum : bias_sums) {
      *score_bias += sum;
    }
  }
  return g;
}

void AttentionAt::State::add_weight_gradient(const Matrix& g, MultiHead& gradient) const {
  const SerialBlas serial;
  const Index keys_and_queries = H() * d();
  Vector sums = Vector::Zero(g.cols());
  add_column_sums(1.0, g, sums);
  if (!tied()) {
    add_to(gradient.b_Q, sums.head(keys_and_queries));
  }
  if (key_bias()) {
    add_to(gradient.b_K, sums.segment(key_column(), keys_and_queries));
  }
  add_to(gradient.b_V, sums.tail(H() * d_v()));

  Matrix gfused = Matrix::Zero(D(), fused.cols());
  add_transposed_product(1.0, x, g, gfused);
  if (centred()) {  // x lacks its means
    Matrix sequence_sums(sequences(), g.cols());
    parallel_for(sequences(),
                 [&](Index s) { sequence_sums.row(s) = g.middleRows(s * n, n).colwise().sum(); });
    if (tied()) {
      sequence_sums.leftCols(keys_and_queries).setZero();  // but for rounding they are
    }
    add_transposed_product(1.0, means, sequence_sums, gfused);
  }

  gradient.W_Q += gfused.leftCols(keys_and_queries);
  if (!tied()) {
    gradient.W_K += gfused.middleCols(key_column(), keys_and_queries);
    gradient.W_V += gfused.rightCols(H() * d_v());
    return;
  }
  const double s = layer.score_scale();
  parallel_for(H(), [&](Index h) {
    const auto w_q = layer.W_Q.middleCols(h * d(), d());
    const auto w_v = layer.W_V.middleCols(h * d_v(), d_v());
    const auto g_map = gfused.middleCols(value_column() + h * d_v(), d_v());
    Matrix inner(d(), d_v());
    Matrix g_inner(d(), d_v());
    gemm(1.0, w_q, Op::transposed, w_v, Op::plain, 0.0, inner);
    gemm(1.0, w_q, Op::transposed, g_map, Op::plain, 0.0, g_inner);
    auto g_q = gradient.W_Q.middleCols(h * d(), d());
    gemm(s, g_map, Op::plain, inner, Op::transposed, 1.0, g_q);
    gemm(s, w_v, Op::plain, g_inner, Op::transposed, 1.0, g_q);
    gemm(s, w_q, Op::plain, g_inner, Op::plain, 1.0, gradient.W_V.middleCols(h * d_v(), d_v()));
  });
}

AttentionAt::AttentionAt(const MultiHead& layer, Matrix x, Index tokens, const Mask& mask,
                         double gain)
    : state_(std::make_shared<State>(layer, std::move(x), tokens, mask, gain)) {
  const State& s = *state_;
  const SerialBlas serial;
  output_.resize(s.x.rows(), s.D_out());
  for_row_pieces(s.x.rows(), [&](Index first, Index count) {
    auto rows = output_.middleRows(first, count);
    const auto o = s.O.middleRows(first, count);
    if (layer.W_O.size() == 0) {
      rows = gain * o;
    } else {
      gemm(gain, o, Op::plain, layer.W_O, Op::plain, 0.0, rows);
    }
    if (layer.b_O.size() > 0) {
      rows.rowwise() += gain * layer.b_O.transpose();
    }
  });
}

Index AttentionAt::rows() const {
  return state_->x.rows();
}
Index AttentionAt::input_width() const {
  return state_->D();
}
Index AttentionAt::output_width() const {
  return state_->D_out();
}

Matrix AttentionAt::apply(const ConstMatrixRef& dx) const {
  const State& s = *state_;
  require_shape("AttentionAt", "dx", dx, s.x.rows(), s.D());
  const SerialBlas serial;
  Matrix tangent(s.x.rows(), s.fused.cols());
  multiply_rows(1.0, dx, s.fused, Op::plain, 0.0, tangent);
  Matrix dO(s.x.rows(), s.H() * s.d_v());
  parallel_for(s.tasks(), [&](Index task) {
    s.through_features(task, tangent);
    Matrix buffer(std::min(tile_rows, s.n), s.n);
    s.for_tiles([&](Index first, Index count, Index seen) {
      auto dP = buffer.topLeftCorner(count, seen);
      s.with_scores(task, [&](const auto& scores) {
        scores.tangent(s.queries(s.features, task).middleRows(first, count),
                       s.keys(s.features, task).topRows(seen),
                       s.queries(tangent, task).middleRows(first, count),
                       s.keys(tangent, task).topRows(seen), dP);
      });
      s.through_weights(task, first, dP);
      auto out = s.outputs(dO, task).middleRows(first, count);
      gemm(1.0, dP, Op::plain, s.values(s.features, task).topRows(seen), Op::plain, 0.0, out);
      gemm(1.0, s.P.block(task * s.n + first, 0, count, seen), Op::plain,
           s.values(tangent, task).topRows(seen), Op::plain, 1.0, out);
    });
  });
  if (s.layer.W_O.size() == 0) {
    return s.gain * dO;
  }
  Matrix dy(s.x.rows(), s.D_out());
  multiply_rows(s.gain, dO, s.layer.W_O, Op::plain, 0.0, dy);
  return dy;
}

Matrix AttentionAt::apply_adjoint(const ConstMatrixRef& dy) const {
  const State& s = *state_;
  require_shape("AttentionAt", "dy", dy, s.x.rows(), s.D_out());
  Matrix gO = s.from_output(dy);
  if (s.gain != 1.0) {
    gO *= s.gain;
  }
  return s.input_gradient(s.feature_gradient(gO, nullptr));
}

Matrix AttentionAt::backward(const ConstMatrixRef& dy, MultiHead& gradient,
                             double* gain_gradient) const {
  const State& s = *state_;
  require_shape("AttentionAt", "dy", dy, s.x.rows(), s.D_out());
  require_same_shapes("AttentionAt", s.layer, gradient);
  Matrix gO = s.from_output(dy);
  Vector sums = Vector::Zero(s.D_out());
  add_column_sums(1.0, dy, sums);
  if (gain_gradient != nullptr) {
    *gain_gradient += inner_product(gO, s.O);
    if (s.layer.b_O.size() > 0) {
      *gain_gradient += sums.dot(s.layer.b_O);
    }
  }
  add_to(gradient.b_O, s.gain * sums);
  if (s.layer.W_O.size() > 0) {
    add_transposed_product(s.gain, s.O, dy, gradient.W_O);
  }
  if (s.gain != 1.0) {
    gO *= s.gain;
  }
  const Matrix g = s.feature_gradient(gO, s.sigmoid() ? &gradient.score_bias : nullptr);
  s.add_weight_gradient(g, gradient);
  return s.input_gradient(g);
}

}  // namespace lipsa
