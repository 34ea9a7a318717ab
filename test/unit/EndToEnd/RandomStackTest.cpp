//===- RandomStackTest.cpp - compiled random models against the oracle ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// HYBRID_RANDOM_STACKS=first:count chooses the seeds; a failure names its seed,
// and HYBRID_RANDOM_STACKS=seed:1 repeats it.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "RandomStacks.h"

#include "llvm/ADT/StringRef.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace hybrid;
using namespace hybrid::test;

namespace {

/// f32 against f64, relative to the largest value of the tensor, or to the
/// floor: a gradient may be zero, where f32 leaves rounding errors.
constexpr double kForward = 5e-5, kBackward = 5e-4, kFloor = 1e-2;

double error(llvm::ArrayRef<float> found, llvm::ArrayRef<double> expected) {
  double largest = 0;
  for (double value : expected)
    largest = std::max(largest, std::abs(value));
  double relative = distance(found, expected);
  return relative * std::max(largest, 1e-30) / std::max(largest, kFloor);
}

void checkStack(uint64_t seed) {
  cases::RandomStack stack = cases::makeRandomStack(seed);
  SCOPED_TRACE("HYBRID_RANDOM_STACKS=" + std::to_string(seed) + ":1\n" +
               stack.spec);
  CompiledModel compiled(stack.spec);
  ASSERT_TRUE(compiled.ok()) << compiled.report;

  CompiledModel::Batch batch = compiled.randomBatch(stack.lengths, seed);
  std::vector<double> expected = compiled.oracleLoss(batch);
  EXPECT_LT(error(compiled.loss(batch), expected), kForward) << "loss";
  std::vector<float> losses;
  auto gradients = compiled.backward(batch, losses);
  EXPECT_LT(error(losses, expected), kForward) << "loss of backward";
  auto oracle = compiled.oracleBackward(batch);
  EXPECT_EQ(gradients.size(), oracle.size());
  for (const auto &[path, gradient] : gradients)
    EXPECT_LT(error(gradient, oracle[path]), kBackward) << path;

  // The longest sequence, whole and in pieces.
  int64_t tokens = *llvm::max_element(stack.lengths);
  std::vector<int32_t> ids = compiled.randomBatch({tokens}, seed + 1).ids;
  std::vector<double> logits = compiled.oracleLogits(ids);
  EXPECT_LT(error(compiled.logits(ids, {tokens}), logits), kForward)
      << "logits of " << tokens << " tokens";
  if (!stack.splits)
    return;
  int64_t half = tokens / 2;
  EXPECT_LT(error(compiled.logits(ids, {half, 0, tokens - half}), logits),
            kForward)
      << "logits of " << half << " and " << tokens - half << " tokens";
  EXPECT_LT(
      distance(compiled.logits(ids, std::vector<int64_t>(tokens, 1)), logits),
      kForward)
      << "logits of " << tokens << " single tokens";
}

} // namespace

TEST(RandomStacks, MatchTheOracle) {
  uint64_t first = 0, count = 8;
  if (const char *chosen = std::getenv("HYBRID_RANDOM_STACKS")) {
    auto [firstText, countText] = llvm::StringRef(chosen).split(':');
    ASSERT_FALSE(firstText.getAsInteger(10, first) ||
                 countText.getAsInteger(10, count))
        << "HYBRID_RANDOM_STACKS is '" << chosen << "'; write first:count";
  }
  for (uint64_t seed = first; seed < first + count; ++seed)
    checkStack(seed);
}
