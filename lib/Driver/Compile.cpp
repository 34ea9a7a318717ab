//===- Compile.cpp - from a spec to an artefact -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Compile.h"

#include "hybrid/Artefact/Assemble.h"
#include "hybrid/Graph/ModelTables.h"
#include "hybrid/Plan/MemoryPlan.h"
#include "hybrid/Target/CPU/Compile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Reproducers
//===----------------------------------------------------------------------===//

std::string hybrid::writeReproducer(ModuleOp module, StringRef pipeline) {
  SmallString<128> path;
  int descriptor = -1;
  if (llvm::sys::fs::createTemporaryFile("hybridc-reproducer", "mlir",
                                         descriptor, path))
    return {};
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  PassManager passes(module.getContext());
  std::string ignored;
  llvm::raw_string_ostream errors(ignored);
  if (failed(parsePassPipeline(pipeline, passes, errors))) {
    module.print(os);
    return path.str().str();
  }
  os.close();
  makeReproducer(ModuleOp::getOperationName(), passes.getPasses(), module, path,
                 /*disableThreads=*/true, /*verifyPasses=*/true);
  return path.str().str();
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

/// Reports a failure of our own and how to repeat it.
static Outcome internalError(const PhaseInfo &phase, ModuleOp before,
                             StringRef pipeline, StringRef what) {
  std::string path = writeReproducer(before, pipeline);
  InFlightDiagnostic error = emitError(UnknownLoc::get(before.getContext()))
                             << "internal error in phase '" << phase.name
                             << "': " << what;
  if (!path.empty())
    error.attachNote() << "reproducer: " << path
                       << "; repeat with: hybrid-opt --run-reproducer " << path;
  error.report();
  return Outcome::Internal;
}

Outcome Compiler::runPhase(Phase phase, ModuleOp module) {
  const PhaseInfo &info = phaseInfo(phase);
  // Targets are cut off at their first kind: `cuda:sm_90a` is `cuda` to passes.
  std::string pipeline = phasePipeline(phase, options.targets.front());
  if (pipeline.empty())
    return Outcome::Ok;

  // Verified below, so that IR left invalid by a pass is told apart from an
  // input that a pass refuses.
  PassManager passes(&context, ModuleOp::getOperationName());
  passes.enableVerifier(false);
  if (failed(applyPassManagerCLOptions(passes)))
    return Outcome::Usage;
  TimingScope phaseTiming = timing.nest(info.name);
  passes.enableTiming(phaseTiming);
  std::string parseErrors;
  llvm::raw_string_ostream errors(parseErrors);
  if (failed(parsePassPipeline(pipeline, passes, errors))) {
    emitError(UnknownLoc::get(&context))
        << "phase '" << info.name << "' is not built in: " << parseErrors;
    return Outcome::Internal;
  }

  OwningOpRef<ModuleOp> before = module.clone();
  LogicalResult result = failure();
  bool survived = llvm::CrashRecoveryContext().RunSafelyOnThread(
      [&] { result = passes.run(module); }, /*RequestedStackSize=*/64 << 20);
  if (!survived)
    return internalError(info, *before, pipeline, "the compiler crashed");
  if (failed(result))
    return Outcome::BadInput;
  if (failed(verify(module)))
    return internalError(info, *before, pipeline, "the phase left invalid IR");
  return Outcome::Ok;
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

/// An error that has no place in the spec.
static Outcome fail(const Twine &message) {
  llvm::errs() << "hybridc: error: " << message << "\n";
  return Outcome::BadInput;
}

Outcome Compiler::dump(Phase phase, StringRef suffix, StringRef text) {
  if (options.dumpFolder.empty())
    return Outcome::Ok;
  SmallString<128> path(options.dumpFolder);
  // The number keeps the files in the order of the phases.
  llvm::sys::path::append(path, llvm::formatv("{0}-{1}.{2}",
                                              static_cast<unsigned>(phase),
                                              phaseInfo(phase).name, suffix)
                                    .str());
  std::error_code code = llvm::sys::fs::create_directories(options.dumpFolder);
  llvm::Error error = code ? llvm::createStringError(
                                 code, "cannot create '" + options.dumpFolder +
                                           "': " + code.message())
                           : writeFileAtomically(path, text);
  if (!error)
    return Outcome::Ok;
  return fail(llvm::toString(std::move(error)));
}

Outcome Compiler::write(StringRef bytes) {
  if (options.outputPath == "-") {
    llvm::outs() << bytes;
    llvm::outs().flush();
    return Outcome::Ok;
  }
  if (llvm::Error error = writeFileAtomically(options.outputPath, bytes))
    return fail(llvm::toString(std::move(error)));
  return Outcome::Ok;
}

static std::string printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags());
  return text + "\n";
}

//===----------------------------------------------------------------------===//
// The way of a spec
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral builtTargets[] = {"cpu"};
static constexpr llvm::StringLiteral builtLevels[] = {"x86-64", "x86-64-v3",
                                                      "x86-64-v4"};

