//===- ScheduleTest.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/Schedule.h"

#include <gtest/gtest.h>

using namespace hyb::rt;

namespace {

Schedule schedule(const char *name) {
  Schedule result;
  result.kind = *Schedule::kindByName(name);
  result.peak = 2;
  result.warmupSteps = 4;
  result.totalSteps = 104;
  result.floor = 0.1;
  return result;
}

} // namespace

TEST(Schedule, WarmsUpInALine) {
  for (const char *name : {"cosine", "constant", "wsd"}) {
    EXPECT_DOUBLE_EQ(schedule(name).learningRate(0), 0.5);
    EXPECT_DOUBLE_EQ(schedule(name).learningRate(3), 2);
  }
  EXPECT_EQ(Schedule::kindByName("linear"), std::nullopt);
}

TEST(Schedule, Shapes) {
  Schedule cosine = schedule("cosine");
  EXPECT_DOUBLE_EQ(cosine.learningRate(4), 2);
  EXPECT_NEAR(cosine.learningRate(53), 1.1, 0.03); // half-way
  EXPECT_NEAR(cosine.learningRate(103), 0.2, 1e-12);
  EXPECT_NEAR(cosine.learningRate(500), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(schedule("constant").learningRate(103), 2);
  Schedule stable = schedule("wsd");
  EXPECT_DOUBLE_EQ(stable.learningRate(83), 2); // 80 % of 104 steps
  EXPECT_NEAR(stable.learningRate(93), 1.1, 0.05);
  EXPECT_NEAR(stable.learningRate(103), 0.2, 1e-12);
}

TEST(Schedule, OneStepIsLegal) {
  Schedule one;
  one.peak = 1;
  EXPECT_DOUBLE_EQ(one.learningRate(0), 1);
  one.warmupSteps = 1;
  EXPECT_DOUBLE_EQ(one.learningRate(0), 1);
}
