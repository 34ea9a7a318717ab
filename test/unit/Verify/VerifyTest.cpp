//===- VerifyTest.cpp - broken kernels are found and named -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Verify/Verify.h"

#include "hybrid/Artefact/Assemble.h"
#include "hybrid/Driver/Phases.h"
#include "hybrid/Driver/Register.h"
#include "hybrid/Graph/ModelTables.h"
#include "hybrid/Target/CPU/Compile.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace hybrid;

namespace {

constexpr llvm::StringLiteral kSpec = R"(
hybrid.model @m vocab(16) width(8) layers(2) {
  hybrid.mix ratio(1 : 1) {
    hybrid.swla window(5) stride(1) {
      hybrid.gdn heads(1) head_dim(8) conv(off)
    }
    hybrid.softmax heads(2) head_dim(8) position(nope)
  }
})";

/// Multiplies what the programs of one algorithm store.
void breakPrograms(ModuleOp module, StringRef algorithm, float factor) {
  unsigned broken = 0;
  for (auto program : module.getOps<tile::ProgramOp>()) {
    if (program.getSymName().rsplit('_').first != algorithm)
      continue;
    program.walk([&](tile::StoreOp store) {
      Value tile = store->getOperand(0);
      auto type = cast<RankedTensorType>(tile.getType());
      OpBuilder builder(store);
      Value constant = arith::ConstantOp::create(
          builder, store.getLoc(),
          DenseElementsAttr::get(type, builder.getF32FloatAttr(factor)));
      store->setOperand(
          0, arith::MulFOp::create(builder, store.getLoc(), tile, constant));
      ++broken;
    });
  }
  ASSERT_GT(broken, 0u) << "no program of " << algorithm.str();
}

class VerifyTest : public testing::Test {
protected:
  VerifyTest() : context(makeRegistry(), MLIRContext::Threading::DISABLED) {}

  /// What verification says of an artefact whose kernels of `algorithm`, unless
  /// empty, store values that are off by a factor.
  VerifyReport verify(StringRef algorithm, float factor = 1.001f) {
    SmallString<128> path;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("verify", "hbx", path));
    llvm::FileRemover remover(path);
    EXPECT_NO_FATAL_FAILURE(compile(algorithm, factor, path));
    VerifyOptions options;
    options.tokens = 20;
    options.threads = 1;
    // Keys are split from this context on, and the oracle is slow.
    options.context = algorithm == "softmax_split" ? 2048 : 32;
    auto report = verifyArtefact(context, path.str().str(), options);
    EXPECT_TRUE(bool(report)) << llvm::toString(report.takeError());
    return report ? *report : VerifyReport();
  }

  /// The rows over their bound that are operations: "call op kernel".
  static std::set<std::string> failures(const VerifyReport &report) {
    std::set<std::string> names;
    for (const VerifyRow &row : report.rows)
      if (!row.ok() && !row.kernel.empty())
        names.insert(row.call + " " + std::to_string(row.layer) + " " + row.op +
                     " " + row.kernel);
    return names;
  }
  static std::set<std::string> failedCalls(const VerifyReport &report) {
    std::set<std::string> names;
    for (const VerifyRow &row : report.rows)
      if (!row.ok() && row.kernel.empty())
        names.insert(row.call);
    return names;
  }

private:
  static DialectRegistry makeRegistry() {
    static bool passes = [] {
      registerAllHybridPasses();
      registerTransformsPasses();
      return true;
    }();
    (void)passes;
    DialectRegistry registry;
    registerAllHybridDialects(registry);
    return registry;
  }

  void compile(StringRef algorithm, float factor, StringRef path) {
    auto module = parseSourceString<ModuleOp>(kSpec, &context);
    ASSERT_TRUE(module);
    for (const PhaseInfo &info : phases()) {
      std::string pipeline = phasePipeline(info.phase, "cpu");
      PassManager passes(&context);
      if (pipeline.empty())
        continue;
      ASSERT_TRUE(succeeded(parsePassPipeline(pipeline, passes)));
      ASSERT_TRUE(succeeded(passes.run(*module)));
    }
    FailureOr<Plan> plan = buildPlan(*module);
    FailureOr<ModelTables> tables = getModelTables(*module);
    ASSERT_TRUE(succeeded(plan) && succeeded(tables));
    if (!algorithm.empty())
      breakPrograms(*module, algorithm, factor);
    SmallVector<StringRef> symbols;
    for (const PlanKernel &kernel : plan->kernels)
      symbols.push_back(kernel.symbol);
    auto code = cpu::compile(*module, symbols, cpu::Level::Base);
    ASSERT_TRUE(succeeded(code));
    for (auto [kernel, made] : llvm::zip_equal(plan->kernels, code->kernels))
      kernel.scratch = made.scratchBytes;
    ArtefactTarget target{"cpu", *plan, {{"code", "x86-64", code->elf}}};
    auto bytes = assembleArtefact(kSpec, *tables, target);
    ASSERT_TRUE(bool(bytes));
    ASSERT_FALSE(bool(writeFileAtomically(path, *bytes)));
  }

  MLIRContext context;
};

using Names = std::set<std::string>;

// The second sequence of the prefill ends where a window of the ring ends, and
// what the ring then holds of it is nobody's business.
TEST_F(VerifyTest, SoundModelsPass) {
  VerifyReport report = verify("");
  EXPECT_TRUE(report.ok());
  // Every launch is compared.
  EXPECT_TRUE(report.withoutValue.empty());
  Names calls;
  for (const VerifyRow &row : report.rows)
    calls.insert(row.call);
  EXPECT_EQ(calls, (Names{"loss", "backward", "prefill", "decode"}));
}

// What reads a wrong value is not to blame for it.
TEST_F(VerifyTest, NamesForwardKernels) {
  VerifyReport report = verify("softmax_forward");
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(failures(report),
            (Names{"loss 1 mixer.attention softmax_forward",
                   "backward 1 mixer.attention softmax_forward"}));
}

TEST_F(VerifyTest, ShowsWhatACallerSees) {
  VerifyReport report = verify("softmax_forward", /*factor=*/-2);
  EXPECT_EQ(failedCalls(report), (Names{"loss", "backward"}));
}

TEST_F(VerifyTest, NamesAdjointKernels) {
  VerifyReport report = verify("recurrence_backward");
  EXPECT_EQ(failures(report),
            (Names{"backward 0 mixer.recurrence recurrence_backward"}));
}

TEST_F(VerifyTest, NamesDecodeKernels) {
  VerifyReport report = verify("recurrence_step");
  EXPECT_EQ(failures(report),
            (Names{"decode 0 mixer.recurrence recurrence_step"}));
}

// The cache's keys are split; the launch whose result the graph has is named.
TEST_F(VerifyTest, NamesTheOpOfKernelsWithoutAValue) {
  VerifyReport report = verify("softmax_split");
  EXPECT_EQ(failures(report),
            (Names{"decode 1 mixer.attention softmax_combine"}));
  EXPECT_EQ(report.withoutValue, std::vector<std::string>{"softmax_split"});
}

} // namespace
