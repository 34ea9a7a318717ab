//===- Compile.cpp - from a spec to an artefact -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Compile.h"

#include "Errors.h"
#include "hybrid/Artefact/Assemble.h"
#include "hybrid/Driver/SpecText.h"
#include "hybrid/Driver/Statistics.h"
#include "hybrid/Graph/ModelTables.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Plan/MemoryPlan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
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

Outcome hybrid::internalError(const PhaseInfo &phase, ModuleOp before,
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

Outcome Compiler::runPhase(Phase phase, ModuleOp module, StringRef target) {
  const PhaseInfo &info = phaseInfo(phase);
  std::string pipeline = phasePipeline(phase, target);
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
  if (options.statistics)
    options.statistics->watch(passes, info.name);
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

Outcome hybrid::fail(const Twine &message) {
  llvm::errs() << "hybridc: error: " << message << "\n";
  return Outcome::BadInput;
}

Outcome hybrid::failUsage(const Twine &message) {
  llvm::errs() << "hybridc: error: " << message << "; see hybridc --help\n";
  return Outcome::Usage;
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

/// Dumps under the name of the target as well, where a phase runs per target
/// and there are several. `text` is made only when it is wanted.
Outcome Compiler::dumpFor(StringRef target, Phase phase, StringRef suffix,
                          llvm::function_ref<std::string()> text) {
  if (options.dumpFolder.empty())
    return Outcome::Ok;
  if (options.targets.size() == 1 || phase < Phase::Schedule)
    return dump(phase, suffix, text());
  std::string name = target.str();
  std::replace(name.begin(), name.end(), ':', '-');
  return dump(phase, name + "." + suffix.str(), text());
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

Phase hybrid::firstPhaseOf(ModuleOp module) {
  Phase first = Phase::Spec;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto entry = function->getAttrOfType<StringAttr>("hybrid.entry")) {
      if (entry == "backward")
        return Phase::Fuse;
      first = Phase::Grad;
    }
  return first;
}

/// Launches are of one target, and are not scheduled again.
static LogicalResult checkIsNotScheduled(ModuleOp module) {
  WalkResult result = module.walk([](DispatchOp dispatch) {
    dispatch.emitOpError() << "is a launch, which phase 'schedule' makes, and "
                              "compiling begins in front of it; give a spec or "
                              "what phase 'fuse' writes, or run later passes "
                              "with hybrid-opt";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Compiling would begin behind the phases that a model still needs, and leave
/// it out.
static LogicalResult checkBegins(ModuleOp module, Phase first) {
  if (first == Phase::Spec)
    return success();
  for (Operation &op : *module.getBody())
    if (isa<ModelOp, StackOp>(op))
      return op.emitOpError() << "is beside a function with 'hybrid.entry', "
                                 "with which compiling "
                                 "begins in a later phase; compile them apart";
  return success();
}

Outcome Compiler::run(llvm::SourceMgr &sources) {
  if (Outcome outcome = checkOptions(options); outcome != Outcome::Ok)
    return outcome;
  if (failed(checkSpecText(sources, context)))
    return Outcome::BadInput;
  spec = sources.getMemoryBuffer(sources.getMainFileID())->getBuffer().str();

  OwningOpRef<ModuleOp> module;
  {
    TimingScope parsing = timing.nest("parse");
    module = parseSpec(sources, context);
  }
  if (!module || failed(checkIsNotScheduled(*module)))
    return Outcome::BadInput;

  firstPhase = firstPhaseOf(*module);
  if (failed(checkBegins(*module, firstPhase)))
    return Outcome::BadInput;
  if (Outcome outcome = runPhases(Phase::Spec, Phase::Schedule, *module,
                                  options.targets.front());
      outcome != Outcome::Ok || options.lastPhase < Phase::Schedule)
    return outcome;

  std::vector<ArtefactTarget> made;
  for (const std::string &target : options.targets) {
    OwningOpRef<ModuleOp> scheduled = module->clone();
    made.push_back({target, {}, {}});
    if (Outcome outcome = compileFor(*scheduled, made.back());
        outcome != Outcome::Ok || options.isOfOneTarget())
      return outcome;
    if (made.size() == options.targets.size())
      return writeArtefact(*scheduled, made);
  }
  return Outcome::Internal;
}

/// Runs the phases from `begin` to before `end`, up to the last one asked for,
/// whose module is written. Those that the input is past change nothing.
Outcome Compiler::runPhases(Phase begin, Phase end, ModuleOp module,
                            StringRef target) {
  for (const PhaseInfo &info : phases()) {
    if (info.phase < begin || info.phase >= end)
      continue;
    if (info.phase >= firstPhase)
      if (Outcome outcome = runPhase(info.phase, module, target);
          outcome != Outcome::Ok)
        return outcome;
    if (Outcome outcome = dumpFor(target, info.phase, "mlir",
                                  [&] { return printModule(module); });
        outcome != Outcome::Ok)
      return outcome;
    if (info.phase == options.lastPhase)
      return write(printModule(module));
  }
  return Outcome::Ok;
}

/// Numbers of phase `plan`.
void Compiler::countPlan(const Plan &plan) {
  if (!options.statistics)
    return;
  uint64_t launches = 0, alternatives = 0, buffers = 0;
  for (const PlanEntry &entry : plan.entries) {
    launches += entry.launches.size();
    for (const PlanLaunch &launch : entry.launches)
      alternatives += launch.alternatives.size();
    for (const PlanBuffer &buffer : entry.buffers)
      buffers += buffer.kind == BufferKind::Arena;
  }
  auto add = [&](StringRef name, StringRef description, uint64_t value) {
    options.statistics->add("plan", "", name, description, value);
  };
  add("entries", "Entry points", plan.entries.size());
  add("kernels", "Distinct programs that are launched", plan.kernels.size());
  add("launches", "Launches of all entries", launches);
  add("alternatives", "Programs that they choose among", alternatives);
  add("buffers", "Buffers of the arenas", buffers);
}

Outcome Compiler::compileFor(ModuleOp module, ArtefactTarget &made) {
  if (Outcome outcome =
          runPhases(Phase::Schedule, Phase::Plan, module, made.name);
      outcome != Outcome::Ok || options.lastPhase < Phase::Plan)
    return outcome;
  FailureOr<Plan> plan = buildPlan(module);
  if (failed(plan))
    return Outcome::Internal;
  made.plan = std::move(*plan);
  auto json = [&] {
    return llvm::formatv("{0:2}", planToJSON(made.plan)).str() + "\n";
  };
  if (Outcome outcome = dumpFor(made.name, Phase::Plan, "json", json);
      outcome != Outcome::Ok)
    return outcome;
  countPlan(made.plan);
  if (options.printMemoryPlan)
    return writeMemoryPlan(module, made);
  if (options.lastPhase == Phase::Plan)
    return write(json());
  return made.name == "cpu" ? makeCodeForCPU(module, made)
                            : makeCodeForCUDA(module, made);
}

/// Functions of their inputs alone need no model around them: a module of them
/// that has no tables gets empty ones.
static void addTablesOfFunctions(ModuleOp module, StringRef name) {
  auto isModel = [](func::FuncOp function) {
    auto entry = function->getAttrOfType<StringAttr>("hybrid.entry");
    return entry && llvm::is_contained(
                        {"loss", "backward", "extend", "extend_all", "update"},
                        entry.getValue());
  };
  if (!module->hasAttr("hybrid.meta") && !module->hasAttr("hybrid.params") &&
      !module->hasAttr("hybrid.states") &&
      llvm::none_of(module.getOps<func::FuncOp>(), isModel))
    setModelTables(
        module,
        {{name.str(), 0, 0, Float32Type::get(module.getContext())}, {}, {}});
}

Outcome Compiler::writeArtefact(ModuleOp module,
                                ArrayRef<ArtefactTarget> targets) {
  addTablesOfFunctions(module, module.getName().value_or(
                                   llvm::sys::path::stem(options.inputPath)));
  FailureOr<ModelTables> tables = getModelTables(module);
  if (failed(tables))
    return Outcome::BadInput;
  llvm::Expected<std::string> bytes = assembleArtefact(spec, *tables, targets);
  if (!bytes)
    return fail(llvm::toString(bytes.takeError()));
  return write(*bytes);
}
