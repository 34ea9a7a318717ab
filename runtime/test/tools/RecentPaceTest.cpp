//===- RecentPaceTest.cpp ------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../../tools/hybrid-run/RecentPace.h"

#include <gtest/gtest.h>

using hyb::run::RecentPace;

TEST(RecentPace, IsUnknownAtFirst) {
  RecentPace pace;
  EXPECT_LT(pace.secondsLeft(), 0);
  pace.note(5, 0);
  EXPECT_LT(pace.secondsLeft(), 0);
  pace.note(6, 0);
  EXPECT_LT(pace.secondsLeft(), 0);
  pace.note(7, 0.1);
  EXPECT_NEAR(pace.secondsLeft(), 18, 1e-9);
}

// A run that goes on from a checkpoint has not done the first half now.
TEST(RecentPace, CountsFromWhereItBegan) {
  RecentPace pace;
  pace.note(100, 0.5);
  pace.note(110, 0.6);
  EXPECT_NEAR(pace.secondsLeft(), 40, 1e-9);
}

// 100 seconds at a thousandth a second, then five times as fast.
TEST(RecentPace, FollowsAChange) {
  RecentPace pace;
  double share = 0;
  for (int second = 0; second <= 100; ++second)
    pace.note(second, share = second * 0.001);
  EXPECT_NEAR(pace.secondsLeft(), 900, 1e-6);
  for (int second = 101; second <= 140; ++second)
    pace.note(second, share += 0.005);
  EXPECT_NEAR(pace.secondsLeft(), 140, 1e-6);
}

TEST(RecentPace, HasAPaceWhenPointsAreFarApart) {
  RecentPace pace;
  pace.note(0, 0);
  pace.note(100, 0.25);
  pace.note(200, 0.5);
  EXPECT_NEAR(pace.secondsLeft(), 200, 1e-9);
}

TEST(RecentPace, PointsCloseTogetherAreOne) {
  RecentPace pace;
  for (int i = 0; i <= 100000; ++i)
    pace.note(i * 1e-4, i * 1e-6);
  EXPECT_NEAR(pace.secondsLeft(), 90, 1e-6);
}
