//===- CompileProgram.h - one tile program to an object -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_COMPILEPROGRAM_H
#define HYBRID_LIB_TARGET_CPU_COMPILEPROGRAM_H

#include "hybrid/Target/CPU/Compile.h"
#include "hybrid/Target/ProgramJobs.h"

namespace hybrid::cpu {

/// The first passes of buildPipeline, after which functions say how much
/// scratch they need.
void buildPlacementPipeline(mlir::OpPassManager &passes, Level level);

/// `bytecode` is a module with one program. The object depends on it and on the
/// level alone.
llvm::Expected<CompiledProgram> compileProgram(ProgramContext &context,
                                               llvm::StringRef bytecode,
                                               Level level,
                                               const Options &options);

} // namespace hybrid::cpu

#endif // HYBRID_LIB_TARGET_CPU_COMPILEPROGRAM_H
