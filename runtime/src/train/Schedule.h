//===- Schedule.h - Learning rate by step -----------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TRAIN_SCHEDULE_H
#define HYBRID_RUNTIME_TRAIN_SCHEDULE_H

#include "core/Status.h"

#include <string_view>

namespace hyb::rt {

enum class ScheduleKind : uint8_t {
  Cosine,           // warm-up, then half a cosine down to the floor
  Constant,         // warm-up, then the peak
  WarmupStableDecay // warm-up, the peak, then a line down to the floor
};

/// The learning rate is a function of the step alone, so there is nothing to
/// save in a checkpoint.
struct Schedule {
  ScheduleKind kind = ScheduleKind::Cosine;
  double peak = 1e-3;
  int64_t warmupSteps = 0;
  int64_t totalSteps = 1;
  /// Of the peak, reached at the last step.
  double floor = 0.1;
  /// Share of the steps that warm-up-stable-decay spends decaying.
  double decayShare = 0.2;

  static std::optional<ScheduleKind> kindByName(std::string_view name);

  /// `step` counts from 0.
  double learningRate(int64_t step) const;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_TRAIN_SCHEDULE_H
