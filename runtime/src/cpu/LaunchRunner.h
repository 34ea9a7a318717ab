//===- LaunchRunner.h - Runs a list of launches on a pool -------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CPU_LAUNCHRUNNER_H
#define HYBRID_RUNTIME_CPU_LAUNCHRUNNER_H

#include "core/Memory.h"
#include "cpu/KernelBorder.h"
#include "cpu/ThreadPool.h"
#include "cpu/Workspace.h"

namespace hyb::rt {

/// Executes launches one after the other, the tasks of each on all threads.
///
/// The threads enter a list together and meet after every launch, so that a
/// launch costs a meeting and not a wake-up: a decode step is a hundred
/// launches of a few microseconds. Which thread runs a task is not fixed; what
/// a task computes does not depend on it, so neither do the bits.
class LaunchRunner {
public:
  explicit LaunchRunner(ThreadPool &pool) : pool(pool) {}

  /// Makes room for lists of `launches` and kernels that need `scratchBytes`.
  Status reserve(size_t launches, int64_t scratchBytes);

  /// Runs a list within what was reserved. With `nanoseconds`, adds the time of
  /// launch i, waiting included, to nanoseconds[i].
  void run(const Launch *launches, size_t count,
           int64_t *nanoseconds = nullptr);

  int64_t bytes() const { return progress.bytes() + scratch.bytes(); }

private:
  struct alignas(kCounterBytes) Counter {
    std::atomic<int64_t> value;
  };
  static_assert(sizeof(Counter) == kCounterBytes);

  /// Of a launch: tasks finished, then per thread the next task of its share.
  Counter *counters(size_t launch) const {
    return static_cast<Counter *>(progress.data()) +
           launch * (static_cast<size_t>(pool.size()) + 1);
  }
  void runAlone(const Launch &launch);
  void runTogether(const Launch &launch, size_t index, int thread);
  /// Runs what is left of one thread's share; the number of tasks run.
  int64_t drainShare(const Launch &launch, Counter &next, int64_t end,
                     void *threadScratch);

  ThreadPool &pool;
  Memory progress;
  Memory scratch;
  size_t launchRoom = 0;
  int64_t scratchStride = 0;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CPU_LAUNCHRUNNER_H
