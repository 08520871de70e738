#include "lipsa/model/lstm.hpp"

#include <algorithm>
#include <cmath>

#include "core/check.hpp"
#include "core/same_shapes.hpp"
#include "linalg/row_products.hpp"

namespace lipsa {
namespace {

double sigmoid(double a) {
  return 1.0 / (1.0 + std::exp(-a));
}

void require_valid(const Lstm& lstm) {
  const Index K = lstm.hidden_width();
  require(lstm.width() >= 1 && K >= 1, "Lstm: W_X and W_H must have rows, got {} and {}",
          lstm.width(), K);
  require(lstm.W_X.cols() == 4 * K && lstm.W_H.cols() == 4 * K && lstm.b.size() == 4 * K,
          "Lstm: W_X and W_H must have 4 K = {} columns and b as many numbers, got {}, {} and {}",
          4 * K, lstm.W_X.cols(), lstm.W_H.cols(), lstm.b.size());
}

/// Rows (sequence, token) to rows (token, sequence): all sequences at a token are beside each
/// other, and those of the token before are the block before.
Matrix by_token(const ConstMatrixRef& m, Index tokens) {
  const Index sequences = m.rows() / tokens;
  Matrix result(m.rows(), m.cols());
  for_pieces(tokens, 8, [&](Index first, Index count) {
    for (Index t = first; t < first + count; ++t) {
      for (Index s = 0; s < sequences; ++s) {
        result.row(t * sequences + s) = m.row(s * tokens + t);
      }
    }
  });
  return result;
}

/// The way back.
Matrix by_sequence(const ConstMatrixRef& m, Index tokens) {
  return by_token(m, m.rows() / tokens);
}

}  // namespace

/// All arrays but the weights are by token.
struct LstmAt::State {
  Lstm lstm;
  Index tokens;
  Matrix x;        ///< (n B) × D
  Matrix gates{};  ///< i | f | g | o, (n B) × 4K
  Matrix c{};      ///< (n B) × K
  Matrix tanh_c{};
  Matrix h{};

  Index B() const { return x.rows() / tokens; }
  Index K() const { return lstm.hidden_width(); }

  /// Calls body(row, count) for groups of sequences, in parallel: the rows of the group at token t
  /// are [t B + row, t B + row + count).
  template <class Body>
  void for_sequences(const Body& body) const {
    // Each product packs all of W_H, which takes some rows to pay off.
    for_pieces(B(), std::clamp<Index>(B() / 2, 16, 32), body);
  }

