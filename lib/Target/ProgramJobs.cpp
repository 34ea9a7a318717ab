//===- ProgramJobs.cpp - tile programs on several threads -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/ProgramJobs.h"

#include "hybrid/Tile/TileDialect.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include <atomic>
#include <thread>

using namespace mlir;
using namespace hybrid;

FailureOr<SmallVector<tile::ProgramOp>>
hybrid::findPrograms(ModuleOp module, ArrayRef<StringRef> symbols) {
  SmallVector<tile::ProgramOp> programs;
  SymbolTable table(module);
  for (StringRef symbol : symbols) {
    programs.push_back(table.lookup<tile::ProgramOp>(symbol));
    if (!programs.back())
      return module.emitError("no tile.program is named '") << symbol << "'";
  }
  return programs;
}

std::string hybrid::bytecodeOf(tile::ProgramOp program,
                               tile::ScheduleOp schedule) {
  Location unknown = UnknownLoc::get(program.getContext());
  OwningOpRef<ModuleOp> module = ModuleOp::create(unknown);
  module->push_back(program.clone());
  if (schedule)
    module->push_back(schedule.clone());
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

ProgramContext::ProgramContext() : context(MLIRContext::Threading::DISABLED) {
  // What a program is written in; passes bring what they turn it into.
  context.loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect,
                      scf::SCFDialect, tensor::TensorDialect>();
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
}

llvm::Error ProgramContext::diagnosed() { return llvm::createStringError(""); }

llvm::Error
ProgramContext::with(StringRef bytecode,
                     llvm::function_ref<llvm::Error(ModuleOp)> run) {
  // What goes wrong is told in the caller's context.
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      errors += (errors.empty() ? "" : "; ") + diagnostic.str();
  });
  auto module = parseSourceString<ModuleOp>(bytecode, &context);
  llvm::Error error = module ? run(*module) : diagnosed();
  if (!error)
    return llvm::Error::success();
  std::string text = llvm::toString(std::move(error));
  if (text.empty())
    text = errors.empty() ? "refused without a reason" : errors;
  return llvm::createStringError(text);
}

std::vector<std::string> hybrid::runProgramJobs(
    unsigned threads, size_t count,
    llvm::function_ref<llvm::Error(ProgramContext &, size_t)> job) {
  std::vector<std::string> errors(count);
  std::atomic<size_t> next = 0;
  auto take = [&] {
    ProgramContext context;
    for (size_t index; (index = next++) < count;) {
      // LLVM recurses deeply, and a crash is to end as an error.
      bool survived = llvm::CrashRecoveryContext().RunSafelyOnThread(
          [&] {
            if (llvm::Error error = job(context, index))
              errors[index] = llvm::toString(std::move(error));
          },
          /*RequestedStackSize=*/64 << 20);
      if (!survived)
        errors[index] = "the code generator crashed";
    }
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min<size_t>(threads, count); ++i)
    helpers.emplace_back(take);
  take();
  for (std::thread &helper : helpers)
    helper.join();
  return errors;
}
