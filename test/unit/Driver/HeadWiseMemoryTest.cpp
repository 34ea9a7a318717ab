//===- HeadWiseMemoryTest.cpp - memory of head-wise mixes -*- C++ -*-------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Phases.h"
#include "hybrid/Driver/Register.h"
#include "hybrid/Plan/MemoryPlan.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace hybrid;

namespace {

/// The plan of an example spec, without code.
class Planned {
public:
  explicit Planned(const std::string &name) {
    DialectRegistry registry;
    registerAllHybridDialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceFile<ModuleOp>(
        std::string(HYBRID_SPECS) + "/" + name + ".mlir", &context);
    if (!module)
      return;
    for (const PhaseInfo &info : phases()) {
      std::string pipeline = phasePipeline(info.phase, "cpu");
      PassManager passes(&context);
      if (pipeline.empty())
        continue;
      if (failed(parsePassPipeline(pipeline, passes)) ||
          failed(passes.run(*module)))
        return;
    }
    FailureOr<Plan> built = buildPlan(*module);
    if (succeeded(built))
      plan = std::move(*built);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Plan plan;
};

/// The arena, parameters, states and what else the caller holds.
double totalBytes(const EntryMemory &memory) {
  double bytes = memory.arena;
  for (auto [kind, size] : memory.bound)
    bytes += size;
  return bytes;
}

} // namespace

// Groups of heads in every layer take what the same heads take in layers of
// their own: nothing is concatenated by copying, and a window keeps its ring.
TEST(HeadWiseMemory, IsThatOfTheLayerWiseMix) {
  registerAllHybridPasses();
  registerTransformsPasses();
  for (std::string size : {"376m", "776m"}) {
    Planned headWise("headwise_" + size), layerWise("swa_nope_" + size);
    ASSERT_FALSE(headWise.plan.entries.empty());
    ASSERT_EQ(headWise.plan.entries.size(), layerWise.plan.entries.size());
    for (int64_t tokens : {4096, 32768})
      for (auto [ours, theirs] :
           llvm::zip(headWise.plan.entries, layerWise.plan.entries)) {
        // tokens, segments, longest, slots, context, depth
        SymbolValues symbols = {tokens, 1, tokens, 1, tokens, 0};
        auto head = planMemory(headWise.plan, ours, symbols);
        auto layer = planMemory(layerWise.plan, theirs, symbols);
        ASSERT_TRUE(bool(head) && bool(layer));
        EXPECT_LE(head->arena, 1.05 * layer->arena)
            << size << " " << ours.name << " of " << tokens << " tokens";
        EXPECT_LE(totalBytes(*head), 1.05 * totalBytes(*layer))
            << size << " " << ours.name << " of " << tokens << " tokens";
      }
  }
}