Outcome Compiler::checkTargets() {
  auto refuse = [&](StringRef what, StringRef given,
                    ArrayRef<llvm::StringLiteral> known) {
    return fail(what + " '" + given + "' is not built in; this hybridc has: " +
                llvm::join(known, ", "));
  };
  for (StringRef target : options.targets)
    if (!llvm::is_contained(builtTargets, target))
      return refuse("target", target, builtTargets);
  for (StringRef level : options.cpuLevels)
    if (!llvm::is_contained(builtLevels, level))
      return refuse("cpu level", level, builtLevels);
  return Outcome::Ok;
}

/// The input may be a spec or the functions that a spec becomes.
static Phase firstPhase(ModuleOp module) {
  Phase first = Phase::Spec;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto entry = function->getAttrOfType<StringAttr>("hybrid.entry")) {
      if (entry == "backward")
        return Phase::Fuse;
      first = Phase::Grad;
    }
  return first;
}

Outcome Compiler::run(llvm::SourceMgr &sources) {
  if (Outcome outcome = checkTargets(); outcome != Outcome::Ok)
    return outcome;
  spec = sources.getMemoryBuffer(sources.getMainFileID())->getBuffer().str();

  OwningOpRef<ModuleOp> module;
  {
    TimingScope parsing = timing.nest("parse");
    module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  }
  if (!module)
    return Outcome::BadInput;

  Phase first = firstPhase(*module);
  for (const PhaseInfo &info : phases()) {
    if (info.phase >= Phase::Plan)
      break;
    if (info.phase >= first)
      if (Outcome outcome = runPhase(info.phase, *module);
          outcome != Outcome::Ok)
        return outcome;
    if (!options.dumpFolder.empty())
      if (Outcome outcome = dump(info.phase, "mlir", printModule(*module));
          outcome != Outcome::Ok)
        return outcome;
    if (info.phase == options.lastPhase)
      return write(printModule(*module));
  }
  return finish(*module);
}

Outcome Compiler::finish(ModuleOp module) {
  FailureOr<Plan> plan = buildPlan(module);
  if (failed(plan))
    return Outcome::Internal;
  std::string json = llvm::formatv("{0:2}", planToJSON(*plan)).str() + "\n";
  if (Outcome outcome = dump(Phase::Plan, "json", json); outcome != Outcome::Ok)
    return outcome;
  if (options.printMemoryPlan) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (llvm::Error error = printMemoryPlan(*plan, options.capacities, os))
      return fail(llvm::toString(std::move(error)));
    llvm::outs() << text;
    return Outcome::Ok;
  }
  if (options.lastPhase == Phase::Plan)
    return write(json);
  return makeCode(module, *plan);
}

/// The symbols of all kernels; the plan has one per program.
static SmallVector<StringRef> kernelSymbols(const Plan &plan) {
  SmallVector<StringRef> symbols;
  for (const PlanKernel &kernel : plan.kernels)
    symbols.push_back(kernel.symbol);
  return symbols;
}

Outcome Compiler::makeCode(ModuleOp module, Plan &plan) {
  std::vector<ArtefactCode> code;
  std::string assembly;
  for (StringRef name : options.cpuLevels) {
    TimingScope levelTiming = timing.nest(("code for " + name).str());
    cpu::Options codeOptions;
    // Text costs a second run of the code generator.
    if (options.lastPhase == Phase::Target || !options.dumpFolder.empty())
      codeOptions.assembly = &assembly;
    assembly.clear();
    FailureOr<cpu::CompiledCode> compiled = failure();
    bool survived = llvm::CrashRecoveryContext().RunSafelyOnThread(
        [&] {
          compiled = cpu::compile(module, kernelSymbols(plan),
                                  *cpu::levelNamed(name), codeOptions);
        },
        /*RequestedStackSize=*/64 << 20);
    if (!survived || failed(compiled))
      return internalError(phaseInfo(Phase::Target), module, "builtin.module()",
                           survived ? "a tile program was refused"
                                    : "the compiler crashed");
    // A kernel has one scratch size in the plan, which must do for any level.
    for (auto [kernel, made] : llvm::zip_equal(plan.kernels, compiled->kernels))
      kernel.scratch = std::max<uint64_t>(kernel.scratch, made.scratchBytes);
    if (Outcome outcome = dump(Phase::Target, (name + ".s").str(), assembly);
        outcome != Outcome::Ok)
      return outcome;
    code.push_back({name.str(), std::move(compiled->elf)});
  }
  if (options.lastPhase == Phase::Target)
    return write(assembly);

  FailureOr<ModelTables> tables = getModelTables(module);
  if (failed(tables))
    return Outcome::BadInput;
  llvm::Expected<std::string> bytes =
      assembleArtefact(spec, *tables, plan, code);
  if (!bytes)
    return fail(llvm::toString(bytes.takeError()));
  return write(*bytes);
}
