//===- KernelHarness.h - runs compiled programs beside the interpreter ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TARGET_CPU_KERNELHARNESS_H
#define HYBRID_TEST_UNIT_TARGET_CPU_KERNELHARNESS_H

#include "../../Tile/ProgramTest.h"
#include "hybrid/Target/CPU/Compile.h"
#include <memory>

namespace hybrid::cpu {

/// struct hyb_view of the kernel border.
struct KernelView {
  void *base;
  int64_t sizes[4];
  int64_t strides[4];
};

/// A compiled program, loaded into this process.
class LoadedKernel {
public:
  LoadedKernel(const CompiledCode &code, llvm::StringRef symbol);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel &) = delete;

  /// Calls the kernel for every task of the grid. Scratch holds NaN before.
  void run(llvm::ArrayRef<KernelView> views, llvm::ArrayRef<int64_t> grid,
           llvm::ArrayRef<bool> parallel) const;

private:
  using Function = void (*)(const KernelView *, const int64_t *, int64_t,
                            void *);
  void *library = nullptr;
  Function function = nullptr;
  int64_t scratchBytes = 0;
};

/// The levels that this processor runs; all of them on x86-64-v4.
llvm::SmallVector<Level> levelsHere();

/// The grid of a program in a call.
struct Grid {
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<bool> parallel;
};
mlir::FailureOr<Grid> gridOf(tile::ProgramOp program,
                             llvm::ArrayRef<int64_t> symbols);

/// As tile::interpret, with machine code of a level: f32 in place of double,
/// i32 kept.
mlir::LogicalResult runCompiled(tile::ProgramOp program,
                                llvm::ArrayRef<tile::HostView> views,
                                llvm::ArrayRef<int64_t> symbols, Level level);

/// The same with a kernel that was loaded before.
mlir::LogicalResult runLoaded(const LoadedKernel &kernel,
                              tile::ProgramOp program,
                              llvm::ArrayRef<tile::HostView> views,
                              llvm::ArrayRef<int64_t> symbols);

} // namespace hybrid::cpu

namespace hybrid::target {

class KernelTest : public tile::ProgramTest {
protected:
  /// Runs the program in the interpreter (f64) and, from the same state, at
  /// every level; buffers must agree within `tolerance` times the largest
  /// magnitude of the buffer, or 1.
  void compare(tile::ProgramOp program,
               llvm::ArrayRef<tile::HostBuffer *> buffers,
               llvm::ArrayRef<int64_t> symbols, double tolerance = 2e-6);
};

} // namespace hybrid::target

namespace hybrid::cpu {
using target::KernelTest;
} // namespace hybrid::cpu

#endif // HYBRID_TEST_UNIT_TARGET_CPU_KERNELHARNESS_H
