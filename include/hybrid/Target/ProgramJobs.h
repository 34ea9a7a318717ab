//===- ProgramJobs.h - tile programs on several threads -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code generators take one program at a time, each thread in a context of its
// own, so what they make depends neither on the number of threads nor on what
// else is in the module.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_PROGRAMJOBS_H
#define HYBRID_TARGET_PROGRAMJOBS_H

#include "hybrid/Tile/TileOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace hybrid {

/// The named programs of `module`; an error at the module when one is missing.
mlir::FailureOr<llvm::SmallVector<tile::ProgramOp>>
findPrograms(mlir::ModuleOp module, llvm::ArrayRef<llvm::StringRef> symbols);

/// A module with `program` alone, and a schedule of it where there is one,
/// without locations, as bytecode.
std::string bytecodeOf(tile::ProgramOp program, tile::ScheduleOp schedule = {});

/// What one thread compiles programs in.
class ProgramContext {
public:
  ProgramContext();

  /// Calls `run` with the module of `bytecode`. The error has what `run`
  /// returned, or the diagnostics when that is a failure without words.
  llvm::Error with(llvm::StringRef bytecode,
                   llvm::function_ref<llvm::Error(mlir::ModuleOp)> run);
  /// The failure without words.
  static llvm::Error diagnosed();

private:
  mlir::MLIRContext context;
};

/// Runs the jobs 0 to `count` - 1, on as many threads. Returns what went wrong
/// in each, a crash included; empty where nothing did.
std::vector<std::string>
runProgramJobs(unsigned threads, size_t count,
               llvm::function_ref<llvm::Error(ProgramContext &, size_t)> job);

} // namespace hybrid

#endif // HYBRID_TARGET_PROGRAMJOBS_H
