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
#include "hybrid/Tile/TileOps.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include <atomic>
#include <thread>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

//===----------------------------------------------------------------------===//
// Cache
//===----------------------------------------------------------------------===//

const CompiledProgram *ProgramCache::find(StringRef key) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = programs.find(key);
  return found == programs.end() ? nullptr : found->second.get();
}

void ProgramCache::add(StringRef key, const CompiledProgram &program) {
  std::lock_guard<std::mutex> lock(mutex);
  programs.try_emplace(key, std::make_unique<CompiledProgram>(program));
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// A module with this program alone. Code has no places in a spec, so neither
/// have the bytes.
static std::string bytecodeOf(tile::ProgramOp program) {
  Location unknown = UnknownLoc::get(program.getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(unknown);
  module->push_back(program.clone());
  module->walk([&](Operation *op) {
    op->setLoc(unknown);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setLoc(unknown);
  });
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  (void)writeBytecodeToFile(*module, stream);
  return bytes;
}

namespace {

/// All programs for all levels.
class Work {
public:
  Work(ArrayRef<tile::ProgramOp> programs, ArrayRef<Level> levels,
       const Options &options)
      : levels(levels), options(options),
        results(programs.size() * levels.size()), errors(results.size()) {
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
  void take();
  void compile(ProgramCompiler &compiler, size_t index);

  std::atomic<size_t> next = 0;
};

} // namespace

void Work::compile(ProgramCompiler &compiler, size_t index) {
  Level level = levels[index / bytecode.size()];
  StringRef bytes = bytecode[index % bytecode.size()];
  bool isCached = options.cache && !options.wantAssembly && !options.wantLLVMIR;
  std::string key = (traitsOf(level).name + bytes).str();
  if (isCached)
    if (const CompiledProgram *known = options.cache->find(key)) {
      results[index] = *known;
      return;
    }
  llvm::Expected<CompiledProgram> compiled =
      compiler.compile(bytes, level, options);
  if (!compiled) {
    errors[index] = llvm::toString(compiled.takeError());
    return;
  }
  results[index] = std::move(*compiled);
  if (isCached)
    options.cache->add(key, results[index]);
}

/// Compiles what nobody has taken yet.
void Work::take() {
  ProgramCompiler compiler;
  for (size_t index; (index = next++) < results.size();) {
    // LLVM recurses deeply, and a crash is to end as an error.
    bool survived = llvm::CrashRecoveryContext().RunSafelyOnThread(
        [&] { compile(compiler, index); }, /*RequestedStackSize=*/64 << 20);
    if (!survived)
      errors[index] = "the code generator crashed";
  }
}

void Work::run() {
  std::vector<std::thread> helpers;
  size_t threads = std::min<size_t>(options.jobs, results.size());
  for (size_t i = 1; i < threads; ++i)
    helpers.emplace_back([&] { take(); });
  take();
  for (std::thread &helper : helpers)
    helper.join();
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<tile::ProgramOp>>
findPrograms(ModuleOp module, ArrayRef<StringRef> symbols) {
  SmallVector<tile::ProgramOp> programs;
  SymbolTable table(module);
  for (StringRef symbol : symbols) {
    programs.push_back(table.lookup<tile::ProgramOp>(symbol));
    if (!programs.back())
      return module.emitError("no tile.program is named '") << symbol << "'";
  }
  return programs;
}

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
