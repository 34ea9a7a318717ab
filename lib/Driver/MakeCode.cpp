//===- MakeCode.cpp - code of the targets -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Compile.h"

#include "Errors.h"
#include "hybrid/Driver/Statistics.h"
#include "hybrid/Target/CPU/Compile.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/CrashRecoveryContext.h"

using namespace mlir;
using namespace hybrid;

/// The symbols of all kernels; the plan has one per program.
static SmallVector<StringRef> kernelSymbols(const Plan &plan) {
  SmallVector<StringRef> symbols;
  for (const PlanKernel &kernel : plan.kernels)
    symbols.push_back(kernel.symbol);
  return symbols;
}

/// Runs a code generator, whose failure is ours unless it says that the input
/// asks for too much.
Outcome Compiler::generate(ModuleOp module,
                           llvm::function_ref<LogicalResult()> run,
                           const bool *tooLarge) {
  LogicalResult result = failure();
  bool survived = llvm::CrashRecoveryContext().RunSafelyOnThread(
      [&] { result = run(); }, /*RequestedStackSize=*/64 << 20);
  if (survived && succeeded(result))
    return Outcome::Ok;
  if (survived && tooLarge && *tooLarge)
    return Outcome::BadInput;
  return internalError(phaseInfo(Phase::Target), module, "builtin.module()",
                       survived ? "a tile program was refused"
                                : "the compiler crashed");
}

static SmallVector<cpu::Level> levelsOf(const CompileOptions &options) {
  return llvm::map_to_vector(options.cpuLevels, [](const std::string &name) {
    return *cpu::levelNamed(name);
  });
}

/// A kernel has one scratch size in the plan, which must do for any level.
static void setScratch(Plan &plan, ArrayRef<cpu::Kernel> kernels) {
  for (auto [kernel, made] : llvm::zip_equal(plan.kernels, kernels))
    kernel.scratch = std::max<uint64_t>(kernel.scratch, made.scratchBytes);
}

