//===- ModelGradientTest.cpp - backward of whole models -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The generated backward, evaluated by the oracle, against central differences
// of the loss, evaluated by the oracle: along one random direction per
// parameter.
//
//===----------------------------------------------------------------------===//

#include "RandomStacks.h"

#include "hybrid/Fuse/Passes.h"
#include "hybrid/Grad/Passes.h"
#include "hybrid/Graph/Passes.h"
#include "hybrid/Hybrid/HybridDialect.h"
#include "hybrid/Stack/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cases;
using hybrid::oracle::Call;
using hybrid::oracle::Tensor;

namespace {
/// A model with its backward.
class Model {
public:
  explicit Model(const RandomStack &stack,
                 Recompute recompute = Recompute::none, bool fuse = false)
      : call(Call::packed(stack.lengths)) {
    context.loadDialect<func::FuncDialect, HybridDialect>();
    module = parseSourceString<ModuleOp>(stack.spec, &context);
    PassManager passes(&context);
    passes.addPass(createHybridExpandStack());
    passes.addPass(createHybridBuildGraph());
    HybridDifferentiateOptions options;
    options.recompute = recompute;
    passes.addPass(createHybridDifferentiate(options));
    if (fuse)
      passes.addPass(createHybridFuseRowwise());
    EXPECT_TRUE(module && succeeded(passes.run(*module))) << stack.spec;
    // Entries without states have no slots.
    call.slots = 0;
    arguments =
        randomArguments(entry("backward"), call, stack.vocab, stack.seed);
  }

  func::FuncOp entry(StringRef name) {
    return module->lookupSymbol<func::FuncOp>(name);
  }
  size_t numParameters() {
    func::FuncOp backward = entry("backward");
    return llvm::count_if(backward.getArguments(), [&](BlockArgument argument) {
      return backward.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                   "hybrid.role") == "param";
    });
  }

  std::vector<Tensor> evaluate(StringRef name,
                               const std::vector<Tensor> &arguments) {
    auto results = oracle::evaluate(entry(name), arguments, call);
    EXPECT_TRUE(succeeded(results));
    return succeeded(results) ? *results : std::vector<Tensor>();
  }

  /// The loss summed over the tokens; `arguments` are those of loss.
  double loss(const std::vector<Tensor> &arguments) {
    std::vector<Tensor> results = evaluate("loss", arguments);
    return std::accumulate(results[0].data.begin(), results[0].data.end(), 0.0);
  }

  /// Arguments of loss: those of backward without the gradients.
  std::vector<Tensor> lossArguments() {
    std::vector<Tensor> all = arguments;
    all.erase(all.begin() + numParameters(), all.begin() + 2 * numParameters());
    return all;
  }

