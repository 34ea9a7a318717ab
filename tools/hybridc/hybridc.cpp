//===- hybridc.cpp - the compiler -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report.h"
#include "usage.h"
#include "verify.h"

#include "hybrid/Artefact/Container.h"
#include "hybrid/Driver/Compile.h"
#include "hybrid/Driver/Register.h"
#include "hybrid/Driver/Remarks.h"
#include "hybrid/Driver/SpecText.h"
#include "hybrid/Driver/Statistics.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/Threading.h"

using namespace hybrid;
namespace cl = llvm::cl;

//===----------------------------------------------------------------------===//
// Command line
//===----------------------------------------------------------------------===//

static cl::OptionCategory compileOptions("Compiling");
static cl::OptionCategory lookOptions("Looking inside");
static cl::OptionCategory memoryOptions("Memory plan");

static cl::opt<std::string> inputPath(cl::Positional, cl::desc("SPEC"),
                                      cl::Required, cl::cat(compileOptions));
static cl::opt<std::string> outputPath(
    "o", cl::value_desc("file"),
    cl::desc("where to write; default: SPEC with .hbx, or the standard "
             "output for earlier phases"),
    cl::cat(compileOptions));
static cl::list<std::string>
    targets("target", cl::CommaSeparated, cl::value_desc("target,..."),
            cl::desc("what to make code for; default: cpu"),
            cl::cat(compileOptions));
static cl::list<std::string> cpuLevels(
    "cpu-levels", cl::CommaSeparated, cl::value_desc("level,..."),
    cl::desc("levels of the CPU's instruction set, of which the runtime "
             "takes the best; default: x86-64,x86-64-v3,x86-64-v4"),
    cl::cat(compileOptions));

static cl::opt<Emit> emit(
    "emit", cl::desc("what to write:"), cl::init(Emit::Artefact),
    cl::values(clEnumValN(Emit::Artefact, "hbx", "an artefact (default)"),
               clEnumValN(Emit::LLVMIR, "llvm", "LLVM IR of one CPU level"),
               clEnumValN(Emit::Assembly, "asm", "assembly of one CPU level"),
               clEnumValN(Emit::Object, "obj",
                          "the shared object of one CPU level"),
               clEnumValN(Emit::PTX, "ptx", "PTX of one GPU")),
    cl::cat(compileOptions));
static cl::opt<unsigned>
    jobs("jobs", cl::value_desc("n"),
         cl::desc("threads that make code, which does not depend on it; "
                  "default: one per processor"),
         cl::init(0), cl::cat(compileOptions));

static cl::opt<std::string> compileTo(
    "compile-to", cl::value_desc("phase"),
    cl::desc("stop after a phase and write what it gives: spec, stack, "
             "graph, grad, fuse, schedule, tile, plan, target, artefact"),
    cl::init("artefact"), cl::cat(lookOptions));
static cl::opt<std::string>
    dumpFolder("dump-phases-to", cl::value_desc("folder"),
               cl::desc("write what every phase gives to a file in the folder"),
               cl::cat(lookOptions));
static cl::opt<std::string> remarks(
    "remarks", cl::ValueOptional, cl::value_desc("regex"),
    cl::desc("print what was decided and why, of the phases that match"),
    cl::cat(lookOptions));

static cl::opt<std::string> statisticsPath(
    "statistics", cl::ValueOptional, cl::value_desc("file"),
    cl::desc("what every phase did, in numbers: a table on the standard error, "
             "or JSON in a file"),
    cl::cat(lookOptions));

static cl::opt<bool>
    memoryPlan("print-memory-plan",
               cl::desc("print the bytes each entry takes at the capacities "
                        "below, instead of compiling"),
               cl::cat(memoryOptions));
static cl::opt<int64_t> tokens("tokens", cl::desc("rows of the packed stream"),
                               cl::init(1024), cl::cat(memoryOptions));
static cl::opt<int64_t> segments("segments", cl::desc("sequences in a call"),
                                 cl::init(1), cl::cat(memoryOptions));
static cl::opt<int64_t>
    longest("longest",
            cl::desc("rows of the longest sequence; default: tokens"),
            cl::init(-1), cl::cat(memoryOptions));
static cl::opt<int64_t> slots("slots", cl::desc("sequences a state holds"),
                              cl::init(1), cl::cat(memoryOptions));
static cl::opt<int64_t> context("context", cl::desc("tokens a slot holds"),
                                cl::init(1024), cl::cat(memoryOptions));
static cl::opt<int64_t> depth("depth",
                              cl::desc("tokens that can be rolled back"),
                              cl::init(0), cl::cat(memoryOptions));
static cl::opt<unsigned>
    runtimeThreads("runtime-threads",
                   cl::desc("of the runtime; default: one per processor"),
                   cl::init(0), cl::cat(memoryOptions));