Outcome Compiler::writeMemoryPlan(ModuleOp module, ArtefactTarget &made) {
  bool isForCPU = made.name == "cpu";
  if (isForCPU) {
    TimingScope scratchTiming = timing.nest("scratch of the kernels");
    for (cpu::Level level : levelsOf(options)) {
      FailureOr<std::vector<cpu::Kernel>> kernels = failure();
      Outcome outcome = generate(module, [&] {
        kernels = cpu::measureScratch(module, kernelSymbols(made.plan), level);
        return LogicalResult(kernels);
      });
      if (outcome != Outcome::Ok)
        return outcome;
      setScratch(made.plan, *kernels);
    }
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (llvm::Error error =
          printMemoryPlan(made.plan, options.capacities,
                          isForCPU ? options.runtimeThreads : 0, os))
    return fail(llvm::toString(std::move(error)));
  llvm::outs() << text;
  return Outcome::Ok;
}

Outcome Compiler::makeCodeForCPU(ModuleOp module, ArtefactTarget &made) {
  TimingScope codeTiming = timing.nest("code for the CPU");
  cpu::Options codeOptions;
  codeOptions.jobs = options.jobs;
  codeOptions.wantLLVMIR = options.emit == Emit::LLVMIR;
  codeOptions.wantAssembly =
      options.emit == Emit::Assembly || !options.dumpFolder.empty();
  FailureOr<std::vector<cpu::CompiledCode>> compiled = failure();
  Outcome outcome = generate(module, [&] {
    compiled = cpu::compileLevels(module, kernelSymbols(made.plan),
                                  levelsOf(options), codeOptions);
    return LogicalResult(compiled);
  });
  if (outcome != Outcome::Ok)
    return outcome;
  for (auto [level, code] : llvm::zip_equal(options.cpuLevels, *compiled)) {
    setScratch(made.plan, code.kernels);
    if (Outcome outcome =
            dump(Phase::Target, (Twine(level) + ".s").str(), code.assembly);
        outcome != Outcome::Ok)
      return outcome;
    if (options.statistics)
      options.statistics->add("target", "", "bytes-" + level,
                              "Bytes of code for the level", code.elf.size());
    made.code.push_back({"code", level, code.elf});
  }
  const cpu::CompiledCode &first = compiled->front();
  switch (options.emit) {
  case Emit::LLVMIR:
    return write(first.llvmIR);
  case Emit::Assembly:
    return write(first.assembly);
  case Emit::Object:
    return write(first.elf);
  case Emit::Artefact:
  case Emit::PTX:
    break;
  }
  return Outcome::Ok;
}

/// Remarks on what the assembler gave each kernel, and on what makes one slow.
static void remarkResources(ModuleOp module, const nvptx::AssembledCode &code) {
  using remark::RemarkOpts;
  SymbolTable programs(module);
  for (const nvptx::KernelResources &kernel : code.kernels) {
    Operation *program = programs.lookup(kernel.symbol);
    Location loc = program ? program->getLoc() : module.getLoc();
    auto say = [&](remark::detail::InFlightRemark remark, const Twine &text) {
      if (remark)
        remark << (kernel.symbol + ": " + text).str();
    };
    auto options = [](StringRef id) {
      return RemarkOpts::name(id).category("target");
    };
    say(remark::analysis(loc, options("HYB-T101")),
        Twine(kernel.registers) + " registers, " + Twine(kernel.stack) +
            " bytes of local memory");
    if (kernel.spillStores + kernel.spillLoads > 0)
      say(remark::missed(loc, options("HYB-T102")),
          Twine(kernel.spillStores) + " bytes of spill stores, " +
              Twine(kernel.spillLoads) + " of loads");
    for (const std::string &notice : kernel.notices)
      say(remark::missed(loc, options("HYB-T103")), notice);
  }
}

void hybrid::describeKernels(Plan &plan, const nvptx::CompiledPtx &compiled) {
  for (auto [kernel, code] : llvm::zip_equal(plan.kernels, compiled.kernels)) {
    kernel.scratch = code.sharedBytes;
    kernel.threads = code.threads;
    kernel.overlaps = code.overlaps;
    kernel.persistent = code.persistent;
    for (const nvptx::TensorMap &map : code.maps)
      kernel.maps.push_back({map.view, map.type, map.box});
  }
}

Outcome Compiler::makeCodeForCUDA(ModuleOp module, ArtefactTarget &made) {
  StringRef chip = StringRef(made.name).split(':').second;
  TimingScope chipTiming = timing.nest(("code for " + chip).str());
  nvptx::CompileOptions codeOptions;
  codeOptions.jobs = options.jobs;
  bool tooLarge = false;
  codeOptions.tooLarge = &tooLarge;
  FailureOr<nvptx::CompiledPtx> compiled = failure();
  auto run = [&] {
    compiled =
        nvptx::compile(module, kernelSymbols(made.plan), chip, codeOptions);
    return LogicalResult(compiled);
  };
  Outcome outcome = generate(module, run, &tooLarge);
  if (outcome != Outcome::Ok)
    return outcome;
  describeKernels(made.plan, *compiled);
  if (Outcome outcome =
          dump(Phase::Target, (chip + ".ptx").str(), compiled->ptx);
      outcome != Outcome::Ok)
    return outcome;
  if (options.lastPhase == Phase::Target)
    return write(compiled->ptx);
  if (!nvptx::findAssembler().empty()) {
    FailureOr<nvptx::AssembledCode> assembled =
        nvptx::assemble(module.getLoc(), compiled->ptx, chip);
    if (failed(assembled))
      return Outcome::Internal;
    remarkResources(module, *assembled);
    made.code.push_back({"cubin", chip.str(), std::move(assembled->cubin)});
  } else {
    emitWarning(module.getLoc())
        << "no ptxas is found in PATH, CUDA_HOME, CUDA_PATH or "
           "/usr/local/cuda*; the "
           "artefact holds PTX, which the driver assembles when it is loaded";
  }
  made.code.push_back({"ptx", chip.str(), std::move(compiled->ptx)});
  return Outcome::Ok;
}
