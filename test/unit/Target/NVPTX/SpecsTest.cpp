//===- SpecsTest.cpp - every program of a spec, assembled -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Phases.h"
#include "hybrid/Driver/Register.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace hybrid;

namespace {

class SpecsTest : public testing::TestWithParam<const char *> {
protected:
  SpecsTest() {
    static const bool registered =
        (registerAllHybridPasses(), registerTransformsPasses(), true);
    (void)registered;
    DialectRegistry registry;
    registerAllHybridDialects(registry);
    context.appendDialectRegistry(registry);
  }

  /// The module of an example after the phase that makes tile programs.
  OwningOpRef<ModuleOp> schedule(StringRef spec) {
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(
        (HYBRID_SPECS "/" + spec + ".mlir").str(), &context);
    for (const PhaseInfo &info : phases()) {
      if (info.phase > Phase::Tile)
        break;
      PassManager passes(&context);
      std::string pipeline = phasePipeline(info.phase, "cuda");
      if (pipeline.empty())
        continue;
      if (failed(parsePassPipeline(pipeline, passes)) ||
          failed(passes.run(*module)))
        ADD_FAILURE() << "phase " << info.name.str() << " fails";
    }
    return module;
  }

  MLIRContext context;
};

INSTANTIATE_TEST_SUITE_P(Chips, SpecsTest, testing::Values("sm_80", "sm_90a"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace

TEST_P(SpecsTest, EveryProgramOfTheDemoIsAssembled) {
  OwningOpRef<ModuleOp> module = schedule("demo");
  ASSERT_TRUE(module);
  SmallVector<StringRef> symbols;
  for (auto program : module->getOps<tile::ProgramOp>())
    symbols.push_back(program.getSymName());
  ASSERT_GT(symbols.size(), 20u);
  StringRef chip = GetParam();
  auto code = nvptx::compile(*module, symbols, chip);
  ASSERT_TRUE(succeeded(code));
  EXPECT_EQ(code->kernels.size(), symbols.size());
  // Nothing is left to a library.
  EXPECT_EQ(code->ptx.find(".extern .func"), std::string::npos);
  if (nvptx::findAssembler().empty())
    GTEST_SKIP() << "no ptxas";
  auto assembled = nvptx::assemble(module->getLoc(), code->ptx, chip);
  ASSERT_TRUE(succeeded(assembled));
  EXPECT_EQ(assembled->kernels.size(), symbols.size());
  // Adjoints keep more tiles than there are registers for.
  for (const nvptx::KernelResources &kernel : assembled->kernels)
    if (kernel.symbol.find("backward") == std::string::npos)
      EXPECT_EQ(kernel.spillStores, 0) << kernel.symbol;
}
