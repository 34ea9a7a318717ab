//===- ArenaLayoutTest.cpp -----------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/ArenaLayout.h"

#include <gtest/gtest.h>
#include <random>

using namespace hyb;

namespace {

ArenaBuffer buffer(uint64_t bytes, uint32_t first, uint32_t last) {
  ArenaBuffer result;
  result.bytes = bytes;
  result.first = first;
  result.last = last;
  return result;
}

} // namespace

TEST(ArenaLayout, ReusesTheSpaceOfTheDead) {
  std::vector<ArenaBuffer> buffers = {buffer(100, 0, 1), buffer(100, 2, 3),
                                      buffer(100, 1, 2)};
  uint64_t total;
  ASSERT_TRUE(layoutArena(buffers, total));
  EXPECT_EQ(total, 512u);
  EXPECT_EQ(buffers[0].offset, buffers[1].offset);
}

TEST(ArenaLayout, NoTwoLiveBuffersOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<ArenaBuffer> buffers;
    for (int i = 0; i < 60; ++i) {
      uint32_t first = random() % 40;
      buffers.push_back(buffer(random() % 1000, first, first + random() % 10));
    }
    uint64_t total;
    ASSERT_TRUE(layoutArena(buffers, total));
    for (size_t i = 0; i < buffers.size(); ++i) {
      const ArenaBuffer &a = buffers[i];
      EXPECT_EQ(a.offset % 256, 0u);
      EXPECT_LE(a.offset + a.bytes, total);
      for (size_t k = 0; k < i; ++k) {
        const ArenaBuffer &b = buffers[k];
        bool live = a.first <= b.last && b.first <= a.last;
        bool overlap =
            a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(live && overlap) << "buffers " << k << " and " << i;
      }
    }
  }
}

TEST(ArenaLayout, NoticesOverflow) {
  std::vector<ArenaBuffer> huge = {buffer(UINT64_MAX - 10, 0, 0)};
  uint64_t total;
  EXPECT_FALSE(layoutArena(huge, total));
  std::vector<ArenaBuffer> sum = {buffer(UINT64_MAX / 2, 0, 1),
                                  buffer(UINT64_MAX / 2, 0, 1),
                                  buffer(UINT64_MAX / 2, 0, 1)};
  EXPECT_FALSE(layoutArena(sum, total));
}
