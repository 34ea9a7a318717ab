//===- Compile.cpp - tile programs to machine code -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program is compiled alone, in a context of its own and from bytes that
// depend on nothing but the program, and the objects are linked in the order of
// the plan. So any number of threads may share the work, and the result does
// not tell how many there were.
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/CPU/Compile.h"

#include "CompileProgram.h"
#include "Link.h"
#include "hybrid/Target/CPU/Lower.h"
#include "hybrid/Target/ProgramJobs.h"
#include "hybrid/Tile/TileOps.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {

/// All programs for all levels.
class Work {
public:
  Work(ArrayRef<tile::ProgramOp> programs, ArrayRef<Level> levels,
       const Options &options)
      : levels(levels), options(options),
        results(programs.size() * levels.size()) {
    for (tile::ProgramOp program : programs)
      bytecode.push_back(bytecodeOf(program));
  }

  void run();
  size_t indexOf(size_t level, size_t program) const {
    return level * bytecode.size() + program;
  }

  ArrayRef<Level> levels;
  const Options &options;
  std::vector<std::string> bytecode;
  /// By level and program. An error is not empty where there is one.
  std::vector<CompiledProgram> results;
  std::vector<std::string> errors;

private:
  llvm::Error compile(ProgramContext &context, size_t index);
};

} // namespace

llvm::Error Work::compile(ProgramContext &context, size_t index) {
  Level level = levels[index / bytecode.size()];
  StringRef bytes = bytecode[index % bytecode.size()];
  bool isCached = options.cache && !options.wantAssembly && !options.wantLLVMIR;
  std::string key = (traitsOf(level).name + bytes).str();
  if (isCached)
    if (const CompiledProgram *known = options.cache->find(key)) {
      results[index] = *known;
      return llvm::Error::success();
    }
  llvm::Expected<CompiledProgram> compiled =
      compileProgram(context, bytes, level, options);
  if (!compiled)
    return compiled.takeError();
  results[index] = std::move(*compiled);
  if (isCached)
    options.cache->add(key, results[index]);
  return llvm::Error::success();
}

void Work::run() {
  errors = runProgramJobs(options.jobs, results.size(),
                          [&](ProgramContext &context, size_t index) {
                            return compile(context, index);
                          });
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

/// Links what was made of the programs for level `level`.
static llvm::Expected<CompiledCode> linkLevel(const Work &work, size_t level,
                                              ArrayRef<StringRef> symbols) {
  CompiledCode code;
  SmallVector<StringRef> objects;
  for (auto [program, symbol] : llvm::enumerate(symbols)) {
    const CompiledProgram &compiled =
        work.results[work.indexOf(level, program)];
    objects.push_back(compiled.object);
    code.kernels.push_back({symbol.str(), compiled.scratchBytes});
    code.llvmIR += compiled.llvmIR;
    code.assembly += compiled.assembly;
  }
  llvm::Expected<std::string> elf =
      linkSharedObject(objects, work.options.linker);
  if (!elf)
    return elf.takeError();
  code.elf = std::move(*elf);
  return code;
}

FailureOr<std::vector<CompiledCode>>
hybrid::cpu::compileLevels(ModuleOp module, ArrayRef<StringRef> symbols,
                           ArrayRef<Level> levels, const Options &options) {
  FailureOr<SmallVector<tile::ProgramOp>> programs =
      findPrograms(module, symbols);
  if (failed(programs))
    return failure();
  Work work(*programs, levels, options);
  work.run();
  for (auto [index, error] : llvm::enumerate(work.errors))
    if (!error.empty())
      return (*programs)[index % programs->size()].emitError(error)
             << " (for " << traitsOf(levels[index / programs->size()]).name
             << ")";
  std::vector<CompiledCode> result;
  for (size_t level = 0; level < levels.size(); ++level) {
    llvm::Expected<CompiledCode> code = linkLevel(work, level, symbols);
    if (!code)
      return module.emitError(llvm::toString(code.takeError()));
    result.push_back(std::move(*code));
  }
  return result;
}

FailureOr<CompiledCode> hybrid::cpu::compile(ModuleOp module,
                                             ArrayRef<StringRef> symbols,
                                             Level level,
                                             const Options &options) {
  FailureOr<std::vector<CompiledCode>> codes =
      compileLevels(module, symbols, level, options);
  if (failed(codes))
    return failure();
  return std::move(codes->front());
}

FailureOr<std::vector<Kernel>>
hybrid::cpu::measureScratch(ModuleOp module, ArrayRef<StringRef> symbols,
                            Level level) {
  FailureOr<SmallVector<tile::ProgramOp>> programs =
      findPrograms(module, symbols);
  if (failed(programs))
    return failure();
  OwningOpRef<ModuleOp> copy = ModuleOp::create(module.getLoc());
  for (tile::ProgramOp program : *programs)
    copy->push_back(program.clone());
  PassManager passes(module.getContext());
  buildPlacementPipeline(passes, level);
  if (failed(passes.run(*copy)))
    return failure();
  std::vector<Kernel> kernels;
  SymbolTable table(*copy);
  for (StringRef symbol : symbols)
    kernels.push_back(
        {symbol.str(), table.lookup(symbol)
                           ->getAttrOfType<IntegerAttr>(kScratchBytesAttr)
                           .getInt()});
  return kernels;
}
