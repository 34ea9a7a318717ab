//===- RecentPace.h - How long the rest takes -------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TOOLS_HYBRID_RUN_RECENTPACE_H
#define HYBRID_TOOLS_HYBRID_RUN_RECENTPACE_H

#include <deque>

namespace hyb::run {

/// How long the rest of some work takes at the pace of its last half minute:
/// other programs come and go, so that the average since the start is late to
/// see a change. What takes longer than that between two points is averaged
/// from the point before.
class RecentPace {
public:
  /// `share` of the work, 0 to 1, is done at `seconds`.
  void note(double seconds, double share) {
    // Points a tenth of a second apart are enough.
    if (points.size() > 1 &&
        seconds - points[points.size() - 2].seconds < kResolution)
      points.pop_back();
    points.push_back({seconds, share});
    while (points.size() > 2 && seconds - points[1].seconds >= kRecent)
      points.pop_front();
  }

  /// At the last point; below 0 while it is unknown.
  double secondsLeft() const {
    if (points.empty() || points.back().share <= points.front().share)
      return -1;
    return (1 - points.back().share) *
           (points.back().seconds - points.front().seconds) /
           (points.back().share - points.front().share);
  }

private:
  static constexpr double kRecent = 30, kResolution = 0.1;
  struct Point {
    double seconds, share;
  };
  std::deque<Point> points;
};

} // namespace hyb::run

#endif // HYBRID_TOOLS_HYBRID_RUN_RECENTPACE_H
