//===- SamplingTest.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Sampling.h"

#include "core/Random.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace hyb::rt;

namespace {

hyb_sampling sampling(float temperature, int top_k = 0, float top_p = 1) {
  hyb_sampling result;
  hyb_sampling_init(&result, sizeof(result));
  result.temperature = temperature;
  result.top_k = top_k;
  result.top_p = top_p;
  result.seed = 3;
  return result;
}

/// How often each of four tokens is drawn in 4000 draws.
std::vector<int> histogram(const std::vector<float> &logits,
                           const hyb_sampling &options) {
  std::vector<int> counts(logits.size());
  for (uint64_t step = 0; step < 4000; ++step) {
    auto token = sampleToken(logits.data(), static_cast<int64_t>(logits.size()),
                             options, step);
    EXPECT_TRUE(token.ok());
    ++counts[static_cast<size_t>(*token)];
  }
  return counts;
}

} // namespace

// The known answer of Random123 1.09 (kat_vectors: philox4x32 10).
TEST(Random, PhiloxKnownAnswers) {
  auto zero = philox({0, 0, 0, 0}, {0, 0});
  EXPECT_EQ(zero, (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                           0x9b00dbd8}));
  auto ones = philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                     {0xffffffff, 0xffffffff});
  EXPECT_EQ(ones, (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                           0x6d5451fd}));
}

TEST(Random, UniformIsUniform) {
  RandomStream stream(1, "test");
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    double u = stream.uniform(i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
  EXPECT_NEAR(squares / 10000, 1.0 / 3, 0.01);
  EXPECT_NE(RandomStream(1, "a").uniform(0), RandomStream(1, "b").uniform(0));
  EXPECT_NE(RandomStream(1, "a").uniform(0), RandomStream(2, "a").uniform(0));
}

TEST(Sampling, GreedyTakesTheFirstOfEquals) {
  std::vector<float> logits = {1, 3, 3, 2};
  EXPECT_EQ(*sampleToken(logits.data(), 4, sampling(0), 9), 1);
}

TEST(Sampling, FollowsTheDistribution) {
  std::vector<float> logits = {std::log(0.1f), std::log(0.2f), std::log(0.3f),
                               std::log(0.4f)};
  std::vector<int> counts = histogram(logits, sampling(1));
  EXPECT_NEAR(counts[0], 400, 80);
  EXPECT_NEAR(counts[1], 800, 100);
  EXPECT_NEAR(counts[2], 1200, 120);
  EXPECT_NEAR(counts[3], 1600, 130);
  // Temperature 0.5 squares the odds: 1 : 4 : 9 : 16 of 30.
  counts = histogram(logits, sampling(0.5f));
  EXPECT_NEAR(counts[0], 133, 50);
  EXPECT_NEAR(counts[3], 2133, 130);
}

TEST(Sampling, TopKAndTopPCutTheTail) {
  std::vector<float> logits = {std::log(0.1f), std::log(0.2f), std::log(0.3f),
                               std::log(0.4f)};
  std::vector<int> counts = histogram(logits, sampling(1, 2));
  EXPECT_EQ(counts[0] + counts[1], 0);
  EXPECT_NEAR(counts[3], 4000 * 4.0 / 7, 130);
  // 0.4 alone holds less than half of the mass, 0.4 + 0.3 holds more.
  counts = histogram(logits, sampling(1, 0, 0.5f));
  EXPECT_EQ(counts[0] + counts[1], 0);
  EXPECT_GT(counts[2], 0);
  counts = histogram(logits, sampling(1, 0, 0.3f));
  EXPECT_EQ(counts[3], 4000);
}

TEST(Sampling, RefusesBadOptionsAndLogits) {
  EXPECT_FALSE(checkSampling(sampling(-1)).ok());
  EXPECT_FALSE(checkSampling(sampling(NAN)).ok());
  EXPECT_FALSE(checkSampling(sampling(1, -1)).ok());
  EXPECT_FALSE(checkSampling(sampling(1, 0, 0)).ok());
  EXPECT_FALSE(checkSampling(sampling(1, 0, 1.5f)).ok());
  EXPECT_TRUE(checkSampling(sampling(1, 40, 0.9f)).ok());
  std::vector<float> logits = {0, NAN};
  auto token = sampleToken(logits.data(), 2, sampling(1), 0);
  ASSERT_FALSE(token.ok());
  EXPECT_EQ(token.status().code(), HYB_MISMATCH);
  std::vector<float> infinite = {0, INFINITY, -INFINITY};
  EXPECT_EQ(*sampleToken(infinite.data(), 3, sampling(1), 0), 1);
  for (float value : {-INFINITY, NAN})
    for (float temperature : {0.0f, 1.0f}) {
      std::vector<float> same(3, value);
      auto none = sampleToken(same.data(), 3, sampling(temperature), 0);
      ASSERT_FALSE(none.ok()) << value;
      EXPECT_EQ(none.status().code(), HYB_MISMATCH);
    }
}
