//===- EndToEndTest.cpp - compiled models against the oracle -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "hybrid/Plan/MemoryPlan.h"
#include "hybrid/Stack/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace hybrid::test;

namespace {

struct Case {
  const char *name;
  const char *spec;
};

const Case kCases[] = {
    {"SoftmaxNope", R"(
hybrid.model @m vocab(64) width(32) layers(2) {
  hybrid.softmax heads(4) head_dim(8) position(nope)
  hybrid.mlp swiglu(48)
})"},
    {"SoftmaxGroupedRotaryWindow", R"(
hybrid.model @m vocab(64) width(32) layers(2) tied trained(16) {
  hybrid.softmax heads(4) kv_heads(2) head_dim(8) position(rope) window(20) sinks(2) logit_scale(log_n) qk_norm
  hybrid.mlp swiglu(48)
})"},
    {"GlaMix", R"(
hybrid.model @m vocab(64) width(32) layers(2) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gla heads(2) head_dim(16)
    hybrid.softmax heads(4) head_dim(8) position(nope)
  }
  hybrid.mlp swiglu(48)
})"},
    {"GdnMix", R"(
hybrid.model @m vocab(64) width(32) layers(2) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gdn heads(2) head_dim(16)
    hybrid.softmax heads(4) head_dim(8) position(nope)
  }
  hybrid.mlp swiglu(48)
})"},
    {"SlidingWindowGla", R"(
hybrid.model @m vocab(64) width(32) layers(2) trained(16) {
  hybrid.mix ratio(1 : 1) {
    hybrid.swla window(32) stride(16) {
      hybrid.gla heads(2) head_dim(16)
    }
    hybrid.softmax heads(4) head_dim(8) position(nope) logit_scale(log_n)
  }
  hybrid.mlp swiglu(48)
})"},
    {"SlidingWindowGdn", R"(
hybrid.model @m vocab(64) width(32) layers(1) {
  hybrid.swla window(64) stride(16) {
    hybrid.gdn heads(2) head_dim(16)
  }
})"},
    {"HeadGroups", R"(
hybrid.model @m vocab(64) width(32) layers(2) {
  hybrid.heads {
    hybrid.softmax heads(2) head_dim(8) position(nope)
    hybrid.softmax heads(2) head_dim(8) position(rope, base = 10000) window(12) sinks(2)
  }
  hybrid.mlp swiglu(48)
})"},
    {"HeadGroupsSharingKeys", R"(
hybrid.model @m vocab(64) width(32) layers(2) trained(16) {
  hybrid.heads {
    hybrid.softmax heads(2) kv_heads(1) head_dim(8) position(rope) window(2)
    hybrid.softmax heads(4) kv_heads(2) head_dim(8) position(nope) logit_scale(log_n) qk_norm
    hybrid.softmax heads(2) kv_heads(1) head_dim(8) position(nope) window(40) sinks(3)
  }
})"},
    {"HeadGroupsInPairs", R"(
hybrid.model @m vocab(64) width(32) layers(1) {
  hybrid.heads {
    hybrid.softmax heads(2) head_dim(8) position(nope)
    hybrid.softmax heads(1) head_dim(8) position(nope) window(5)
    hybrid.gdn heads(1) head_dim(8)
    hybrid.softmax heads(1) head_dim(8) position(rope) window(70)
    hybrid.softmax heads(1) head_dim(8) position(nope)
    hybrid.softmax heads(1) head_dim(16) position(nope)
  }
})"},
    {"HeadGroupsOfTwoFamilies", R"(
hybrid.model @m vocab(64) width(32) layers(1) {
  hybrid.heads {
    hybrid.softmax heads(2) head_dim(8) position(nope)
    hybrid.gla heads(1) head_dim(16)
  }
})"},
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

class EndToEnd : public testing::TestWithParam<Case> {};

/// f32 against f64, relative to the largest value.
constexpr double kForward = 2e-5, kBackward = 1e-4;

void expectLossAndGradients(CompiledModel &compiled) {
  // Ragged: an empty segment, one token, more than two chunks.
  CompiledModel::Batch batch = compiled.randomBatch({70, 0, 1, 17, 130}, 3);
  std::vector<double> expected = compiled.oracleLoss(batch);
  EXPECT_LT(distance(compiled.loss(batch), expected), kForward);

  std::vector<float> losses;
  auto gradients = compiled.backward(batch, losses);
  // Its own loss: elements are left out where the spec has dropout.
  auto oracle = compiled.oracleBackward(batch, &expected);
  EXPECT_LT(distance(losses, expected), kForward);
  EXPECT_EQ(gradients.size(), oracle.size());
  for (const auto &[path, gradient] : gradients)
    EXPECT_LT(distance(gradient, oracle[path]), kBackward) << path;
}

