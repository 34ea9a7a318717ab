//===- CompiledFunction.cpp - a graph function as machine code ------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompiledFunction.h"

#include "../../tools/tile-against-oracle/Dispatches.h"
#include "Harness.h"
#include "hybrid/Driver/Phases.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cases;
using namespace hybrid::test;

CompiledFunction::CompiledFunction(const std::string &text, cpu::Level level)
    : context(makeRegistry(), MLIRContext::Threading::DISABLED),
      handler(&context, [this](Diagnostic &d) { reported += d.str() + "\n"; }) {
  graph = parseSourceString<ModuleOp>(text, &context);
  if (!graph) {
    ADD_FAILURE() << reported << text;
    return;
  }
  scheduled = graph->clone();
  find(*scheduled)->setAttr("hybrid.entry", StringAttr::get(&context, "main"));
  for (Phase phase : {Phase::Fuse, Phase::Schedule, Phase::Tile}) {
    PassManager passes(&context);
    if (failed(parsePassPipeline(phasePipeline(phase, "cpu"), passes)) ||
        failed(passes.run(*scheduled))) {
      ADD_FAILURE() << phaseInfo(phase).name.str() << ": " << reported;
      return;
    }
  }
  load(level);
}

void CompiledFunction::load(cpu::Level level) {
  SmallVector<StringRef> symbols;
  for (auto program : scheduled->getOps<tile::ProgramOp>())
    symbols.push_back(program.getSymName());
  auto code = cpu::compile(*scheduled, symbols, level);
  if (failed(code)) {
    ADD_FAILURE() << reported;
    return;
  }
  for (StringRef symbol : symbols)
    kernels[symbol.str()] = std::make_unique<cpu::LoadedKernel>(*code, symbol);
}

func::FuncOp CompiledFunction::find(ModuleOp module) {
  return module.lookupSymbol<func::FuncOp>("main");
}

std::vector<Tensor> CompiledFunction::evaluate(ArrayRef<Tensor> arguments,
                                               const Call &call) {
  if (kernels.empty())
    return {};
  auto runProgram = [&](tile::ProgramOp program, ArrayRef<tile::HostView> views,
                        ArrayRef<int64_t> symbols) {
    return runKernel(*kernels.at(program.getSymName().str()), program, views,
                     symbols);
  };
  auto results =
      DispatchRunner(call, runProgram).run(find(*scheduled), arguments);
  EXPECT_TRUE(succeeded(results)) << reported;
  return succeeded(results) ? *results : std::vector<Tensor>();
}

std::vector<Tensor> CompiledFunction::oracle(ArrayRef<Tensor> arguments,
                                             const Call &call) {
  auto results = hybrid::oracle::evaluate(main(), arguments, call);
  EXPECT_TRUE(succeeded(results)) << reported;
  return succeeded(results) ? *results : std::vector<Tensor>();
}
