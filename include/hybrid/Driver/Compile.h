//===- Compile.h - from a spec to an artefact -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_DRIVER_COMPILE_H
#define HYBRID_DRIVER_COMPILE_H

#include "hybrid/Artefact/Assemble.h"
#include "hybrid/Driver/Phases.h"
#include "hybrid/Plan/MemoryPlan.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Support/Timing.h"
#include <string>
#include <vector>

namespace llvm {
class SourceMgr;
} // namespace llvm

namespace hybrid {

class Statistics;

namespace nvptx {
struct CompiledPtx;
} // namespace nvptx

/// How a run of the compiler ended, and the exit code of its program.
enum class Outcome {
  Ok = 0,
  /// The input or the file system is at fault; an error was printed.
  BadInput = 1,
  /// The command line is at fault.
  Usage = 2,
  /// The compiler is at fault; a reproducer was written.
  Internal = 70,
};

/// What is written of the code that the last phases make.
enum class Emit {
  Artefact,
  /// Of one level of the CPU: LLVM IR, assembly, and the shared object whose
  /// functions are the kernels.
  LLVMIR,
  Assembly,
  Object,
  /// Of one GPU.
  PTX,
};

struct CompileOptions {
  std::string inputPath;
  /// `-` is the standard output, for everything but an artefact.
  std::string outputPath;
  std::vector<std::string> targets = {"cpu"};
  std::vector<std::string> cpuLevels = {"x86-64", "x86-64-v3", "x86-64-v4"};
  /// With phase `target`: anything but an artefact.
  Phase lastPhase = Phase::Artefact;
  Emit emit = Emit::Artefact;
  /// Threads that make code. The bytes do not depend on it.
  unsigned jobs = 1;
  /// Folder for the module after every phase; empty: none.
  std::string dumpFolder;
  bool printMemoryPlan = false;
  /// What the memory plan is printed for.
  SymbolValues capacities = {};
  /// Threads of the runtime that it is printed for.
  unsigned runtimeThreads = 1;
  /// When not null, receives the numbers of every phase.
  Statistics *statistics = nullptr;

  /// Whether what is to be written belongs to one target.
  bool isOfOneTarget() const {
    return printMemoryPlan ||
           (lastPhase >= Phase::Schedule && lastPhase < Phase::Artefact);
  }
};

/// Whether a text could name a target, a level of the CPU's instruction set, or
/// a device of the runtime. What could not is wrong usage; what could and is
/// not there is bad input.
bool isTargetName(llvm::StringRef text);
bool isLevelName(llvm::StringRef text);
bool isDeviceName(llvm::StringRef text);

/// Refuses, before any file is opened, options that are no names or do not go
/// together (`Usage`), and names that this compiler has no code for
/// (`BadInput`).
Outcome checkOptions(const CompileOptions &options);

/// Compiles one spec. Errors go to the diagnostic handlers of `context`.
class Compiler {
public:
  Compiler(mlir::MLIRContext &context, const CompileOptions &options,
           mlir::TimingScope &timing)
      : context(context), options(options), timing(timing) {}

  Outcome run(llvm::SourceMgr &sources);

private:
  Outcome runPhase(Phase phase, mlir::ModuleOp module, llvm::StringRef target);
  Outcome runPhases(Phase begin, Phase end, mlir::ModuleOp module,
                    llvm::StringRef target);
  Outcome dump(Phase phase, llvm::StringRef suffix, llvm::StringRef text);
  Outcome dumpFor(llvm::StringRef target, Phase phase, llvm::StringRef suffix,
                  llvm::function_ref<std::string()> text);
  Outcome write(llvm::StringRef bytes);
  Outcome writeMemoryPlan(mlir::ModuleOp module, ArtefactTarget &made);
  void countPlan(const Plan &plan);
  Outcome compileFor(mlir::ModuleOp module, ArtefactTarget &made);
  Outcome generate(mlir::ModuleOp module,
                   llvm::function_ref<mlir::LogicalResult()> run,
                   const bool *tooLarge = nullptr);
  Outcome makeCodeForCPU(mlir::ModuleOp module, ArtefactTarget &made);
  Outcome makeCodeForCUDA(mlir::ModuleOp module, ArtefactTarget &made);
  Outcome writeArtefact(mlir::ModuleOp module,
                        llvm::ArrayRef<ArtefactTarget> targets);

  mlir::MLIRContext &context;
  const CompileOptions &options;
  mlir::TimingScope &timing;
  std::string spec;
  /// Of the input, which may be a spec or what a spec becomes.
  Phase firstPhase = Phase::Spec;
};

/// Gives the kernels of a plan what their code says of a launch.
void describeKernels(Plan &plan, const nvptx::CompiledPtx &compiled);

/// The first phase that has something to do: the input may be a spec or the
/// functions that a spec becomes.
Phase firstPhaseOf(mlir::ModuleOp module);

/// Writes `module` and the pipeline that failed on it to a file in the folder
/// for temporary files, for `hybrid-opt --run-reproducer`, and returns its
/// path.
std::string writeReproducer(mlir::ModuleOp module, llvm::StringRef pipeline);

} // namespace hybrid

#endif // HYBRID_DRIVER_COMPILE_H