  Call call;
  std::vector<Tensor> arguments;

private:
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

static void checkGradients(const RandomStack &stack) {
  SCOPED_TRACE("seed " + std::to_string(stack.seed) + "\n" + stack.spec);
  Model model(stack);
  std::vector<Tensor> results = model.evaluate("backward", model.arguments);
  size_t count = model.numParameters();
  ASSERT_EQ(results.size(), count + 1);
  std::vector<Tensor> at = model.lossArguments();
  EXPECT_NEAR(
      std::accumulate(results[0].data.begin(), results[0].data.end(), 0.0),
      model.loss(at), 1e-12);

  Random random(stack.seed + 1);
  // The curvature of a norm of small numbers is large: its error falls with the
  // square of the step, and that of rounding is 1e-8 here.
  const double step = 1e-7;
  for (size_t p = 0; p < count; ++p) {
    std::vector<Tensor> up = at, down = at;
    double along = 0; // of the gradient, without what it was added to
    for (int64_t i = 0; i < at[p].size(); ++i) {
      double direction = random.uniform(-1, 1);
      up[p].data[i] += step * direction;
      down[p].data[i] -= step * direction;
      along += direction *
               (results[1 + p].data[i] - model.arguments[count + p].data[i]);
    }
    double difference = (model.loss(up) - model.loss(down)) / (2 * step);
    EXPECT_NEAR(along, difference, 1e-6 * (1 + std::abs(difference)))
        << "parameter "
        << model.entry("loss")
               .getArgAttrOfType<StringAttr>(p, "hybrid.path")
               .str();
  }
}

TEST(ModelGradient, RandomStacks) {
  // Even seeds are short; a few long ones, because the oracle is slow.
  for (uint64_t seed = 0; seed < 24; seed += 2)
    checkGradients(makeRandomStack(seed));
  for (uint64_t seed : {1, 3})
    checkGradients(makeRandomStack(seed));
}

/// With the keys of a call its loss is a function of the parameters like any
/// other; `loss` has nothing left out.
TEST(ModelGradient, OfWhatDropoutKeeps) {
  for (uint64_t seed : {0, 2, 6}) {
    RandomStack stack = withDropout(makeRandomStack(seed), "0.3");
    SCOPED_TRACE("seed " + std::to_string(stack.seed) + "\n" + stack.spec);
    Model model(stack);
    size_t count = model.numParameters();
    auto lossAt = [&](const std::vector<Tensor> &arguments) {
      Tensor losses = model.evaluate("backward", arguments)[0];
      return std::accumulate(losses.data.begin(), losses.data.end(), 0.0);
    };
    std::vector<Tensor> results = model.evaluate("backward", model.arguments);
    std::vector<Tensor> up = model.arguments, down = model.arguments;
    Random random(seed + 1);
    const double step = 1e-7;
    double along = 0;
    for (size_t p = 0; p < count; ++p)
      for (int64_t i = 0; i < up[p].size(); ++i) {
        double direction = random.uniform(-1, 1);
        up[p].data[i] += step * direction;
        down[p].data[i] -= step * direction;
        along += direction *
                 (results[1 + p].data[i] - model.arguments[count + p].data[i]);
      }
    double difference = (lossAt(up) - lossAt(down)) / (2 * step);
    EXPECT_NEAR(along, difference, 1e-6 * (1 + std::abs(difference)));

    std::vector<Tensor> evaluated = model.arguments;
    evaluated.erase(evaluated.begin() + count, evaluated.begin() + 2 * count);
    evaluated.resize(model.entry("loss").getNumArguments());
    EXPECT_NE(model.loss(evaluated), lossAt(model.arguments));
    EXPECT_EQ(model.loss(evaluated),
              Model(makeRandomStack(seed)).loss(evaluated));
  }
}

/// Recomputing and fusing change no number.
TEST(ModelGradient, RecomputeAndFuseAreExact) {
  for (uint64_t seed = 0; seed < 16; seed += 2) {
    RandomStack stack = makeRandomStack(seed);
    if (seed % 4 == 0)
      stack = withDropout(stack, "0.3");
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + stack.spec);
    Model plain(stack), again(stack, Recompute::layer),
        cheap(stack, Recompute::selective), fused(stack, Recompute::none, true),
        cheapFused(stack, Recompute::selective, true);
    std::vector<Tensor> expected = plain.evaluate("backward", plain.arguments);
    for (Model *model : {&again, &cheap, &fused, &cheapFused}) {
      std::vector<Tensor> found = model->evaluate("backward", model->arguments);
      ASSERT_EQ(found.size(), expected.size());
      for (auto [a, b] : llvm::zip(found, expected))
        EXPECT_EQ(a.data, b.data);
    }
  }
}

/// TRN_03: a batch without labels has loss 0 and leaves gradients alone.
TEST(ModelGradient, TRN_03) {
  Model model(makeRandomStack(2));
  size_t labels = 2 * model.numParameters() + 1;
  std::fill(model.arguments[labels].data.begin(),
            model.arguments[labels].data.end(), -100.0);
  std::vector<Tensor> results = model.evaluate("backward", model.arguments);
  for (double loss : results[0].data)
    EXPECT_EQ(loss, 0);
  for (size_t p = 0; p < model.numParameters(); ++p)
    EXPECT_EQ(results[1 + p].data,
              model.arguments[model.numParameters() + p].data);
}
