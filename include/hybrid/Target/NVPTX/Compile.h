//===- Compile.h - tile programs to PTX -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_NVPTX_COMPILE_H
#define HYBRID_TARGET_NVPTX_COMPILE_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace hybrid::nvptx {

/// Threads of a block.
inline constexpr int64_t kThreads = 128;

struct Kernel {
  std::string symbol;
  /// Dynamic shared memory of a block, in bytes.
  int64_t sharedBytes;
};

struct CompiledPtx {
  std::string ptx;
  std::vector<Kernel> kernels;
};

/// Compiles the named programs of a module, which is not changed, by a first
/// generic path: one block of `kThreads` threads per task, which share the loop
/// nests of the CPU's lowering with a barrier after each; tiles live in dynamic
/// shared memory. A kernel is
///
///     .entry name(const hyb_view *views, const int64_t *grid)
///
/// with the task in %ctaid.x. `chip` is sm_80, sm_89, sm_90, sm_90a, sm_100a or
/// sm_120a; another one, or a program that needs more shared memory than a
/// block of the chip can have, is an error at the program.
mlir::FailureOr<CompiledPtx> compile(mlir::ModuleOp module,
                                     llvm::ArrayRef<llvm::StringRef> symbols,
                                     llvm::StringRef chip);

} // namespace hybrid::nvptx

#endif // HYBRID_TARGET_NVPTX_COMPILE_H
