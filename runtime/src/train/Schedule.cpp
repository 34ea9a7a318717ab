//===- Schedule.cpp ------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "train/Schedule.h"

#include <algorithm>
#include <cmath>

namespace hyb::rt {

std::optional<ScheduleKind> Schedule::kindByName(std::string_view name) {
  if (name == "cosine")
    return ScheduleKind::Cosine;
  if (name == "constant")
    return ScheduleKind::Constant;
  if (name == "wsd")
    return ScheduleKind::WarmupStableDecay;
  return std::nullopt;
}

double Schedule::learningRate(int64_t step) const {
  if (step < warmupSteps)
    return peak * static_cast<double>(step + 1) /
           static_cast<double>(warmupSteps);
  double begin = static_cast<double>(warmupSteps);
  if (kind == ScheduleKind::WarmupStableDecay)
    begin = std::max(begin, (1 - decayShare) * static_cast<double>(totalSteps));
  // 0 where the decay begins, 1 at the last step.
  double span = std::max(1.0, static_cast<double>(totalSteps - 1) - begin);
  double progress =
      std::clamp((static_cast<double>(step) - begin) / span, 0.0, 1.0);
  constexpr double kPi = 3.141592653589793238463;
  switch (kind) {
  case ScheduleKind::Constant:
    return peak;
  case ScheduleKind::Cosine:
    return peak * (floor + (1 - floor) * 0.5 * (1 + std::cos(kPi * progress)));
  case ScheduleKind::WarmupStableDecay:
    return peak * (1 - (1 - floor) * progress);
  }
  return peak;
}

} // namespace hyb::rt
