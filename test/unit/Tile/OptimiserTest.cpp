//===- OptimiserTest.cpp - gradient norm and AdamW -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/Optimiser.h"
#include "ProgramTest.h"

using namespace mlir;
using namespace hybrid::tile;

namespace {
class OptimiserTest : public ProgramTest {
protected:
  OptimiserTest() {
    const double values[] = {
        0.01, 0.9, 0.95, 1e-8, 0.1, 1.0, 1 - 0.9 * 0.9, 1 - 0.95 * 0.95, 0.5};
    llvm::copy(values, scalars.elements().begin());
  }

  /// All three programs, in order.
  void step() {
    OpBuilder b = builder();
    Location loc = b.getUnknownLoc();
    HostBuffer sums({shape.blocks()}, kNaN);
    int64_t symbols[] = {0, 0, 0, 0, 0, 0};
    run(buildGradientSquares(b, loc, shape), {&gradient, &scalars, &sums},
        symbols);
    run(buildGradientNorm(b, loc, shape), {&sums, &scalars}, symbols);
    run(buildAdamW(b, loc, shape),
        {&parameters, &gradient, &moment1, &moment2, &scalars}, symbols);
  }

  // Blocks and tiles that divide nothing; decay ends inside a tile.
  OptimiserShape shape{5000, 3000, 2100};
  HostBuffer parameters = random({5000}), gradient = random({5000}),
             moment1 = random({5000}), moment2 = HostBuffer({5000}, 0.25),
             scalars = HostBuffer({16}, 0.0);
};
} // namespace

TEST_F(OptimiserTest, StepFollowsItsEquations) {
  for (double largest : {1.0, 0.0, 1e6}) { // clips, off, does not clip
    scalars({LargestNorm}) = largest;
    HostBuffer p = parameters, m = moment1, v = moment2;
    double norm = 0.0;
    for (double g : gradient.elements())
      norm += 0.25 * g * g;
    norm = std::sqrt(norm);
    double clip = largest > 0 ? std::min(1.0, largest / norm) : 1.0;
    for (int64_t i = 0; i < 5000; ++i) {
      double g = 0.5 * clip * gradient({i});
      m({i}) = 0.9 * m({i}) + (1 - 0.9) * g;
      v({i}) = 0.95 * v({i}) + (1 - 0.95) * g * g;
      double update =
          m({i}) / scalars({Correction1}) /
          (std::sqrt(v({i}) / scalars({Correction2})) + scalars({Epsilon}));
      p({i}) -= 0.01 * (update + (i < 3000 ? 0.1 * p({i}) : 0.0));
    }
    step();
    EXPECT_NEAR(scalars({GradientNorm}), norm, 1e-12 * norm);
    EXPECT_EQ(scalars({StepTaken}), 1.0);
    EXPECT_LT(distance(parameters, p), 1e-12);
    EXPECT_LT(distance(moment1, m), 1e-12);
    EXPECT_LT(distance(moment2, v), 1e-12);
  }
}

TEST_F(OptimiserTest, NonFiniteGradientsSkipTheStep) {
  for (double bad : {kNaN, std::numeric_limits<double>::infinity()}) {
    gradient({4321}) = bad;
    HostBuffer p = parameters, m = moment1, v = moment2;
    step();
    EXPECT_EQ(scalars({StepTaken}), 0.0);
    EXPECT_FALSE(std::isfinite(scalars({GradientNorm})));
    EXPECT_EQ(distance(parameters, p), 0.0);
    EXPECT_EQ(distance(moment1, m), 0.0);
    EXPECT_EQ(distance(moment2, v), 0.0);
  }
}

// Zero gradients with clipping on: 0 / 0 must not reach the weights.
TEST_F(OptimiserTest, ZeroGradientsDecayAndNothingElse) {
  llvm::fill(gradient.elements(), 0.0);
  llvm::fill(moment1.elements(), 0.0);
  scalars({LearningRate}) = 1.0;
  HostBuffer p = parameters;
  step();
  EXPECT_EQ(scalars({StepTaken}), 1.0);
  for (int64_t i = 0; i < 5000; ++i)
    ASSERT_NEAR(parameters({i}), p({i}) * (i < 3000 ? 0.9 : 1.0), 1e-12) << i;
}
