//===- Compile.h - tile programs to machine code -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_CPU_COMPILE_H
#define HYBRID_TARGET_CPU_COMPILE_H

#include "hybrid/Target/CPU/Level.h"
#include "hybrid/Target/ProgramCache.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace hybrid::cpu {

/// What became of one program.
struct CompiledProgram {
  /// Relocatable; it exports the program's symbol.
  std::string object;
  /// What the last argument of the kernel must point to, at least.
  int64_t scratchBytes = 0;
  /// Where asked for.
  std::string llvmIR, assembly;
};

using ProgramCache = hybrid::ProgramCache<CompiledProgram>;

struct Options {
  /// Path of `ld.lld`; empty: the one beside LLVM's tools, then one on PATH.
  std::string linker;
  /// Threads that compile. The result does not depend on it.
  unsigned jobs = 1;
  /// Text costs a second run of the code generator.
  bool wantLLVMIR = false, wantAssembly = false;
  /// May be null; not used for text.
  ProgramCache *cache = nullptr;
};

struct Kernel {
  std::string symbol;
  int64_t scratchBytes;
};

/// The code of one level.
struct CompiledCode {
  /// A position-independent ELF shared object: no imports, relative relocations
  /// only, no segment both writable and executable. It exports the kernels.
  std::string elf;
  /// In the order of the symbols asked for.
  std::vector<Kernel> kernels;
  /// Of all programs, in that order, where asked for.
  std::string llvmIR, assembly;
};

/// The passes from `tile.program` to the LLVM dialect.
void buildPipeline(mlir::OpPassManager &passes, Level level);

/// Compiles the named programs of a module, which is not changed, for each of
/// the levels. Equal inputs give equal bytes. An error is reported at the
/// program or at the module.
mlir::FailureOr<std::vector<CompiledCode>>
compileLevels(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> symbols,
              llvm::ArrayRef<Level> levels, const Options &options = {});

/// The same for one level.
mlir::FailureOr<CompiledCode> compile(mlir::ModuleOp module,
                                      llvm::ArrayRef<llvm::StringRef> symbols,
                                      Level level, const Options &options = {});

/// What the kernels of a level need as scratch, without making code.
mlir::FailureOr<std::vector<Kernel>>
measureScratch(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> symbols,
               Level level);

} // namespace hybrid::cpu

#endif // HYBRID_TARGET_CPU_COMPILE_H
