#include "search/ball_attention.hpp"

#include <optional>
#include <utility>

#include "lipsa/core/parallel.hpp"

namespace lipsa {
namespace {

/// Whether scores are distances of queries and keys, and not products.
bool of_distances(AttentionKind kind) {
  return kind == AttentionKind::l2 || kind == AttentionKind::l2_untied;
}

Reals columns(const Matrix& w, Index h, Index width) {
  return Reals(w.middleCols(h * width, width));
}

/// The rows of W_O of one head; the identity from d_v to the columns that are its own when W_O is
/// empty.
Reals output_map(const MultiHead& layer, Index h) {
  const Index d_v = layer.value_width();
  if (layer.W_O.size() > 0) {
    return Reals(layer.W_O.middleRows(h * d_v, d_v));
  }
  Reals map(d_v, layer.output_width());
  for (Index a = 0; a < d_v; ++a) {
    arb_one(map(a, h * d_v + a));
  }
  return map;
}

void add_bias(Reals& rows, const Vector& bias, Index h, Index bits) {
  if (bias.size() == 0) {
    return;
  }
  for (Index i = 0; i < rows.rows(); ++i) {
    for (Index a = 0; a < rows.cols(); ++a) {
      const Real b(bias(h * rows.cols() + a));
      arb_add(rows(i, a), rows(i, a), b, bits);
    }
  }
}

/// Queries, keys and values of one head at some tokens, or without biases their derivatives in a
/// direction, for they are affine. Those of cosine attention are yet to be normalised.
struct Projections {
  Reals q, k, v;
};

Projections project(const MultiHead& layer, Index h, const Reals& x, bool biases, Index bits) {
  const bool tied = layer.kind == AttentionKind::l2;
  const Reals w_q = columns(layer.W_Q, h, layer.head_width());
  const Reals w_k = columns(tied ? layer.W_Q : layer.W_K, h, layer.head_width());
  const Reals w_v = columns(layer.W_V, h, layer.value_width());
  Reals q = product(x, w_q, bits);
  Reals k = product(x, w_k, bits);
  // A_h W_V = s W_Q (W_Qᵀ W_V) for tied L2 attention
  Reals v = tied ? product(q, product(transposed(w_q), w_v, bits), bits) : product(x, w_v, bits);
  if (tied) {
    scale_by(v, ball_scale(layer, bits), bits);
  } else if (biases) {  // tied, they shift queries and keys alike
    add_bias(q, layer.b_Q, h, bits);
    add_bias(k, layer.b_K, h, bits);
  }
  if (biases) {
    add_bias(v, layer.b_V, h, bits);
  }
  return {.q = std::move(q), .k = std::move(k), .v = std::move(v)};
}

/// Every row z becomes ẑ = z/r, r = √(|z|² + ε), and that of dz, unless there are none,
/// dẑ = (dz − ẑ (ẑ·dz))/r. Returns 1/r, n × 1.
Reals normalise(Reals& z, Reals& dz, double epsilon, Index bits) {
  Reals inverse(z.rows(), 1);
  const Real eps(epsilon);
  Real along;
  for (Index i = 0; i < z.rows(); ++i) {
    arb_struct* const r = inverse(i, 0);
    arb_dot(r, eps, 0, z(i, 0), 1, z(i, 0), 1, z.cols(), bits);
    arb_rsqrt(r, r, bits);
    _arb_vec_scalar_mul(z(i, 0), z(i, 0), z.cols(), r, bits);
    if (dz.rows() > 0) {
      arb_dot(along, nullptr, 1, z(i, 0), 1, dz(i, 0), 1, z.cols(), bits);
      _arb_vec_scalar_addmul(dz(i, 0), z(i, 0), z.cols(), along, bits);
      _arb_vec_scalar_mul(dz(i, 0), dz(i, 0), z.cols(), r, bits);
    }
  }
  return inverse;
}

/// P and ∂P/∂S of one score of sigmoid attention, 1/(1 + e) and e/(1 + e)² with e = exp(−t) at
/// t = S + β. With e = exp(t), which is small where the other is large, they are e/(1 + e) and the
/// same.
void sigmoid(arb_ptr p, arb_ptr slope, const Real& t, Index bits) {
  const bool negative = arf_sgn(arb_midref(static_cast<arb_srcptr>(t))) < 0;
  Real e = t;
  if (!negative) {
    arb_neg(e, e);
  }
  arb_exp(e, e, bits);
  arb_add_ui(p, e, 1, bits);
  arb_inv(p, p, bits);
  arb_sqr(slope, p, bits);
  arb_mul(slope, slope, e, bits);
  if (negative) {
    arb_mul(p, p, e, bits);
  }
}

/// One row of scores, and with `d` given their derivatives.
class Row {
 public:
  Row(const MultiHead& layer, Index n, Index bits)
      : distance_(of_distances(layer.kind)),
        sigmoid_(layer.kind == AttentionKind::sigmoid),
        scale_(ball_scale(layer, bits)),
        score_bias_(layer.score_bias),
        bits_(bits),
        p_(1, n),
        slope_(1, n),
        ds_(1, n),
        difference_(2, layer.head_width()) {}

