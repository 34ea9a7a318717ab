//===- NormalDrawsTest.cpp -----------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/NormalDraws.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

using namespace hyb::rt;

namespace {

std::vector<float> byDefinition(const RandomStream &stream, double scale,
                                uint64_t first, int64_t count) {
  std::vector<float> numbers;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i)
    numbers.push_back(
        static_cast<float>(scale * standardNormal(stream, first + i)));
  return numbers;
}

/// How many numbers have other bits.
int64_t differences(const std::vector<float> &a, const std::vector<float> &b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i)
    count += std::memcmp(&a[i], &b[i], sizeof(float)) != 0;
  return count;
}

} // namespace

// Of these the places 326,606 and 37,119,208 lie so near the middle between two
// numbers that the polynomials alone give the wrong one.
TEST(NormalDraws, HaveTheBitsOfTheDefinitionOnEveryLevel) {
  RandomStream stream(7, "layers.0.mixer.q_proj.weight");
  struct Range {
    uint64_t first;
    int64_t count;
  };
  for (Range range : {Range{0, 1 << 19},
                      {37119000, 1000},
                      {(uint64_t(1) << 32) - 1000, 1 << 17}}) {
    std::vector<float> expected =
        byDefinition(stream, 0.02, range.first, range.count);
    for (CpuLevel level : kCpuLevels) {
      if (hostCpuLevel() < level)
        continue;
      std::vector<float> drawn(expected.size());
      drawNormals(stream, 0.02, range.first, range.count, drawn.data(), level);
      EXPECT_EQ(differences(drawn, expected), 0) << cpuLevelName(level);
    }
  }
}

TEST(NormalDraws, WriteNoMoreThanAskedFor) {
  RandomStream stream(1, "p");
  for (int64_t count = 0; count < 20; ++count) {
    std::vector<float> drawn(24, -1.0f);
    drawNormals(stream, 1, 3, count, drawn.data());
    for (size_t i = static_cast<size_t>(count); i < drawn.size(); ++i)
      EXPECT_EQ(drawn[i], -1.0f) << count;
    drawn.resize(static_cast<size_t>(count));
    EXPECT_EQ(differences(drawn, byDefinition(stream, 1, 3, count)), 0);
  }
}

// Zeros, infinities and what is not normal in f32 are the definition's.
TEST(NormalDraws, TakeAnyScale) {
  RandomStream stream(1, "p");
  for (double scale : {0.0, -0.5, 1e-40, 1e-300, 1e30, 3e38, 1e300}) {
    std::vector<float> drawn(4096);
    drawNormals(stream, scale, 0, 4096, drawn.data());
    EXPECT_EQ(differences(drawn, byDefinition(stream, scale, 0, 4096)), 0)
        << scale;
  }
}
