//===- cpu_product.cpp - speed of product programs on one core -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GFLOP/s of the three products of a linear layer at every level that this
// processor runs, and the rate of independent fused multiply-adds in registers
// as the peak to hold them against. Arguments are tokens, inputs, outputs.
//
//===----------------------------------------------------------------------===//

#include "LoadedProgram.h"
#include "hybrid/Tile/Families/Product.h"
#include <benchmark/benchmark.h>
#include <immintrin.h>

using namespace mlir;
using namespace hybrid;

namespace {

enum class Form { RowsTimesWeights, GradientOfRows, GradientOfWeights };

tile::ProductShape shapeOf(Form form, int64_t tokens, int64_t in, int64_t out) {
  tile::ProductShape shape;
  // As the schedule has it.
  constexpr int64_t fewRows = 8, stepColumns = 32;
  if (tokens <= fewRows) {
    shape.rowTile = tokens == 1 ? 1 : fewRows;
    shape.columnTile = stepColumns;
  }
  switch (form) {
  case Form::RowsTimesWeights:
    shape.columns = out, shape.depth = in, shape.transposeB = true;
    break;
  case Form::GradientOfRows:
    shape.columns = in, shape.depth = out;
    break;
  case Form::GradientOfWeights:
    shape.rows = out, shape.columns = in, shape.depth = ShapedType::kDynamic;
    shape.transposeA = shape.accumulate = true;
    break;
  }
  return shape;
}

void runProduct(benchmark::State &state, Form form, cpu::Level level) {
  int64_t tokens = state.range(0), in = state.range(1), out = state.range(2);
  tile::ProductShape shape = shapeOf(form, tokens, in, out);
  bench::LoadedProgram program(
      [&](OpBuilder &builder, Location loc) {
        return tile::buildProduct(builder, loc, shape);
      },
      {tokens, 1, tokens, 0, 0, 0}, level);
  if (!program.error.empty()) {
    state.SkipWithError(program.error.c_str());
    return;
  }
  auto half = [](int64_t) { return 0.5f; };
  auto size = [&](int64_t size) {
    return ShapedType::isDynamic(size) ? tokens : size;
  };
  auto addMatrix = [&](int64_t rows, int64_t columns, bool transposed) {
    if (transposed)
      std::swap(rows, columns);
    program.addView({rows, columns}, half);
  };
  addMatrix(size(shape.rows), size(shape.depth), shape.transposeA);
  addMatrix(size(shape.depth), shape.columns, shape.transposeB);
  addMatrix(size(shape.rows), shape.columns, false);
  for (auto _ : state)
    program.run();
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * tokens * in * out, benchmark::Counter::kIsIterationInvariantRate);
}

/// As many independent sums as hide the latency of the instruction.
template <size_t... I>
__attribute__((target("avx512f"))) void
fusedMultiplyAdds(benchmark::State &state, std::index_sequence<I...>) {
  constexpr int kSteps = 1000;
  __m512 sums[sizeof...(I)] = {};
  __m512 x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (auto _ : state) {
    for (int step = 0; step < kSteps; ++step)
      ((sums[I] = _mm512_fmadd_ps(sums[I], x, y)), ...);
    float total = (_mm512_cvtss_f32(sums[I]) + ...);
    benchmark::DoNotOptimize(total);
  }
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * 16 * sizeof...(I) * kSteps,
                         benchmark::Counter::kIsIterationInvariantRate);
}

void registerAll() {
  struct Entry {
    const char *name;
    Form form;
  };
  const Entry forms[] = {{"x_wt", Form::RowsTimesWeights},
                         {"dy_w", Form::GradientOfRows},
                         {"dyt_x", Form::GradientOfWeights}};
  if (__builtin_cpu_supports("avx512f"))
    benchmark::RegisterBenchmark("peak_avx512", [](benchmark::State &state) {
      fusedMultiplyAdds(state, std::make_index_sequence<16>());
    });
  for (cpu::Level level : bench::levelsHere()) {
    for (const Entry &entry : forms) {
      std::string name = entry.name + ("/" + cpu::traitsOf(level).name.str());
      auto *b = benchmark::RegisterBenchmark(name.c_str(), runProduct,
                                             entry.form, level);
      for (int64_t size : {256, 512, 1024})
        b->Args({size, size, size});
      b->Args({2048, 256, 704})->Args({4096, 128, 384})->Args({4096, 384, 128});
      if (entry.form != Form::GradientOfWeights)
        b->Args({1, 1024, 1024})->Args({8, 1024, 1024});
      b->Unit(benchmark::kMicrosecond);
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  registerAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
