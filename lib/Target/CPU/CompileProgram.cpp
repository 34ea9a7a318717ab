//===- CompileProgram.cpp - one tile program to an object -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompileProgram.h"

#include "hybrid/Target/CPU/Lower.h"
#include "hybrid/Target/CPU/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

namespace {

constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";

std::unique_ptr<llvm::TargetMachine> createTargetMachine(Level level) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple(kTriple);
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  // The linker keeps one of the functions that several programs share.
  options.FunctionSections = true;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, traitsOf(level).name, /*Features=*/"", options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

void setFunctionAttributes(llvm::Module &module, Level level) {
  // Vectors as wide as they were built, and no call of the C library.
  std::string bits = std::to_string(traitsOf(level).lanes * 32);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", traitsOf(level).name);
    function.addFnAttr("prefer-vector-width", bits);
    function.addFnAttr("min-legal-vector-width", bits);
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

/// Loops come in vectors, unrolled where that pays and with their invariants
/// outside; what is left is to clean up addresses. LLVM's default pipeline
/// gives the same speed in three times the time.
constexpr llvm::StringLiteral kPasses =
    "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion,loop-unroll-full),"
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,adce)";

llvm::Error optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     const llvm::TargetLibraryInfoImpl &noLibrary) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass(
      [&] { return llvm::TargetLibraryAnalysis(noLibrary); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, kPasses))
    return error;
  passes.run(module, modules);
  return llvm::Error::success();
}

LogicalResult emit(llvm::Module &module, llvm::TargetMachine &machine,
                   const llvm::TargetLibraryInfoImpl &noLibrary,
                   llvm::CodeGenFileType type, SmallVectorImpl<char> &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(noLibrary));
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return failure();
  passes.run(module);
  return success();
}

} // namespace

void hybrid::cpu::buildPlacementPipeline(OpPassManager &passes, Level level) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createHybridCPULowerPrograms({traitsOf(level).name.str()}));
}

void hybrid::cpu::buildPipeline(OpPassManager &passes, Level level) {
  buildPlacementPipeline(passes, level);
  // Arithmetic of narrower floats is that of f32, rounded once an operation.
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  emulate.targetTypeStr = "f32";
  passes.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  passes.addPass(createHybridCPUExpandMath());
  passes.addPass(createHybridCPUExpandCasts({traitsOf(level).name.str()}));
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  passes.addPass(arith::createArithExpandOpsPass(expand));
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

/// From the LLVM dialect to an object.
static llvm::Error generate(ModuleOp module, Level level,
                            const Options &options, CompiledProgram &compiled) {
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, llvmContext);
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(level);
  if (!llvmModule || !machine)
    return llvm::createStringError("LLVM cannot make code for " + kTriple);
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  setFunctionAttributes(*llvmModule, level);
  llvm::TargetLibraryInfoImpl noLibrary(machine->getTargetTriple());
  noLibrary.disableAllFunctions();
  if (llvm::Error error = optimize(*llvmModule, *machine, noLibrary))
    return error;
  if (options.wantLLVMIR) {
    llvm::raw_string_ostream stream(compiled.llvmIR);
    llvmModule->print(stream, nullptr);
  }
  auto write = [&](llvm::Module &from, llvm::CodeGenFileType type,
                   std::string &to) -> llvm::Error {
    SmallVector<char> bytes;
    if (failed(emit(from, *machine, noLibrary, type, bytes)))
      return llvm::createStringError("LLVM cannot write code for " +
                                     traitsOf(level).name);
    to.assign(bytes.begin(), bytes.end());
    return llvm::Error::success();
  };
  if (options.wantAssembly)
    if (llvm::Error error =
            write(*llvm::CloneModule(*llvmModule),
                  llvm::CodeGenFileType::AssemblyFile, compiled.assembly))
      return error;
  return write(*llvmModule, llvm::CodeGenFileType::ObjectFile, compiled.object);
}

llvm::Expected<CompiledProgram>
hybrid::cpu::compileProgram(ProgramContext &context, StringRef bytecode,
                            Level level, const Options &options) {
  CompiledProgram compiled;
  llvm::Error error =
      context.with(bytecode, [&](ModuleOp module) -> llvm::Error {
        PassManager passes(module.getContext());
        buildPipeline(passes, level);
        if (failed(passes.run(module)))
          return ProgramContext::diagnosed();
        module.walk([&](LLVM::LLVMFuncOp function) {
          if (auto bytes =
                  function->getAttrOfType<IntegerAttr>(kScratchBytesAttr))
            compiled.scratchBytes = bytes.getInt();
        });
        return generate(module, level, options, compiled);
      });
  if (error)
    return std::move(error);
  return compiled;
}