  const Reals& p() const { return p_; }    ///< P_ij, zero where the mask hides j
  const Reals& ds() const { return ds_; }  ///< dS_ij

  /// What dS_ij, less its mean for a softmax, is multiplied with in dP_ij: P_ij, or σ'(S_ij + β).
  const Reals& slope() const { return sigmoid_ ? slope_ : p_; }

  /// False when token i sees nothing.
  bool fill(const Projections& at, const Projections* d, const Mask& mask, Index i) {
    const Index n = p_.cols();
    Index largest = -1;
    for (Index j = 0; j < n; ++j) {
      arb_zero(p_(0, j));
      arb_zero(slope_(0, j));
      arb_zero(ds_(0, j));
      if (mask.visible(i, j)) {
        score(at, d, i, j);
        if (largest < 0 || arf_cmp(arb_midref(p_(0, j)), arb_midref(p_(0, largest))) > 0) {
          largest = j;
        }
      }
    }
    if (largest < 0) {
      return false;
    }
    if (sigmoid_) {
      fill_sigmoid(mask, i);
    } else {
      fill_softmax(mask, i, largest);
    }
    return true;
  }

 private:
  void fill_sigmoid(const Mask& mask, Index i) {
    Real t;
    for (Index j = 0; j < p_.cols(); ++j) {
      if (mask.visible(i, j)) {
        arb_add(t, p_(0, j), score_bias_, bits_);
        sigmoid(p_(0, j), slope_(0, j), t, bits_);
      }
    }
  }

  void fill_softmax(const Mask& mask, Index i, Index largest) {
    const Index n = p_.cols();
    // Any one number may be taken off all scores of a row.
    Real shift;
    arb_set_arf(shift, arb_midref(p_(0, largest)));
    Real total;
    for (Index j = 0; j < n; ++j) {
      if (mask.visible(i, j)) {
        arb_sub(p_(0, j), p_(0, j), shift, bits_);
        arb_exp(p_(0, j), p_(0, j), bits_);
        arb_add(total, total, p_(0, j), bits_);
      }
    }
    for (Index j = 0; j < n; ++j) {
      if (mask.visible(i, j)) {
        arb_div(p_(0, j), p_(0, j), total, bits_);
      }
    }
  }

  void score(const Projections& at, const Projections* d, Index i, Index j) {
    const Index width = at.q.cols();
    if (!distance_) {
      arb_dot(p_(0, j), nullptr, 0, at.q(i, 0), 1, at.k(j, 0), 1, width, bits_);
      if (d != nullptr) {
        arb_dot(ds_(0, j), nullptr, 0, d->q(i, 0), 1, at.k(j, 0), 1, width, bits_);
        arb_dot(ds_(0, j), ds_(0, j), 0, at.q(i, 0), 1, d->k(j, 0), 1, width, bits_);
      }
    } else {
      for (Index a = 0; a < width; ++a) {
        arb_sub(difference_(0, a), at.q(i, a), at.k(j, a), bits_);
      }
      arb_dot(p_(0, j), nullptr, 1, difference_(0, 0), 1, difference_(0, 0), 1, width, bits_);
      if (d != nullptr) {
        for (Index a = 0; a < width; ++a) {
          arb_sub(difference_(1, a), d->q(i, a), d->k(j, a), bits_);
        }
        arb_dot(ds_(0, j), nullptr, 1, difference_(0, 0), 1, difference_(1, 0), 1, width, bits_);
        arb_mul_2exp_si(ds_(0, j), ds_(0, j), 1);
      }
    }
    arb_mul(p_(0, j), p_(0, j), scale_, bits_);
    if (d != nullptr) {
      arb_mul(ds_(0, j), ds_(0, j), scale_, bits_);
    }
  }

