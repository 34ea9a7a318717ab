//===- Compile.cpp - tile programs to PTX -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/NVPTX/Compile.h"

#include "hybrid/Target/CPU/Lower.h"
#include "hybrid/Target/CPU/Passes.h"
#include "hybrid/Target/NVPTX/Passes.h"
#include "hybrid/Tile/TileOps.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

namespace {

constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

/// A chip, the PTX version its instructions need, and the most shared memory of
/// a block (CUDA C++ Programming Guide, technical specifications).
struct Chip {
  llvm::StringLiteral name;
  llvm::StringLiteral features;
  int64_t sharedBytes;
};

constexpr Chip kChips[] = {
    {"sm_80", "+ptx80", 163 << 10},   {"sm_89", "+ptx80", 99 << 10},
    {"sm_90", "+ptx80", 227 << 10},   {"sm_90a", "+ptx80", 227 << 10},
    {"sm_100a", "+ptx87", 227 << 10}, {"sm_120a", "+ptx87", 99 << 10},
};

std::unique_ptr<llvm::TargetMachine> createTargetMachine(const Chip &chip) {
  static const bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
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
      triple, chip.name, chip.features, llvm::TargetOptions(), std::nullopt));
}

LogicalResult lowerToLLVM(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createHybridNVPTXLowerPrograms());
  passes.addPass(createHybridCPUExpandMath());
  passes.addPass(arith::createArithExpandOpsPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, modules);
}

} // namespace

FailureOr<CompiledPtx> hybrid::nvptx::compile(ModuleOp module,
                                              ArrayRef<StringRef> symbols,
                                              StringRef chipName) {
  const Chip *chip = llvm::find_if(
      kChips, [&](const Chip &known) { return known.name == chipName; });
  if (chip == std::end(kChips)) {
    InFlightDiagnostic error = module.emitError("no code for GPU '")
                               << chipName << "'; use one of ";
    llvm::interleaveComma(kChips, error,
                          [&](const Chip &known) { error << known.name; });
    return error;
  }

  OwningOpRef<ModuleOp> programs = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(programs->getBody());
  SymbolTable table(module);
  for (StringRef symbol : symbols) {
    auto program = table.lookup<tile::ProgramOp>(symbol);
    if (!program)
      return module.emitError("no tile.program is named '") << symbol << "'";
    builder.clone(*program);
  }
  MLIRContext *context = module.getContext();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  if (failed(lowerToLLVM(*programs)))
    return failure();

  CompiledPtx code;
  SymbolTable lowered(*programs);
  for (StringRef symbol : symbols) {
    Operation *kernel = lowered.lookup(symbol);
    int64_t bytes =
        kernel->getAttrOfType<IntegerAttr>(cpu::kScratchBytesAttr).getInt();
    if (bytes > chip->sharedBytes)
      return table.lookup(symbol)->emitError("needs ")
             << bytes << " bytes of shared memory, a block of " << chipName
             << " has at most " << chip->sharedBytes << "; use smaller tiles";
    code.kernels.push_back({symbol.str(), bytes});
  }

  llvm::LLVMContext llvmContext;
  auto llvmModule = translateModuleToLLVMIR(*programs, llvmContext);
  auto machine = createTargetMachine(*chip);
  if (!llvmModule || !machine)
    return module.emitError("LLVM cannot make code for ") << kTriple.str();
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  for (StringRef symbol : symbols) {
    llvm::Function *kernel = llvmModule->getFunction(symbol);
    kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
    kernel->addFnAttr("nvvm.maxntid", std::to_string(kThreads));
  }
  optimize(*llvmModule, *machine);

  SmallVector<char> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return module.emitError("LLVM cannot write PTX");
  passes.run(*llvmModule);
  code.ptx.assign(text.begin(), text.end());
  return code;
}