  /// The gradient of ⟨dy, h⟩ in A, by token.
  Matrix gate_gradient(const ConstMatrixRef& dy) const;
};

Lstm initial_lstm(Index D, Index K, Rng& rng) {
  require(D >= 1 && K >= 1, "initial_lstm: D and K must be at least 1, got {} and {}", D, K);
  const auto glorot = [&](Index rows) {
    const double limit = std::sqrt(6.0 / static_cast<double>(rows + K));
    return uniform_matrix(rng, rows, 4 * K, -limit, limit);
  };
  Lstm lstm;
  lstm.W_X = glorot(D);
  lstm.W_H = glorot(K);
  lstm.b = Vector::Zero(4 * K);
  lstm.b.segment(K, K).setOnes();
  return lstm;
}

LstmAt::LstmAt(const Lstm& lstm, const ConstMatrixRef& x, Index tokens) {
  require_valid(lstm);
  require(tokens >= 1 && x.rows() >= 1 && x.rows() % tokens == 0,
          "LstmAt: x must have a multiple of {} rows, tokens of a sequence, got {}", tokens,
          x.rows());
  require(x.cols() == lstm.width(), "LstmAt: x must have {} columns (rows of W_X), got {}",
          lstm.width(), x.cols());
  auto state = std::make_shared<State>(State{lstm, tokens, by_token(x, tokens)});
  const Index B = state->B();
  const Index K = state->K();
  state->gates.resize(x.rows(), 4 * K);
  const SerialBlas serial;
  for_row_pieces(x.rows(), [&](Index first, Index count) {
    auto rows = state->gates.middleRows(first, count);
    rows.rowwise() = lstm.b.transpose();
    gemm(1.0, state->x.middleRows(first, count), Op::plain, lstm.W_X, Op::plain, 1.0, rows);
  });
  state->c.resize(x.rows(), K);
  state->tanh_c.resize(x.rows(), K);
  state->h.resize(x.rows(), K);
  state->for_sequences([&](Index row, Index count) {
    for (Index t = 0; t < tokens; ++t) {
      const Index first = t * B + row;
      if (t > 0) {
        gemm(1.0, state->h.middleRows(first - B, count), Op::plain, lstm.W_H, Op::plain, 1.0,
             state->gates.middleRows(first, count));
      }
      for (Index r = first; r < first + count; ++r) {
        double* const gate = state->gates.row(r).data();
        for (Index k = 0; k < K; ++k) {
          const double i = gate[k] = sigmoid(gate[k]);
          const double f = gate[K + k] = sigmoid(gate[K + k]);
          const double g = gate[2 * K + k] = std::tanh(gate[2 * K + k]);
          const double o = gate[3 * K + k] = sigmoid(gate[3 * K + k]);
          const double c = (t > 0 ? f * state->c(r - B, k) : 0.0) + i * g;
          state->c(r, k) = c;
          state->tanh_c(r, k) = std::tanh(c);
          state->h(r, k) = o * state->tanh_c(r, k);
        }
      }
    }
  });
  output_ = by_sequence(state->h, tokens);
  state_ = std::move(state);
}

Index LstmAt::rows() const {
  return state_->x.rows();
}

Index LstmAt::input_width() const {
  return state_->lstm.width();
}

Index LstmAt::output_width() const {
  return state_->K();
}

Matrix LstmAt::apply(const ConstMatrixRef& dx) const {
  const State& s = *state_;
  require(dx.rows() == rows() && dx.cols() == input_width(),
          "LstmAt: dx must be {} x {} as x, got {} x {}", rows(), input_width(), dx.rows(),
          dx.cols());
  const Index B = s.B();
  const Index K = s.K();
  Matrix da(rows(), 4 * K);
  multiply_rows(1.0, by_token(dx, s.tokens), s.lstm.W_X, Op::plain, 0.0, da);
  Matrix dc(rows(), K);
  Matrix dh(rows(), K);
  const SerialBlas serial;
  s.for_sequences([&](Index row, Index count) {
    for (Index t = 0; t < s.tokens; ++t) {
      const Index first = t * B + row;
      if (t > 0) {
        gemm(1.0, dh.middleRows(first - B, count), Op::plain, s.lstm.W_H, Op::plain, 1.0,
             da.middleRows(first, count));
      }
      for (Index r = first; r < first + count; ++r) {
        const double* const gate = s.gates.row(r).data();
        const double* const d = da.row(r).data();
        for (Index k = 0; k < K; ++k) {
          const double i = gate[k];
          const double f = gate[K + k];
          const double g = gate[2 * K + k];
          const double o = gate[3 * K + k];
          const double tanh_c = s.tanh_c(r, k);
          double change = i * (1.0 - i) * d[k] * g + i * (1.0 - g * g) * d[2 * K + k];
          if (t > 0) {
            change += f * dc(r - B, k) + f * (1.0 - f) * d[K + k] * s.c(r - B, k);
          }
          dc(r, k) = change;
          dh(r, k) = o * (1.0 - o) * d[3 * K + k] * tanh_c + o * (1.0 - tanh_c * tanh_c) * change;
        }
      }
    }
  });
  return by_sequence(dh, s.tokens);
}

Matrix LstmAt::State::gate_gradient(const ConstMatrixRef& dy) const {
  const SerialBlas serial;
  require(dy.rows() == x.rows() && dy.cols() == K(),
          "LstmAt: dy must be {} x {} as the output, got {} x {}", x.rows(), K(), dy.rows(),
          dy.cols());
  Matrix gh = by_token(dy, tokens);
  Matrix gc = Matrix::Zero(x.rows(), K());
  Matrix ga(x.rows(), 4 * K());
  for_sequences([&](Index row, Index count) {
    for (Index t = tokens; t-- > 0;) {
      const Index first = t * B() + row;
      if (t + 1 < tokens) {
        gemm(1.0, ga.middleRows(first + B(), count), Op::plain, lstm.W_H, Op::transposed, 1.0,
             gh.middleRows(first, count));
      }
      for (Index r = first; r < first + count; ++r) {
        const double* const gate = gates.row(r).data();
        double* const d = ga.row(r).data();
        for (Index k = 0; k < K(); ++k) {
          const double i = gate[k];
          const double f = gate[K() + k];
          const double g = gate[2 * K() + k];
          const double o = gate[3 * K() + k];
          const double through = gc(r, k) + gh(r, k) * o * (1.0 - tanh_c(r, k) * tanh_c(r, k));
          d[k] = through * g * i * (1.0 - i);
          d[K() + k] = t > 0 ? through * c(r - B(), k) * f * (1.0 - f) : 0.0;
          d[2 * K() + k] = through * i * (1.0 - g * g);
          d[3 * K() + k] = gh(r, k) * tanh_c(r, k) * o * (1.0 - o);
          if (t > 0) {
            gc(r - B(), k) = through * f;
          }
        }
      }
    }
  });
  return ga;
}

Matrix LstmAt::apply_adjoint(const ConstMatrixRef& dy) const {
  const State& s = *state_;
  const Matrix ga = s.gate_gradient(dy);
  Matrix gx(rows(), input_width());
  multiply_rows(1.0, ga, s.lstm.W_X, Op::transposed, 0.0, gx);
  return by_sequence(gx, s.tokens);
}

Matrix LstmAt::backward(const ConstMatrixRef& dy, Lstm& gradient) const {
  const State& s = *state_;
  require_same_shapes("LstmAt", s.lstm, gradient);
  const Matrix ga = s.gate_gradient(dy);
  add_transposed_product(1.0, s.x, ga, gradient.W_X);
  const Index later = rows() - s.B();  // rows with a token before them
  add_transposed_product(1.0, s.h.topRows(later), ga.bottomRows(later), gradient.W_H);
  add_column_sums(1.0, ga, gradient.b);
  Matrix gx(rows(), input_width());
  multiply_rows(1.0, ga, s.lstm.W_X, Op::transposed, 0.0, gx);
  return by_sequence(gx, s.tokens);
}

}  // namespace lipsa