/// The exit code, once all that was printed has arrived. (LLVM would abort with
/// a message of its own.)
static int finishOutput(int code) {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return code;
  llvm::errs() << "hybridc: error: cannot write the standard output: "
               << llvm::outs().error().message() << "\n";
  llvm::outs().clear_error();
  return static_cast<int>(Outcome::BadInput);
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static std::optional<Phase> parsePhase(llvm::StringRef name) {
  for (const PhaseInfo &info : phases())
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}

static std::string phaseNames() {
  return llvm::join(
      llvm::map_range(phases(),
                      [](const PhaseInfo &info) { return info.name.str(); }),
      ", ");
}

static unsigned orProcessors(unsigned count) {
  return count ? count : llvm::hardware_concurrency().compute_thread_count();
}

/// What is written where, by the phase and kind that are asked for.
static CompileOptions readOptions(Phase lastPhase) {
  CompileOptions options;
  if (!targets.empty())
    options.targets = targets;
  if (!cpuLevels.empty())
    options.cpuLevels = cpuLevels;
  options.emit = emit;
  if (lastPhase == Phase::Target && emit == Emit::Artefact)
    options.emit =
        options.targets.front() == "cpu" ? Emit::Assembly : Emit::PTX;
  options.lastPhase = lastPhase == Phase::Artefact && emit != Emit::Artefact
                          ? Phase::Target
                          : lastPhase;
  options.inputPath = inputPath;
  options.outputPath = outputPath;
  llvm::StringRef stem = llvm::sys::path::stem(inputPath);
  if (options.outputPath.empty())
    options.outputPath = options.lastPhase == Phase::Artefact
                             ? (stem + ".hbx").str()
                         : options.emit == Emit::Object ? (stem + ".so").str()
                                                        : "-";
  options.jobs = orProcessors(jobs);
  options.dumpFolder = dumpFolder;
  options.printMemoryPlan = memoryPlan;
  options.runtimeThreads = orProcessors(runtimeThreads);
  options.capacities = {tokens, segments, longest < 0 ? tokens : longest,
                        slots,  context,  depth};
  return options;
}

/// What is wrong with a capacity of the memory plan; empty when nothing is.
static std::string capacityProblem() {
  for (auto [capacity, least] : {std::pair(&tokens, 1),
                                 {&segments, 1},
                                 {&longest, 1},
                                 {&slots, 1},
                                 {&context, 1},
                                 {&depth, 0}})
    if (capacity->getNumOccurrences() && *capacity < least)
      return ("--" + capacity->ArgStr + " is " +
              llvm::Twine(capacity->getValue()) +
              "; give a whole number from " + llvm::Twine(least) + " up")
          .str();
  return {};
}

/// The spec as a source that diagnostics quote.
static bool openSpec(llvm::SourceMgr &sources) {
  std::string error;
  auto file = openSpecFile(inputPath, error);
  if (!file) {
    llvm::errs() << "hybridc: error: " << error << "\n";
    return false;
  }
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  return true;
}

/// Remarks are printed, counted, or both.
static mlir::LogicalResult watchRemarks(mlir::MLIRContext &mlirContext,
                                        Statistics *statistics) {
  std::optional<llvm::StringRef> filter;
  if (remarks.getNumOccurrences())
    filter = remarks;
  if (statistics)
    return countRemarks(mlirContext, *statistics, filter);
  return filter ? printRemarks(mlirContext, *filter) : mlir::success();
}

static Outcome writeStatistics(const Statistics &statistics) {
  if (statisticsPath.empty()) {
    statistics.print(llvm::errs());
    return Outcome::Ok;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  statistics.printAsJSON(os);
  if (llvm::Error error = writeFileAtomically(statisticsPath, text)) {
    llvm::errs() << "hybridc: error: " << llvm::toString(std::move(error))
                 << "\n";
    return Outcome::BadInput;
  }
  return Outcome::Ok;
}

static int compileSpec() {
  std::optional<Phase> lastPhase = parsePhase(compileTo);
  if (!lastPhase)
    return usageError("'" + compileTo + "' is no phase; give one of " +
                      phaseNames());
  CompileOptions options = readOptions(*lastPhase);
  if (emit != Emit::Artefact && options.lastPhase != Phase::Target)
    return usageError("--emit writes code, and --compile-to=" + compileTo +
                      " ends before there is any; give one of them");
  Statistics statistics;
  if (statisticsPath.getNumOccurrences())
    options.statistics = &statistics;
  if (std::string problem = capacityProblem(); !problem.empty())
    return usageError(problem);
  if (Outcome outcome = checkOptions(options); outcome != Outcome::Ok)
    return static_cast<int>(outcome);

  mlir::DialectRegistry registry;
  registerAllHybridDialects(registry);
  mlir::MLIRContext mlirContext(registry,
                                mlir::MLIRContext::Threading::DISABLED);
  if (mlir::failed(watchRemarks(mlirContext, options.statistics)))
    return usageError("'" + remarks + "' is not a regular expression");
  llvm::SourceMgr sources;
  if (!openSpec(sources))
    return static_cast<int>(Outcome::BadInput);
  // An error shows the line of the spec, not the operation it became.
  mlirContext.printOpOnDiagnostic(false);
  mlir::SourceMgrDiagnosticHandler handler(sources, &mlirContext);

  mlir::DefaultTimingManager timing;
  mlir::applyDefaultTimingManagerCLOptions(timing);
  mlir::TimingScope scope = timing.getRootScope();
  Outcome outcome = Compiler(mlirContext, options, scope).run(sources);
  if (outcome == Outcome::Ok && options.statistics)
    outcome = writeStatistics(statistics);
  return static_cast<int>(outcome);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::CrashRecoveryContext::Enable();
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  registerAllHybridPasses();
  mlir::registerTransformsPasses();

  cl::HideUnrelatedOptions({&compileOptions, &lookOptions, &memoryOptions});
  if (!readCommandLine(argc, argv))
    return static_cast<int>(Outcome::Usage);
  if (isReport())
    return finishOutput(runReport());
  if (isVerify())
    return finishOutput(runVerify());
  return finishOutput(compileSpec());
}
