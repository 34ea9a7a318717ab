//===- Compile.h - tile programs to machine code -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_CPU_COMPILE_H
#define HYBRID_TARGET_CPU_COMPILE_H

#include "hybrid/Target/CPU/Level.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace hybrid::cpu {

struct Options {
  /// Path of `ld.lld`; empty: the one beside LLVM's tools, then one on PATH.
  std::string linker;
  /// When not null, receives the assembly of the kernels.
  std::string *assembly = nullptr;
};

struct Kernel {
  std::string symbol;
  /// What the last argument of the kernel must point to, at least.
  int64_t scratchBytes;
};

/// The code of one level.
struct CompiledCode {
  /// A position-independent ELF shared object: no imports, relative relocations
  /// only, no segment both writable and executable. It exports the kernels.
  std::string elf;
  /// In the order of the symbols asked for.
  std::vector<Kernel> kernels;
};

/// The passes from `tile.program` to the LLVM dialect.
void buildPipeline(mlir::OpPassManager &passes, Level level);

/// Compiles the named programs of a module, which is not changed. Equal inputs
/// give equal bytes. An error is reported at the program or at the module.
mlir::FailureOr<CompiledCode> compile(mlir::ModuleOp module,
                                      llvm::ArrayRef<llvm::StringRef> symbols,
                                      Level level, const Options &options = {});

} // namespace hybrid::cpu

#endif // HYBRID_TARGET_CPU_COMPILE_H