void expectAnySplitIsTheWhole(CompiledModel &compiled) {
  std::vector<int32_t> ids = compiled.randomBatch({150}, 5).ids;
  std::vector<double> expected = compiled.oracleLogits(ids);
  EXPECT_LT(distance(compiled.logits(ids, {150}), expected), kForward);
  EXPECT_LT(distance(compiled.logits(ids, {1, 64, 0, 17, 3, 65}), expected),
            kForward);
  EXPECT_LT(
      distance(compiled.logits(ids, std::vector<int64_t>(150, 1)), expected),
      kForward);
}

/// One test, because compiling costs more than running.
TEST_P(EndToEnd, MatchesTheOracle) {
  CompiledModel compiled(GetParam().spec);
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  expectLossAndGradients(compiled);
  expectAnySplitIsTheWhole(compiled);
}

/// The specs of examples/specs, small: the 776M ones are their 376M twins then.
class Examples : public testing::TestWithParam<const char *> {
protected:
  static std::string shrunken() {
    std::string path = std::string(HYBRID_SPECS) + "/" + GetParam() + ".mlir";
    mlir::MLIRContext context(makeRegistry());
    auto module = mlir::parseSourceFile<mlir::ModuleOp>(path, &context);
    mlir::PassManager passes(&context);
    passes.addPass(hybrid::createHybridShrinkModel());
    if (!module || failed(passes.run(*module)))
      return {};
    // The bounds are those of f32; narrower types have tests of their own.
    module->walk([](mlir::Operation *op) { op->removeAttr("dtype"); });
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    return text;
  }
};

TEST_P(Examples, MatchTheOracle) {
  CompiledModel compiled(shrunken());
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  expectLossAndGradients(compiled);
  expectAnySplitIsTheWhole(compiled);
}

INSTANTIATE_TEST_SUITE_P(
    Specs, Examples,
    testing::Values("book_25m", "demo", "demo_gla", "transformer_376m",
                    "rope_nope_376m", "swa_nope_376m", "gla_nope_376m",
                    "gdn_nope_376m", "headwise_376m", "gla_nope_swla_376m"),
    [](const auto &info) { return std::string(info.param); });

/// Resident bytes of this process, as the operating system counts them.
int64_t residentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// The memory plan against the operating system: what a training step adds to
// the process is the arena and the workspace that were predicted.
TEST(MemoryPlan, PredictsWhatAStepTakes) {
  CompiledModel compiled(R"(
hybrid.model @m vocab(4096) width(32) layers(1) tied {
  hybrid.softmax heads(2) head_dim(16) position(nope)
  hybrid.mlp swiglu(2048)
})");
  ASSERT_TRUE(compiled.ok()) << compiled.report;
  // Two pieces of the loss head.
  CompiledModel::Batch batch = compiled.randomBatch({512, 512, 512, 512}, 9);

  hybrid::SymbolValues symbols = {2048, 4, 512, 0, 0, 0};
  uint64_t predicted = 0;
  for (const hybrid::PlanEntry &entry : compiled.plan.entries)
    if (entry.name == "backward") {
      auto memory =
          hybrid::planMemory(compiled.plan, entry, symbols, /*threads=*/2);
      ASSERT_TRUE(bool(memory));
      EXPECT_GT(memory->workspace, 2 * memory->scratch);
      predicted = memory->arena + memory->workspace;
    }
  ASSERT_GT(predicted, 60u << 20);

  std::vector<float> gradients(compiled.model->parameterTable().elements);
  const float *losses = nullptr;
  int64_t before = residentBytes();
  auto status = compiled.context->backward(batch.view(), gradients.data(),
                                           hyb::rt::CallSeed(), &losses);
  ASSERT_TRUE(status.ok()) << status.message();
  double measured = residentBytes() - before;
  EXPECT_NEAR(measured / predicted, 1.0, 0.1);
  EXPECT_NEAR(compiled.context->memoryBytes() / double(predicted), 1.0, 0.02);
}

INSTANTIATE_TEST_SUITE_P(All, EndToEnd, testing::ValuesIn(kCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
