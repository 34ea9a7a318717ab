//===- SpecsTest.cpp - every program of the examples, assembled -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Phases.h"
#include "hybrid/Driver/Register.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Target/NVPTX/Compile.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "gtest/gtest.h"
#include <thread>

using namespace mlir;
using namespace hybrid;

namespace {

/// The examples after the last phase that all targets share.
class Examples {
public:
  /// Those of `files` whose name ends with `suffix`, in their own type of data
  /// or in `dtype`.
  explicit Examples(StringRef suffix = "", StringRef dtype = "",
                    StringRef files = HYBRID_SPEC_FILES) {
    registerAllHybridPasses();
    registerTransformsPasses();
    DialectRegistry registry;
    registerAllHybridDialects(registry);
    context.appendDialectRegistry(registry);
    for (StringRef path : llvm::split(files, '|')) {
      if (!path.ends_with(suffix))
        continue;
      modules.push_back(parseSourceFile<ModuleOp>(path, &context));
      if (!dtype.empty())
        for (auto model : modules.back()->getOps<ModelOp>())
          model.setDtypeAttr(TypeAttr::get(parseType(dtype, &context)));
      run(*modules.back(), Phase::Spec, Phase::Schedule, "");
    }
  }

  /// All programs of all examples for `target`, each once.
  OwningOpRef<ModuleOp> programs(StringRef target) {
    OwningOpRef<ModuleOp> all = ModuleOp::create(UnknownLoc::get(&context));
    llvm::StringSet<> seen;
    for (OwningOpRef<ModuleOp> &module : modules) {
      OwningOpRef<ModuleOp> scheduled = module->clone();
      run(*scheduled, Phase::Schedule, Phase::Plan, target);
      // The name has a hash of the content.
      for (auto program : scheduled->getOps<tile::ProgramOp>()) {
        if (!seen.insert(program.getSymName()).second)
          continue;
        all->push_back(program.clone());
        for (auto record : scheduled->getOps<tile::ScheduleOp>())
          if (record.getProgram() == program.getSymName())
            all->push_back(record.clone());
      }
    }
    return all;
  }

private:
  void run(ModuleOp module, Phase begin, Phase end, StringRef target) {
    for (const PhaseInfo &info : phases()) {
      std::string pipeline = phasePipeline(info.phase, target);
      if (info.phase < begin || info.phase >= end || pipeline.empty())
        continue;
      PassManager passes(&context);
      passes.enableVerifier(false);
      if (failed(parsePassPipeline(pipeline, passes)) ||
          failed(passes.run(module)))
        ADD_FAILURE() << "phase " << info.name.str() << " fails";
    }
  }

  MLIRContext context;
  std::vector<OwningOpRef<ModuleOp>> modules;
};

/// Compiles and assembles every program of `module`.
void assemblePrograms(ModuleOp module, StringRef chip, size_t fewest) {
  SmallVector<StringRef> symbols;
  for (auto program : module.getOps<tile::ProgramOp>())
    symbols.push_back(program.getSymName());
  ASSERT_GE(symbols.size(), fewest);
  nvptx::CompileOptions options;
  options.jobs = std::max(1u, std::thread::hardware_concurrency());
  auto code = nvptx::compile(module, symbols, chip, options);
  ASSERT_TRUE(succeeded(code));
  EXPECT_EQ(code->kernels.size(), symbols.size());
  // Nothing is left to a library.
  EXPECT_EQ(code->ptx.find(".extern .func"), std::string::npos);
  if (nvptx::findAssembler().empty())
    GTEST_SKIP() << "no ptxas";
  auto assembled = nvptx::assemble(module.getLoc(), code->ptx, chip);
  ASSERT_TRUE(succeeded(assembled));
  EXPECT_EQ(assembled->kernels.size(), symbols.size());
  // Adjoints keep more tiles than there are registers for.
  for (const nvptx::KernelResources &kernel : assembled->kernels) {
    if (kernel.symbol.find("backward") == std::string::npos)
      EXPECT_EQ(kernel.spillStores, 0) << kernel.symbol;
    EXPECT_LT(kernel.spillStores, 1024) << kernel.symbol;
    EXPECT_TRUE(kernel.notices.empty()) << kernel.symbol;
  }
}

/// What is to be seen of a program once, whatever its sizes: the algorithm, how
/// it was scheduled, and whether there is narrow data.
std::string kindOf(tile::ProgramOp program, tile::ScheduleOp record) {
  std::string kind = program.getSymName().rsplit('_').first.str();
  if (record)
    kind += record->hasAttr("hopper.persistent") ? ", persistent warpgroups"
                                                 : ", warpgroups";
  bool isNarrow =
      llvm::any_of(program.getBody().getArgumentTypes(), [](Type type) {
        auto view = dyn_cast<ShapedType>(type);
        return view && view.getElementType().getIntOrFloatBitWidth() == 16;
      });
  return kind + (isNarrow ? ", narrow" : "");
}

llvm::StringMap<std::string> kindsOf(ModuleOp module) {
  llvm::StringMap<tile::ScheduleOp> records;
  for (auto record : module.getOps<tile::ScheduleOp>())
    records[record.getProgram()] = record;
  llvm::StringMap<std::string> kinds;
  for (auto program : module.getOps<tile::ProgramOp>())
    kinds.try_emplace(kindOf(program, records.lookup(program.getSymName())),
                      program.getSymName().str());
  return kinds;
}

class SpecsTest : public testing::TestWithParam<const char *> {
protected:
  static void SetUpTestSuite() { examples = std::make_unique<Examples>(); }
  static void TearDownTestSuite() { examples.reset(); }
  static std::unique_ptr<Examples> examples;
};

std::unique_ptr<Examples> SpecsTest::examples;

INSTANTIATE_TEST_SUITE_P(Chips, SpecsTest,
                         testing::Values("sm_80", "sm_89", "sm_90a", "sm_100a",
                                         "sm_120a"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

class NarrowSpecsTest : public testing::TestWithParam<const char *> {};

INSTANTIATE_TEST_SUITE_P(Types, NarrowSpecsTest, testing::Values("bf16", "f16"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace

TEST_P(SpecsTest, EveryProgramOfEveryExampleIsAssembled) {
  StringRef chip = GetParam();
  assemblePrograms(*examples->programs(("cuda:" + chip).str()), chip, 301);
}

TEST_P(NarrowSpecsTest, EveryProgramOfTheDemoIsAssembled) {
  Examples demo("demo.mlir", GetParam());
  assemblePrograms(*demo.programs("cuda:sm_90a"), "sm_90a", 30);
}

// compute-sanitizer looks at the models of test/gpu/sanitize alone.
TEST(SanitizedSpecsTest, HaveEveryKindOfProgramOfTheExamples) {
  Examples sanitized("", "", HYBRID_SANITIZED_FILES);
  llvm::StringMap<std::string> seen =
      kindsOf(*sanitized.programs("cuda:sm_90a"));
  for (StringRef dtype : {"", "bf16"}) {
    Examples examples("", dtype);
    llvm::StringMap<std::string> kinds =
        kindsOf(*examples.programs("cuda:sm_90a"));
    EXPECT_GT(kinds.size(), 20u);
    for (const auto &kind : kinds)
      EXPECT_TRUE(seen.contains(kind.getKey()))
          << kind.getKey().str() << ", such as " << kind.getValue();
  }
}