  bool distance_;
  bool sigmoid_;
  Real scale_;
  Real score_bias_;
  Index bits_;
  Reals p_;
  Reals slope_;
  Reals ds_;
  Reals difference_;
};

/// O = [O¹ … O^H] at X, n × (H d_v), with O^h = P^h V^h; in direction V, when there is one, dO.
Reals head_outputs(const MultiHead& layer, const Mask& mask, const Reals& x, const Reals* direction,
                   Index bits) {
  const Index n = x.rows();
  const Index d_v = layer.value_width();
  Reals out(n, layer.heads * d_v);
  for (Index h = 0; h < layer.heads; ++h) {
    Projections at = project(layer, h, x, true, bits);
    Projections d = direction == nullptr ? Projections{Reals(0, 0), Reals(0, 0), Reals(0, 0)}
                                         : project(layer, h, *direction, false, bits);
    if (layer.kind == AttentionKind::cosine) {
      normalise(at.q, d.q, layer.epsilon, bits);
      normalise(at.k, d.k, layer.epsilon, bits);
      normalise(at.v, d.v, layer.epsilon, bits);
    }
    parallel_for(n, [&](Index i) {
      use_flint_on_this_thread();
      Row row(layer, n, bits);
      if (!row.fill(at, direction == nullptr ? nullptr : &d, mask, i)) {
        return;
      }
      if (direction == nullptr) {
        for (Index a = 0; a < d_v; ++a) {
          arb_dot(out(i, h * d_v + a), nullptr, 0, row.p()(0, 0), 1, at.v(0, a), d_v, n, bits);
        }
        return;
      }
      Real mean;
      if (layer.kind != AttentionKind::sigmoid) {
        arb_dot(mean, nullptr, 0, row.p()(0, 0), 1, row.ds()(0, 0), 1, n, bits);
      }
      Reals dp(1, n);  // P_ij (dS_ij − Σ_k P_ik dS_ik)
      for (Index j = 0; j < n; ++j) {
        arb_sub(dp(0, j), row.ds()(0, j), mean, bits);
        arb_mul(dp(0, j), dp(0, j), row.slope()(0, j), bits);
      }
      for (Index a = 0; a < d_v; ++a) {
        arb_struct* const o = out(i, h * d_v + a);
        arb_dot(o, nullptr, 0, dp(0, 0), 1, at.v(0, a), d_v, n, bits);
        arb_dot(o, o, 0, row.p()(0, 0), 1, d.v(0, a), d_v, n, bits);
      }
    });
  }
  return out;
}

/// f − g as column `col` of `out`, or f − t g where there is a t.
void set_column(Reals& out, Index col, arb_srcptr f, arb_srcptr g, arb_srcptr t, Index bits) {
  for (Index c = 0; c < out.rows(); ++c) {
    if (t == nullptr) {
      arb_sub(out(c, col), f + c, g + c, bits);
    } else {
      arb_set(out(c, col), f + c);
      arb_submul(out(c, col), t, g + c, bits);
    }
  }
}

/// What W_O makes of the outputs of the heads. b_O has no part in a difference.
Reals mapped(const MultiHead& layer, Reals heads, Index bits) {
  return layer.W_O.size() == 0 ? std::move(heads) : product(heads, Reals(layer.W_O), bits);
}

}  // namespace

Real ball_scale(const MultiHead& layer, Index bits) {
  if (layer.scale > 0.0) {
    return Real(layer.scale);
  }
  Real s;
  arb_sqrt_ui(s, static_cast<ulong>(layer.head_width()), bits);
  arb_inv(s, s, bits);
  return s;
}

Reals ball_difference(const MultiHead& layer, const Mask& mask, const ConstMatrixRef& x,
                      const ConstMatrixRef& y, Index bits) {
  use_flint_on_this_thread();
  Reals difference = head_outputs(layer, mask, Reals(x), nullptr, bits);
  const Reals other = head_outputs(layer, mask, Reals(y), nullptr, bits);
  for (Index i = 0; i < other.rows(); ++i) {
    for (Index a = 0; a < other.cols(); ++a) {
      arb_sub(difference(i, a), difference(i, a), other(i, a), bits);
    }
  }
  return mapped(layer, std::move(difference), bits);
}

Reals ball_derivative(const MultiHead& layer, const Mask& mask, const ConstMatrixRef& x,
                      const ConstMatrixRef& v, Index bits) {
  use_flint_on_this_thread();
  const Reals direction(v);
  return mapped(layer, head_outputs(layer, mask, Reals(x), &direction, bits), bits);
}

Reals ball_softmax_derivative(const ConstMatrixRef& s, const ConstMatrixRef& v, Index bits) {
  use_flint_on_this_thread();
  const Index n = s.cols();
  Reals p(s);
  const Reals direction(v);
  Index largest = 0;
  s.row(0).maxCoeff(&largest);
  const Real shift(s(0, largest));
  Real total;
  for (Index j = 0; j < n; ++j) {
    arb_sub(p(0, j), p(0, j), shift, bits);
    arb_exp(p(0, j), p(0, j), bits);
    arb_add(total, total, p(0, j), bits);
  }
  for (Index j = 0; j < n; ++j) {
    arb_div(p(0, j), p(0, j), total, bits);
  }
  Real mean;
  arb_dot(mean, nullptr, 0, p(0, 0), 1, direction(0, 0), 1, n, bits);
  Reals out(1, n);
  for (Index j = 0; j < n; ++j) {
    arb_sub(out(0, j), direction(0, j), mean, bits);
    arb_mul(out(0, j), out(0, j), p(0, j), bits);
  }
  return out;
}

BallJacobian::BallJacobian(const MultiHead& layer, const ConstMatrixRef& x, const Mask& mask,
                           Index bits)
    : n_(x.rows()),
      D_(layer.width()),
      D_out_(layer.output_width()),
      bits_(bits),
      maps_(D_out_ * D_, layer.heads) {
  use_flint_on_this_thread();
  const Reals tokens(x);
  for (Index h = 0; h < layer.heads; ++h) {
    add_head(layer, tokens, mask, h);
  }
}

void BallJacobian::add_head(const MultiHead& layer, const Reals& x, const Mask& mask, Index h) {
  const bool tied = layer.kind == AttentionKind::l2;
  const bool distance = of_distances(layer.kind);
  const bool cosine = layer.kind == AttentionKind::cosine;
  const bool sigmoid = layer.kind == AttentionKind::sigmoid;
  Projections at = project(layer, h, x, true, bits_);
  std::optional<Normalised> normalised;
  if (cosine) {
    Reals none(0, 0);
    Reals inverse_q = normalise(at.q, none, layer.epsilon, bits_);
    Reals inverse_k = normalise(at.k, none, layer.epsilon, bits_);
    Reals inverse_v = normalise(at.v, none, layer.epsilon, bits_);
    normalised.emplace(Normalised{
        .inverse_q = std::move(inverse_q),
        .inverse_k = std::move(inverse_k),
        .inverse_v = std::move(inverse_v),
        .cosines = product_transposed(at.q, at.k, bits_),
        .v_v = product_transposed(at.v, columns(layer.W_V, h, layer.value_width()), bits_)});
  }
  const Reals w_o = output_map(layer, h);
  const Reals w_q = columns(layer.W_Q, h, layer.head_width());
  const Reals w_k = columns(tied ? layer.W_Q : layer.W_K, h, layer.head_width());
  const Reals w_v = columns(layer.W_V, h, layer.value_width());
  const Real s = ball_scale(layer, bits_);

  // D × D_out: what a token gives to each output that attends to it alone.
  Reals map = tied ? product(w_q, product(transposed(w_q), product(w_v, w_o, bits_), bits_), bits_)
                   : product(w_v, w_o, bits_);
  if (tied) {
    scale_by(map, s, bits_);
  }
  for (Index r = 0; r < D_out_; ++r) {
    for (Index c = 0; c < D_; ++c) {
      arb_set(maps_(r * D_ + c, h), map(c, r));
    }
  }

  Real factor = s;
  if (distance) {
    arb_mul_2exp_si(factor, factor, 1);
  }
  const auto back = [&](const Reals& rows, const Reals& w) {
    Reals g = product_transposed(rows, w, bits_);
    scale_by(g, factor, bits_);
    return g;
  };
  Reals p(n_, n_);
  Reals slope(sigmoid ? n_ : 0, n_);
  parallel_for(n_, [&](Index i) {
    use_flint_on_this_thread();
    Row row(layer, n_, bits_);
    row.fill(at, nullptr, mask, i);  // zeros when it sees nothing
    for (Index j = 0; j < n_; ++j) {
      arb_set(p(i, j), row.p()(0, j));
      if (sigmoid) {
        arb_set(slope(i, j), row.slope()(0, j));
      }
    }
  });
  Reals u = product(at.v, w_o, bits_);
  Reals o = sigmoid ? Reals(n_, D_out_) : product(p, u, bits_);
  const bool both = distance || cosine;
  heads_.push_back({.p = std::move(p),
                    .slope = std::move(slope),
                    .u = std::move(u),
                    .o = std::move(o),
                    .q_k = back(at.q, w_k),
                    .k_k = both ? back(at.k, w_k) : Reals(n_, D_),
                    .q_q = both ? back(at.q, w_q) : Reals(n_, D_),
                    .k_q = back(at.k, w_q),
                    .normalised = std::move(normalised)});
}

void BallJacobian::block(Index i, Index j, Reals& out) const {
  const auto H = static_cast<Index>(heads_.size());
  const Index terms = heads_.front().normalised ? 2 * H : H;
  Reals p(1, H);
  Reals w(D_out_, terms);  // P_ij W_Oᵀ (v_j − o_i)
  Reals a(D_, terms);      // W_K ∂S_ij/∂k_j
  Real factor;
  bool zero = true;
  for (Index h = 0; h < H; ++h) {
    const Head& head = heads_[static_cast<std::size_t>(h)];
    const Normalised* unit = head.normalised ? &*head.normalised : nullptr;
    arb_set(p(0, h), head.p(i, j));
    zero = zero && arb_is_zero(p(0, h)) != 0;
    arb_set(factor, head.slopes()(i, j));
    if (unit != nullptr) {
      // W_Oᵀ N'(v_j) W_Vᵀ = (W_Oᵀ W_Vᵀ − W_Oᵀ v̂_j (W_V v̂_j)ᵀ)/r, the second a term like the others
      arb_mul(factor, factor, unit->inverse_k(j, 0), bits_);
      arb_mul(p(0, h), p(0, h), unit->inverse_v(j, 0), bits_);
      for (Index r = 0; r < D_out_; ++r) {
        arb_mul(w(r, H + h), head.u(j, r), p(0, h), bits_);
        arb_neg(w(r, H + h), w(r, H + h));
      }
      for (Index c = 0; c < D_; ++c) {
        arb_set(a(c, H + h), unit->v_v(j, c));
      }
    }
    for (Index r = 0; r < D_out_; ++r) {
      arb_sub(w(r, h), head.u(j, r), head.o(i, r), bits_);
      arb_mul(w(r, h), w(r, h), factor, bits_);
    }
    set_column(a, h, head.q_k(i, 0), head.k_k(j, 0),
               unit == nullptr ? nullptr : unit->cosines(i, j), bits_);
  }
  for (Index r = 0; r < D_out_; ++r) {
    for (Index c = 0; c < D_; ++c) {
      if (zero) {
        arb_zero(out(r, c));
        continue;
      }
      arb_dot(out(r, c), nullptr, 0, p(0, 0), 1, maps_(r * D_ + c, 0), 1, H, bits_);
      arb_dot(out(r, c), out(r, c), 0, w(r, 0), 1, a(c, 0), 1, terms, bits_);
    }
  }
  if (i == j) {
    for (const Head& head : heads_) {
      add_diagonal(head, i, out);
    }
  }
}

/// Σ_k P_ik W_Oᵀ (v_k − o_i) (W_Q ∂S_ik/∂q_i)ᵀ
void BallJacobian::add_diagonal(const Head& head, Index i, Reals& out) const {
  const Normalised* unit = head.normalised ? &*head.normalised : nullptr;
  Reals w(D_out_, n_);
  Reals g(D_, n_);
  Real factor;
  for (Index k = 0; k < n_; ++k) {
    arb_set(factor, head.slopes()(i, k));
    if (unit != nullptr) {
      arb_mul(factor, factor, unit->inverse_q(i, 0), bits_);
    }
    for (Index r = 0; r < D_out_; ++r) {
      arb_sub(w(r, k), head.u(k, r), head.o(i, r), bits_);
      arb_mul(w(r, k), w(r, k), factor, bits_);
    }
    set_column(g, k, head.k_q(k, 0), head.q_q(i, 0),
               unit == nullptr ? nullptr : unit->cosines(i, k), bits_);
  }
  for (Index r = 0; r < D_out_; ++r) {
    for (Index c = 0; c < D_; ++c) {
      arb_dot(out(r, c), out(r, c), 0, w(r, 0), 1, g(c, 0), 1, n_, bits_);
    }
  }
}

}  // namespace lipsa
