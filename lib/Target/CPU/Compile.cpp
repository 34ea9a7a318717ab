//===- Compile.cpp - tile programs to machine code -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/CPU/Compile.h"

#include "Link.h"
#include "hybrid/Target/CPU/Lower.h"
#include "hybrid/Target/CPU/Passes.h"
#include "hybrid/Tile/TileOps.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
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
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, traitsOf(level).name, /*Features=*/"", llvm::TargetOptions(),
      llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default));
}

/// The programs alone, in a module of their own.
FailureOr<OwningOpRef<ModuleOp>> extractPrograms(ModuleOp module,
                                                 ArrayRef<StringRef> symbols) {
  OwningOpRef<ModuleOp> result = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(result->getBody());
  SymbolTable table(module);
  for (StringRef symbol : symbols) {
    auto program = table.lookup<tile::ProgramOp>(symbol);
    if (!program)
      return module.emitError("no tile.program is named '") << symbol << "'";
    builder.clone(*program);
  }
  return result;
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

void hybrid::cpu::buildPipeline(OpPassManager &passes, Level level) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createHybridCPULowerPrograms({traitsOf(level).name.str()}));
  passes.addPass(createHybridCPUExpandMath());
  passes.addPass(arith::createArithExpandOpsPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

FailureOr<CompiledCode> hybrid::cpu::compile(ModuleOp module,
                                             ArrayRef<StringRef> symbols,
                                             Level level,
                                             const Options &options) {
  auto programs = extractPrograms(module, symbols);
  if (failed(programs))
    return failure();
  MLIRContext *context = module.getContext();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  PassManager passes(context);
  buildPipeline(passes, level);
  if (failed(passes.run(**programs)))
    return failure();

  CompiledCode code;
  SymbolTable table(**programs);
  for (StringRef symbol : symbols) {
    auto bytes =
        table.lookup(symbol)->getAttrOfType<IntegerAttr>(kScratchBytesAttr);
    code.kernels.push_back({symbol.str(), bytes.getInt()});
  }

  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(**programs, llvmContext);
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(level);
  if (!llvmModule || !machine)
    return module.emitError("LLVM cannot make code for ") << kTriple.str();
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  setFunctionAttributes(*llvmModule, level);
  llvm::TargetLibraryInfoImpl noLibrary(machine->getTargetTriple());
  noLibrary.disableAllFunctions();
  if (llvm::Error error = optimize(*llvmModule, *machine, noLibrary))
    return module.emitError(llvm::toString(std::move(error)));

  if (options.assembly) {
    SmallVector<char> text;
    auto copy = llvm::CloneModule(*llvmModule);
    if (failed(emit(*copy, *machine, noLibrary,
                    llvm::CodeGenFileType::AssemblyFile, text)))
      return module.emitError("LLVM cannot write assembly for ")
             << traitsOf(level).name;
    options.assembly->assign(text.begin(), text.end());
  }
  SmallVector<char> object;
  if (failed(emit(*llvmModule, *machine, noLibrary,
                  llvm::CodeGenFileType::ObjectFile, object)))
    return module.emitError("LLVM cannot write an object for ")
           << traitsOf(level).name;
  llvm::Expected<std::string> elf =
      linkSharedObject({object.data(), object.size()}, options.linker);
  if (!elf)
    return module.emitError(llvm::toString(elf.takeError()));
  code.elf = std::move(*elf);
  return code;
}
