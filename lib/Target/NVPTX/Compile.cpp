//===- Compile.cpp - tile programs to PTX -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Target/NVPTX/Compile.h"

#include "Chips.h"
#include "LowerPrograms.h"

#include "hybrid/Target/CPU/Passes.h"
#include "hybrid/Target/NVPTX/Passes.h"
#include "hybrid/Target/ProgramJobs.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

namespace {

LogicalResult lowerToLLVM(ModuleOp module, const Chip &chip) {
  PassManager passes(module.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  // Programs with a schedule for the chip have kernels of their own.
  if (chip.name == "sm_90a") {
    passes.addPass(createHybridHopperApplySchedules());
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    passes.addPass(createHybridHopperLowerKernels());
  }
  HybridNVPTXLowerProgramsOptions options;
  options.chip = chip.name.str();
  passes.addPass(createHybridNVPTXLowerPrograms(options));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createHybridCPUExpandMath());
  passes.addPass(arith::createArithExpandOpsPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

/// Loops are written as they should be, and what one of them uses over and over
/// is cheaper to compute again than to keep in a register through all of the
/// others: so nothing is unrolled, vectorised or moved out of loops.
constexpr llvm::StringLiteral kPasses =
    "function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-"
    "fixpoint>,gvn,reassociate,"
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg),"
    "globaldce";

std::vector<TensorMap> readMaps(Operation *kernel) {
  std::vector<TensorMap> maps;
  auto list = kernel->getAttrOfType<ArrayAttr>(kTensorMapsAttr);
  if (!list)
    return maps;
  for (auto map : list.getAsRange<DictionaryAttr>()) {
    auto box = map.getAs<DenseI64ArrayAttr>("box").asArrayRef();
    maps.push_back({map.getAs<IntegerAttr>("view").getInt(),
                    map.getAs<StringAttr>("type").str(), box.vec()});
  }
  return maps;
}

/// What the translation of functions does not say.
void annotate(llvm::Function &function, const Kernel &kernel) {
  function.setCallingConv(llvm::CallingConv::PTX_Kernel);
  function.addFnAttr("nvvm.maxntid", std::to_string(kernel.threads));
  // All registers rather than more blocks, where nothing else is known: a spill
  // costs more.
  function.addFnAttr("nvvm.minctasm", std::to_string(kernel.blocks));
  // Tensor maps stay where they are: the copy engine reads them there.
  for (unsigned n = 1; n < function.arg_size(); ++n)
    function.addParamAttr(
        n, llvm::Attribute::get(function.getContext(), "nvvm.grid_constant"));
  // PTX that whole warps must reach together is not put under conditions.
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block)
      if (auto *call = dyn_cast<llvm::CallInst>(&instruction))
        if (auto *text = dyn_cast<llvm::InlineAsm>(call->getCalledOperand()))
          if (StringRef(text->getAsmString()).contains(".aligned") ||
              StringRef(text->getAsmString()).contains("bar."))
            call->setConvergent();
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
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, kPasses));
  passes.run(module, modules);
}

} // namespace

/// From the LLVM dialect to PTX.
static llvm::Error generate(ModuleOp module, const Chip &chip,
                            llvm::TargetMachine &machine, CompiledPtx &code) {
  const Kernel &kernel = code.kernels.front();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context);
  if (!llvmModule)
    return llvm::createStringError("LLVM cannot make code for " + chip.name);
  llvmModule->setTargetTriple(machine.getTargetTriple());
  llvmModule->setDataLayout(machine.createDataLayout());
  annotate(*llvmModule->getFunction(kernel.symbol), kernel);
  optimize(*llvmModule, machine);

  SmallVector<char> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("LLVM cannot write PTX");
  passes.run(*llvmModule);
  code.ptx.assign(text.begin(), text.end());
  return llvm::Error::success();
}

/// PTX of a module with one program and its schedule.
static llvm::Error compileProgram(ProgramContext &context, StringRef bytecode,
                                  const Chip &chip, int64_t newestPtx,
                                  CompiledPtx &code, bool &tooLarge) {
  return context.with(bytecode, [&](ModuleOp module) -> llvm::Error {
    auto machine = createTargetMachine(module, chip, newestPtx);
    if (failed(machine) || failed(lowerToLLVM(module, chip))) {
      tooLarge = module->hasAttr(kTooLargeAttr);
      return ProgramContext::diagnosed();
    }
    module.walk([&](LLVM::LLVMFuncOp kernel) {
      if (!kernel->hasAttr(kSharedBytesAttr))
        return;
      auto number = [&](StringRef name) {
        return kernel->getAttrOfType<IntegerAttr>(name).getInt();
      };
      code.kernels.push_back({kernel.getSymName().str(),
                              number(kSharedBytesAttr), number(kThreadsAttr),
                              readMaps(kernel), kernel->hasAttr(kOverlapsAttr),
                              kernel->hasAttr(kPersistentAttr)});
      if (kernel->hasAttr(kBlocksAttr))
        code.kernels.back().blocks = number(kBlocksAttr);
    });
    return generate(module, chip, **machine, code);
  });
}

/// Appends the text of one program, without the lines on version and chip that
/// a text has once.
static void append(CompiledPtx &all, const CompiledPtx &one) {
  constexpr llvm::StringLiteral kLastLine = ".address_size 64\n";
  StringRef text = one.ptx;
  if (!all.ptx.empty())
    text = text.substr(text.find(kLastLine) + kLastLine.size());
  all.ptx += text;
  llvm::append_range(all.kernels, one.kernels);
}

FailureOr<CompiledPtx> hybrid::nvptx::compile(ModuleOp module,
                                              ArrayRef<StringRef> symbols,
                                              StringRef chipName,
                                              const CompileOptions &options) {
  FailureOr<Chip> chip = findChip(module, chipName);
  if (failed(chip) ||
      failed(createTargetMachine(module, *chip, options.newestPtx)))
    return failure();
  FailureOr<SmallVector<tile::ProgramOp>> programs =
      findPrograms(module, symbols);
  if (failed(programs))
    return failure();
  SmallVector<std::string> bytecode =
      llvm::map_to_vector(*programs, [&](tile::ProgramOp program) {
        for (auto schedule : module.getOps<tile::ScheduleOp>())
          if (schedule.getProgram() == program.getSymName() &&
              schedule.getTarget() == chip->name)
            return bytecodeOf(program, schedule);
        return bytecodeOf(program);
      });
  std::vector<CompiledPtx> made(programs->size());
  auto tooLarge = std::make_unique<bool[]>(programs->size());
  std::vector<std::string> errors = runProgramJobs(
      options.jobs, made.size(),
      [&](ProgramContext &context, size_t index) -> llvm::Error {
        const CompiledPtx *known =
            options.cache ? options.cache->find(bytecode[index]) : nullptr;
        if (known) {
          made[index] = *known;
          return llvm::Error::success();
        }
        llvm::Error error =
            compileProgram(context, bytecode[index], *chip, options.newestPtx,
                           made[index], tooLarge[index]);
        if (options.cache && !error)
          options.cache->add(bytecode[index], made[index]);
        return error;
      });
  for (auto [index, error] : llvm::enumerate(errors))
    if (!error.empty()) {
      if (options.tooLarge)
        *options.tooLarge = tooLarge[index];
      return (*programs)[index].emitError(error);
    }
  CompiledPtx code;
  for (const CompiledPtx &one : made)
    append(code, one);
  return code;
}
