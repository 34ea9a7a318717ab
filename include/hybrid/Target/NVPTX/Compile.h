//===- Compile.h - tile programs to PTX and cubins -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_NVPTX_COMPILE_H
#define HYBRID_TARGET_NVPTX_COMPILE_H

#include "hybrid/Target/ProgramCache.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace hybrid::nvptx {

/// A tensor map of a kernel: of which view (argument number), and the box that
/// one copy reads, a size per dim of the view. Boxes are swizzled in rows of
/// 128 bytes.
struct TensorMap {
  int64_t view;
  std::string type; // bf16 or f16
  std::vector<int64_t> box;
};

/// One `.visible .entry`. A launch has one block per task (or fewer, of a
/// kernel that is persistent), `threads` threads a block, all along x, and
/// `sharedBytes` of dynamic shared memory. After its structure a kernel takes
/// each tensor map by value: 128 bytes, aligned to 64.
struct Kernel {
  std::string symbol;
  int64_t sharedBytes;
  int64_t threads;
  std::vector<TensorMap> maps = {};
  /// Whether it may begin before the kernel in front of it has ended: it waits
  /// for that end by itself.
  bool overlaps = false;
  /// Whether it may be started with fewer blocks than tasks: each takes
  /// several.
  bool persistent = false;
  /// Blocks that registers leave room for on a multiprocessor, at least.
  int64_t blocks = 1;
};

struct CompiledPtx {
  std::string ptx;
  std::vector<Kernel> kernels;
};

using ProgramCache = hybrid::ProgramCache<CompiledPtx>;

struct CompileOptions {
  /// The newest PTX version that the driver takes, as ten times the version
  /// (80 is PTX 8.0). The oldest version that the chip allows is written; it is
  /// an error when that is newer than this.
  int64_t newestPtx = 90;
  /// Threads that compile. The result does not depend on it.
  unsigned jobs = 1;
  /// Set when a program needs more shared memory than a block of the chip can
  /// have: its sizes are those of the input.
  bool *tooLarge = nullptr;
  /// May be null; of one chip and PTX version.
  ProgramCache *cache = nullptr;
};

/// Compiles the named programs of a module, which is not changed. A kernel is
///
///     .visible .entry name(.param .align 8 .b8 args[72 * n + 32])
///
/// (and tensor maps, where a `tile.schedule` for the chip says so), with one
/// structure by value: n `hyb_view` in the order of the program's
/// arguments, then `int64_t grid[4]`. The task is %ctaid.x: the index over the
/// parallel grid dims, the last fastest; ordered dims are loops inside. `chip`
/// is sm_80, sm_89, sm_90, sm_90a, sm_100a or sm_120a; another one, or a
/// program that needs more shared memory than a block of the chip can have, is
/// an error at the program.
mlir::FailureOr<CompiledPtx> compile(mlir::ModuleOp module,
                                     llvm::ArrayRef<llvm::StringRef> symbols,
                                     llvm::StringRef chip,
                                     const CompileOptions &options = {});

/// What the assembler said of one kernel.
struct KernelResources {
  std::string symbol;
  int64_t registers = 0;
  /// Bytes per thread that do not fit into registers.
  int64_t spillStores = 0, spillLoads = 0;
  /// Bytes per thread of local memory, spills included.
  int64_t stack = 0;
  /// Static shared memory and barriers, as printed.
  int64_t barriers = 0;
  /// Warnings and performance notices, such as a serialised product.
  std::vector<std::string> notices;
};

struct AssembledCode {
  std::string cubin;
  std::vector<KernelResources> kernels;
};

struct AssembleOptions {
  /// The assembler; empty: PATH, then CUDA_HOME, CUDA_PATH, and the newest
  /// /usr/local/cuda*.
  std::string ptxas;
};

/// The assembler that `assemble` would run, or an empty string.
std::string findAssembler(const AssembleOptions &options = {});

/// Runs `ptxas -v` on PTX for `chip`. Without an assembler, or when it refuses
/// the text, the error at `loc` says what was looked for or what it printed.
mlir::FailureOr<AssembledCode> assemble(mlir::Location loc, llvm::StringRef ptx,
                                        llvm::StringRef chip,
                                        const AssembleOptions &options = {});

} // namespace hybrid::nvptx

#endif // HYBRID_TARGET_NVPTX_COMPILE_H
