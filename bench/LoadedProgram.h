//===- LoadedProgram.h - a compiled tile program to measure -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_BENCH_LOADEDPROGRAM_H
#define HYBRID_BENCH_LOADEDPROGRAM_H

#include "hybrid/Target/CPU/Compile.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/MLIRContext.h"
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

namespace hybrid::bench {

/// One program as machine code in this process, where it stays until the end,
/// with memory for its views.
class LoadedProgram {
public:
  using Build =
      std::function<tile::ProgramOp(mlir::OpBuilder &, mlir::Location)>;

  LoadedProgram(const Build &build, llvm::ArrayRef<int64_t> symbols,
                cpu::Level level) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    context.loadDialect<tile::TileDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect, mlir::scf::SCFDialect,
                        mlir::tensor::TensorDialect>();
    mlir::Location loc = mlir::UnknownLoc::get(&context);
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
    tile::ProgramOp program = build(builder, loc);
    readGrid(program, symbols);
    // HYBRID_BENCH_DUMP prints the program.
    if (std::getenv("HYBRID_BENCH_DUMP"))
      program->dump();
    double start = processorSeconds();
    auto code = cpu::compile(*module, program.getSymName(), level);
    compileSeconds = processorSeconds() - start;
    if (mlir::failed(code)) {
      error = "does not compile";
      return;
    }
    codeBytes = code->elf.size();
    scratchBytes = code->kernels.front().scratchBytes;
    scratch = std::aligned_alloc(64, llvm::alignTo(scratchBytes + 64, 64));
    load(*code);
  }

  /// Memory of a view, filled with `fill(element)`; views are added in order.
  float *addView(llvm::ArrayRef<int64_t> sizes,
                 const std::function<float(int64_t)> &fill) {
    int64_t count = 1;
    for (int64_t size : sizes)
      count *= size;
    float *data = static_cast<float *>(addMemory(sizes, count));
    for (int64_t n = 0; n < count; ++n)
      data[n] = fill(n);
    return data;
  }
  int32_t *addIntegers(llvm::ArrayRef<int64_t> sizes,
                       llvm::ArrayRef<int32_t> values) {
    auto *data = static_cast<int32_t *>(addMemory(sizes, values.size()));
    llvm::copy(values, data);
    return data;
  }

  void run() const {
    for (int64_t task = 0; task < tasks; ++task)
      function(views.data(), grid.data(), task, scratch);
  }

  /// The shortest of several runs in processor time: other work on the machine
  /// only adds.
  double shortestSeconds(double budget = 0.3) const {
    double best = 1e30, begin = processorSeconds(), now = begin;
    do {
      double start = now;
      run();
      now = processorSeconds();
      best = std::min(best, now - start);
    } while (now - begin < budget);
    return best;
  }

  std::string error;
  double compileSeconds = 0;
  size_t codeBytes = 0;
  int64_t scratchBytes = 0;

private:
  struct View {
    void *base;
    int64_t sizes[4], strides[4];
  };
  using Function = void (*)(const View *, const int64_t *, int64_t, void *);

  static double processorSeconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
  }

  void readGrid(tile::ProgramOp program, llvm::ArrayRef<int64_t> symbols) {
    mlir::Builder builder(program.getContext());
    llvm::SmallVector<mlir::Attribute> constants, sizes;
    for (int64_t symbol : symbols)
      constants.push_back(builder.getI64IntegerAttr(symbol));
    if (mlir::failed(program.getGrid().constantFold(constants, sizes)))
      return;
    for (auto [dim, size] : llvm::enumerate(sizes)) {
      grid.push_back(mlir::cast<mlir::IntegerAttr>(size).getInt());
      if (program.getOrderOf(dim) == tile::Order::parallel)
        tasks *= grid.back();
    }
    name = program.getSymName().str();
  }

  void load(const cpu::CompiledCode &code) {
    char path[] = "/tmp/hybrid-bench-XXXXXX";
    int file = mkstemp(path);
    if (write(file, code.elf.data(), code.elf.size()) !=
        ssize_t(code.elf.size()))
      error = "cannot write the kernel";
    close(file);
    void *library = dlopen(path, RTLD_NOW);
    // HYBRID_BENCH_KEEP leaves the object for a disassembler.
    if (!std::getenv("HYBRID_BENCH_KEEP"))
      unlink(path);
    if (library)
      function = reinterpret_cast<Function>(dlsym(library, name.c_str()));
    else
      error = dlerror();
  }

  void *addMemory(llvm::ArrayRef<int64_t> sizes, int64_t count) {
    View view{
        std::aligned_alloc(64, llvm::alignTo(4 * count + 64, 64)), {}, {}};
    int64_t stride = 1;
    for (int64_t dim = sizes.size() - 1; dim >= 0; --dim) {
      view.sizes[dim] = sizes[dim];
      view.strides[dim] = stride;
      stride *= sizes[dim];
    }
    views.push_back(view);
    return view.base;
  }

  std::string name;
  Function function = nullptr;
  std::vector<View> views;
  std::vector<int64_t> grid;
  int64_t tasks = 1;
  void *scratch = nullptr;
};

/// The levels that this processor runs.
inline std::vector<cpu::Level> levelsHere() {
  std::vector<cpu::Level> levels{cpu::Level::Base};
  if (__builtin_cpu_supports("x86-64-v3"))
    levels.push_back(cpu::Level::V3);
  if (__builtin_cpu_supports("x86-64-v4"))
    levels.push_back(cpu::Level::V4);
  return levels;
}

} // namespace hybrid::bench

#endif // HYBRID_BENCH_LOADEDPROGRAM_H
