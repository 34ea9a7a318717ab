//===- KernelHarness.h - programs as kernels, assembled -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the compiler is tested there is no GPU: kernels are assembled. With
// HYBRID_GPU_CASES=FOLDER every comparison is also written there as one file,
// which test/gpu/kernel-cases.cpp runs on a card.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TARGET_NVPTX_KERNELHARNESS_H
#define HYBRID_TEST_UNIT_TARGET_NVPTX_KERNELHARNESS_H

#include "../../Tile/ProgramTest.h"
#include "hybrid/Target/NVPTX/Compile.h"

namespace hybrid::target {

class KernelTest : public tile::ProgramTest {
protected:
  /// Compiles and assembles the program. Buffers are what it is called with,
  /// and `tolerance` times the largest magnitude of a buffer, or 1, is how far
  /// a result may be from the interpreter's (f64).
  void compare(tile::ProgramOp program,
               llvm::ArrayRef<tile::HostBuffer *> buffers,
               llvm::ArrayRef<int64_t> symbols, double tolerance = 2e-6);

private:
  void writeCase(tile::ProgramOp program, const nvptx::Kernel &kernel,
                 llvm::StringRef ptx, llvm::StringRef cubin,
                 llvm::ArrayRef<tile::HostBuffer *> buffers,
                 llvm::ArrayRef<int64_t> symbols, double tolerance);
  unsigned cases = 0;
};

} // namespace hybrid::target

#endif // HYBRID_TEST_UNIT_TARGET_NVPTX_KERNELHARNESS_H
