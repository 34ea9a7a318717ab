//===- cpu_product.cpp - speed of product programs on one core -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints GFLOP/s of the three products of a linear layer at every level that
// this processor runs, and the rate of independent fused multiply-adds in
// registers as the peak to hold them against.
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/CPU/Compile.h"
#include "hybrid/Tile/Families/Product.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/MLIRContext.h"
#include <benchmark/benchmark.h>
#include <cstdlib>
#include <dlfcn.h>
#include <immintrin.h>
#include <unistd.h>

using namespace mlir;
using namespace hybrid;

namespace {

struct View {
  void *base;
  int64_t sizes[4], strides[4];
};
using KernelFunction = void (*)(const View *, const int64_t *, int64_t, void *);

enum class Form { RowsTimesWeights, GradientOfRows, GradientOfWeights };

/// A compiled product in this process; it stays until the end.
struct Product {
  KernelFunction function = nullptr;
  std::string error;
  std::vector<float> a, b, c;
  std::vector<View> views;
  std::vector<int64_t> grid;
  void *scratch = nullptr;

  Product(Form form, int64_t tokens, int64_t in, int64_t out, cpu::Level level);
  void run() const {
    for (int64_t task = 0; task < grid[0] * grid[1]; ++task)
      function(views.data(), grid.data(), task, scratch);
  }
};

View viewOf(std::vector<float> &memory, int64_t rows, int64_t columns) {
  memory.assign(rows * columns, 0.5f);
  return {memory.data(), {rows, columns}, {columns, 1}};
}

Product::Product(Form form, int64_t tokens, int64_t in, int64_t out,
                 cpu::Level level) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<tile::TileDialect, arith::ArithDialect, scf::SCFDialect,
                      tensor::TensorDialect>();
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  tile::ProductShape shape;
  switch (form) {
  case Form::RowsTimesWeights:
    shape.columns = out, shape.depth = in, shape.transposeB = true;
    views = {viewOf(a, tokens, in), viewOf(b, out, in), viewOf(c, tokens, out)};
    break;
  case Form::GradientOfRows:
    shape.columns = in, shape.depth = out;
    views = {viewOf(a, tokens, out), viewOf(b, out, in), viewOf(c, tokens, in)};
    break;
  case Form::GradientOfWeights:
    shape.rows = out, shape.columns = in, shape.depth = ShapedType::kDynamic;
    shape.transposeA = shape.accumulate = true;
    views = {viewOf(a, tokens, out), viewOf(b, tokens, in), viewOf(c, out, in)};
    break;
  }
  if (tokens <= tile::ProductShape::kFewRows)
    shape.rowTile = tile::ProductShape::kFewRows;
  tile::ProgramOp program = tile::buildProduct(builder, loc, shape);
  StringRef symbol = program.getSymName();
  SmallVector<Attribute> symbols(6, builder.getI64IntegerAttr(tokens)), sizes;
  if (failed(program.getGrid().constantFold(symbols, sizes)))
    return;
  for (Attribute size : sizes)
    grid.push_back(cast<IntegerAttr>(size).getInt());

  auto code = cpu::compile(*module, symbol, level);
  if (failed(code)) {
    error = "does not compile";
    return;
  }
  scratch = std::aligned_alloc(
      64, llvm::alignTo(code->kernels[0].scratchBytes + 64, 64));
  char path[] = "/tmp/hybrid-bench-XXXXXX";
  int file = mkstemp(path);
  if (write(file, code->elf.data(), code->elf.size()) !=
      ssize_t(code->elf.size()))
    error = "cannot write the kernel";
  close(file);
  void *library = dlopen(path, RTLD_NOW);
  unlink(path);
  if (library)
    function =
        reinterpret_cast<KernelFunction>(dlsym(library, symbol.str().c_str()));
  else
    error = dlerror();
}

void runProduct(benchmark::State &state, Form form, cpu::Level level) {
  int64_t tokens = state.range(0), in = state.range(1), out = state.range(2);
  Product product(form, tokens, in, out, level);
  if (!product.function) {
    state.SkipWithError(product.error.c_str());
    return;
  }
  for (auto _ : state)
    product.run();
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * tokens * in * out, benchmark::Counter::kIsIterationInvariantRate);
}

/// Peak: as many independent sums as hide the latency of the instruction.
__attribute__((target("avx512f"))) void
fusedMultiplyAdds(benchmark::State &state) {
  constexpr int kSums = 16, kSteps = 1000;
  __m512 sums[kSums] = {}, x = _mm512_set1_ps(0.999f),
         y = _mm512_set1_ps(0.001f);
  for (auto _ : state) {
    for (int step = 0; step < kSteps; ++step)
      for (__m512 &sum : sums)
        sum = _mm512_fmadd_ps(sum, x, y);
    benchmark::DoNotOptimize(sums);
  }
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * 16 * kSums * kSteps,
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
    benchmark::RegisterBenchmark("peak_avx512", fusedMultiplyAdds);
  for (cpu::Level level : cpu::kLevels) {
    if (!(level == cpu::Level::V4   ? __builtin_cpu_supports("x86-64-v4")
          : level == cpu::Level::V3 ? __builtin_cpu_supports("x86-64-v3")
                                    : true))
      continue;
    for (const Entry &entry : forms) {
      std::string name = entry.name + ("/" + cpu::traitsOf(level).name.str());
      auto *b = benchmark::RegisterBenchmark(name.c_str(), runProduct,
                                             entry.form, level);
      for (int64_t size : {256, 512, 1024})
        b->Args({size, size, size});
      b->Args({2048, 256, 704})->Args({1, 1024, 1024});
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
