/// \file
/// How fast, beside what the machine can do. Each benchmark checks its result before it is timed
/// and reports a rate; the ratios are in README.md beside this file.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "linalg/gemm.hpp"
#include "lipsa/attention/jacobian.hpp"
#include "lipsa/core/memory.hpp"
#include "lipsa/core/parallel.hpp"
#include "lipsa/linalg/spectral_norm.hpp"
#include "lipsa/model/block.hpp"
#include "lipsa/search/ascent.hpp"
#include "lipsa/search/measure.hpp"
#include "piece_checks.hpp"
#include "random_pieces.hpp"
#include "random_problems.hpp"

namespace lipsa {
namespace {

using benchmark::Counter;

void expect(bool holds, const char* what) {
  if (!holds) {
    throw std::runtime_error(what);
  }
}

double as_double(Index i) {
  return static_cast<double>(i);
}

struct Problem {
  MultiHead layer;
  Matrix x;
};

Problem problem(AttentionKind kind, Index n, Index D, Index H) {
  Rng rng(1);
  Problem p{test::random_layer(rng, kind, {n, D, H, D / H, D / H, D}), Matrix()};
  p.x = normal_matrix(rng, n, D);
  return p;
}

/// A product of J with a random vector agrees with the row block of one token.
void check_against_products(const Jacobian& j, const ConstMatrixRef& block, Index token) {
  Rng rng(2);
  const Vector v = normal_matrix(rng, j.cols(), 1);
  Vector jv(j.rows());
  j.apply(v, jv);
  const Vector expected = jv.segment(token * block.rows(), block.rows());
  expect((block * v - expected).norm() <= 1e-10 * (1.0 + expected.norm()), "dense() is wrong");
}

/// The limit of dense_into: writing as many doubles, nothing else, by all threads.
void write_bandwidth(benchmark::State& state) {
  const Index rows = 4096;
  Matrix out = Matrix::Zero(rows, 4096);
  for (auto _ : state) {
    parallel_for(64, [&](Index part) { out.middleRows(part * 64, 64).setConstant(1.5); });
    benchmark::DoNotOptimize(out.data());
  }
  expect(out(rows - 1, 0) == 1.5, "not written");
  state.counters["bytes"] =
      Counter(as_double(out.size()) * 8.0, Counter::kIsIterationInvariantRate);
}
BENCHMARK(write_bandwidth)->UseRealTime()->Unit(benchmark::kMillisecond);

/// The limit of products: independent 512 × 512 × 512 products, one a thread.
void gemm_speed(benchmark::State& state) {
  const Index size = 512;
  const Index count = 8;
  Rng rng(3);
  const Matrix a = normal_matrix(rng, size, size);
  const Matrix b = normal_matrix(rng, size, size);
  std::vector<Matrix> c(static_cast<std::size_t>(count), Matrix::Zero(size, size));
  const SerialBlas serial;
  for (auto _ : state) {
    parallel_for(count, [&](Index k) {
      gemm(1.0, a, Op::plain, b, Op::plain, 0.0, c[static_cast<std::size_t>(k)]);
    });
  }
  expect((c[0].row(5) - a.row(5) * b).norm() <= 1e-9, "gemm is wrong");
  state.counters["flop"] = Counter(2.0 * as_double(count) * std::pow(as_double(size), 3),
                                   Counter::kIsIterationInvariantRate);
}
BENCHMARK(gemm_speed)->UseRealTime()->Unit(benchmark::kMillisecond);

void dense_into(benchmark::State& state, AttentionKind kind) {
  const Problem p = problem(kind, 64, 64, state.range(0));
  const Jacobian j(p.layer, p.x);
  Matrix out(j.rows(), j.cols());
  j.dense_into(out);
  check_against_products(j, out.middleRows(17 * 64, 64), 17);
  for (auto _ : state) {
    j.dense_into(out);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["bytes"] =
      Counter(as_double(out.size()) * 8.0, Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(dense_into, dot, AttentionKind::dot)
    ->Arg(1)
    ->Arg(8)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(dense_into, l2, AttentionKind::l2)
    ->Arg(1)
    ->Arg(8)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void norm_inf_streamed(benchmark::State& state, AttentionKind kind) {
  const Problem p = problem(kind, 128, 64, 8);
  const Jacobian j(p.layer, p.x);
  const AttainedNorm norm = j.norm_inf();
  const Matrix block = j.row_block(norm.index / 64);
  check_against_products(j, block, norm.index / 64);
  expect(std::abs(block.row(norm.index % 64).lpNorm<1>() - norm.value) <= 1e-10 * norm.value,
         "norm_inf is wrong");
  for (auto _ : state) {
    benchmark::DoNotOptimize(j.norm_inf().value);
  }
  state.counters["entries"] =
      Counter(as_double(j.rows()) * as_double(j.cols()), Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(norm_inf_streamed, dot, AttentionKind::dot)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(norm_inf_streamed, l2, AttentionKind::l2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// Multiply-adds of a product with J or Jᵀ, times two.
double flop_of_product(const MultiHead& layer, Index n) {
  const double H = as_double(layer.heads);
  const double d = as_double(layer.head_width());
  const double D = as_double(layer.width());
  const double maps = (layer.kind == AttentionKind::l2 ? 2.0 : 3.0) + 1.0;  // Q, K, V, O
  return 2.0 * (maps * as_double(n) * D * H * d + 4.0 * H * as_double(n) * as_double(n) * d);
}

void products(benchmark::State& state, AttentionKind kind) {
  const Problem p = problem(kind, 512, 512, 8);
  const Jacobian j(p.layer, p.x);
  Rng rng(4);
  Vector v = normal_matrix(rng, j.cols(), 1);
  Vector u(j.rows());
  j.apply(v, u);
  Vector w(j.cols());
  j.apply_adjoint(u, w);
  expect(std::abs(u.squaredNorm() - v.dot(w)) <= 1e-10 * u.squaredNorm(), "products disagree");
  for (auto _ : state) {
    j.apply(v, u);
    j.apply_adjoint(u, w);
    benchmark::DoNotOptimize(w.data());
  }
  state.counters["flop"] =
      Counter(2.0 * flop_of_product(p.layer, 512), Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(products, dot, AttentionKind::dot)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(products, l2, AttentionKind::l2)->UseRealTime()->Unit(benchmark::kMillisecond);

/// |J| from max-token to max-token, from below, with its proof: 33 climbs for each token.
void norm_max_token(benchmark::State& state, AttentionKind kind) {
  const Problem p = problem(kind, 64, 32, 4);
  const LocalNorm norm = local_norm(p.layer, p.x, Mask::none(), Norm::max_token);
  expect(norm.status == "converged", "norm_max_token is not proved");
  const Jacobian j(p.layer, p.x);
  expect(norm.lower_bound >= spectral_norm(j).value / std::sqrt(64.0), "norm_max_token is small");
  for (auto _ : state) {
    benchmark::DoNotOptimize(local_norm(p.layer, p.x, Mask::none(), Norm::max_token).lower_bound);
  }
}
BENCHMARK_CAPTURE(norm_max_token, dot, AttentionKind::dot)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(norm_max_token, l2, AttentionKind::l2)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// |J|₂ as a user asks for it: the Jacobian made, then the norm to 1e-6. Small tokens: with large
/// ones L2 attention is the identity and each singular value 512-fold.
void norm_2(benchmark::State& state, AttentionKind kind) {
  Problem p = problem(kind, 512, 512, 8);
  p.x *= 0.1;
  Index count = 0;
  for (auto _ : state) {
    const Jacobian j(p.layer, p.x);
    const SpectralNorm norm = spectral_norm(j, {.relative_tolerance = 1e-6});
    expect(norm.converged(), "spectral_norm did not converge");
    count = norm.products;
  }
  state.counters["products"] = as_double(count);
}
BENCHMARK_CAPTURE(norm_2, dot, AttentionKind::dot)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(norm_2, l2, AttentionKind::l2)->UseRealTime()->Unit(benchmark::kMillisecond);

void linearise(benchmark::State& state, AttentionKind kind) {
  const Problem p = problem(kind, 512, 512, 8);
  for (auto _ : state) {
    const Jacobian j(p.layer, p.x);
    benchmark::DoNotOptimize(j.rows());
  }
}
BENCHMARK_CAPTURE(linearise, dot, AttentionKind::dot)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(linearise, l2, AttentionKind::l2)->UseRealTime()->Unit(benchmark::kMillisecond);

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Forward and backward of one block, in training: B = 32 sequences of n = 128 tokens, D = 256, H =
/// 8, causal. Counted are multiply-adds, times two, of the maps (Q, K, V, O and 8 D² of the
/// feed-forward layer; K is Q and V comes by a map of D² for l2) and of scores and values over the
/// n (n + 1)/2 pairs that see each other; the backward pass takes twice that. Nothing else counts:
/// norms, softmax, activations. `gemm_ratio` is the median over iterations of the speed beside that
/// of products timed just before and after.
void block_step(benchmark::State& state, AttentionKind kind, Activation activation) {
  keep_freed_memory();
  const Index n = 128;
  const Index rows = 32 * n;
  const Index D = 256;
  Rng rng(1);
  test::BlockShape shape{.attention = kind, .activation = activation, .D = D, .H = 8};
  Block block = test::random_block(rng, shape);
  block.feed_forward = test::random_feed_forward(rng, D, 4 * D, activation);
  const Matrix x = normal_matrix(rng, rows, D);
  const Matrix u = normal_matrix(rng, rows, D);
  Block gradient = zeros_like(block);
  {
    const BlockAt at(block, x, n);
    const Matrix dx = at.backward(u, gradient);
    const Matrix ju = at.apply(u);
    expect(std::abs(dx.cwiseProduct(u).sum() - ju.cwiseProduct(u).sum()) <=
               1e-10 * ju.norm() * u.norm(),
           "the adjoint is wrong");
    const auto make = [&](const Linear& out) {  // behind the kinks of relu
      Block moved = block;
      moved.feed_forward.out = out;
      return BlockAt(moved, x, n);
    };
    expect(
        test::parameter_gradient_error(block.feed_forward.out, make, u, gradient.feed_forward.out,
                                       rng) <= test::difference_tolerance,
        "the gradient is wrong");
  }

  const Index size = 512;
  const Matrix a = normal_matrix(rng, size, size);
  std::vector<Matrix> c(4, Matrix::Zero(size, size));
  const double gemm_flop = 2.0 * 4.0 * std::pow(as_double(size), 3);
  const auto gemm_seconds = [&] {
    const SerialBlas serial;
    const double start = seconds();
    parallel_for(4, [&](Index k) {
      gemm(1.0, a, Op::plain, a, Op::plain, 0.0, c[static_cast<std::size_t>(k)]);
    });
    return seconds() - start;
  };
  const double maps = as_double((kind == AttentionKind::l2 ? 11 : 12) * rows * D * D);
  const double pairs = as_double(rows) * as_double(n + 1) / 2.0;
  const double flop = 3.0 * 2.0 * (maps + pairs * 2.0 * as_double(D));
  std::vector<double> ratios;
  for (auto _ : state) {
    const double before = gemm_seconds();
    const double start = seconds();
    const BlockAt at(block, x, n);
    benchmark::DoNotOptimize(at.backward(u, gradient).data());
    const double taken = seconds() - start;
    state.SetIterationTime(taken);
    ratios.push_back(flop / taken * 0.5 * (before + gemm_seconds()) / gemm_flop);
  }
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<Index>(ratios.size() / 2),
                   ratios.end());
  state.counters["flop"] = Counter(flop, Counter::kIsIterationInvariantRate);
  state.counters["gemm_ratio"] = ratios[ratios.size() / 2];
}
BENCHMARK_CAPTURE(block_step, dot_relu, AttentionKind::dot, Activation::relu)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(block_step, dot_gelu, AttentionKind::dot, Activation::gelu)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(block_step, l2_relu, AttentionKind::l2, Activation::relu)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

/// Figure 2 of Kim et al., all six sizes.
void figure_2(benchmark::State& state) {
  const MultiHead layer = test::unit_layer(AttentionKind::l2);
  for (auto _ : state) {
    for (const Index n : {100, 200, 300, 500, 700, 1000}) {
      const Ascent ascent = maximise_local_norm(layer, Mask::none(), n);
      expect(ascent.best().lower_bound > 10.077, "the ascent fell short");
    }
  }
}
BENCHMARK(figure_2)->UseRealTime()->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace lipsa
