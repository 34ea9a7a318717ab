//===- LaunchRunner.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cpu/LaunchRunner.h"

#include <chrono>
#include <new>
#include <sched.h>

namespace hyb::rt {

namespace {

/// Looks at a counter before giving the processor to somebody else: on a busy
/// machine the thread that is waited for may not be running.
constexpr int kSpins = 4000;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

} // namespace

Status LaunchRunner::reserve(size_t launches, int64_t scratchBytes) {
  size_t threads = static_cast<size_t>(pool.size());
  if (launches > launchRoom) {
    int64_t count = counterCount(static_cast<int64_t>(launches), pool.size());
    HYB_ASSIGN(progress, Memory::allocate(count * kCounterBytes));
    for (int64_t i = 0; i < count; ++i)
      new (static_cast<Counter *>(progress.data()) + i) Counter();
    launchRoom = launches;
  }
  int64_t stride = hyb::scratchStride(scratchBytes);
  if (stride > scratchStride) {
    HYB_ASSIGN(scratch,
               Memory::allocate(stride * static_cast<int64_t>(threads)));
    scratchStride = stride;
  }
  return Status();
}

void LaunchRunner::runAlone(const Launch &launch) {
  for (int64_t task = 0; task < launch.tasks; ++task)
    kernelOf(launch)(launch.views, launch.grid, task, scratch.data());
}

int64_t LaunchRunner::drainShare(const Launch &launch, Counter &next,
                                 int64_t end, void *threadScratch) {
  int64_t done = 0;
  while (next.value.load(std::memory_order_relaxed) < end) {
    int64_t task = next.value.fetch_add(1, std::memory_order_relaxed);
    if (task >= end)
      break;
    kernelOf(launch)(launch.views, launch.grid, task, threadScratch);
    ++done;
  }
  return done;
}

// Each thread has a share of neighbouring tasks, which keeps the same weights
// and rows in its own cache from launch to launch, and helps with the shares of
// the others when its own is done.
void LaunchRunner::runTogether(const Launch &launch, size_t index, int thread) {
  Counter *finished = counters(index);
  Counter *next = finished + 1;
  // Somebody who comes late walks past what is done.
  if (finished->value.load(std::memory_order_acquire) >= launch.tasks)
    return;
  int threads = pool.size();
  void *threadScratch =
      static_cast<char *>(scratch.data()) + scratchStride * thread;
  int64_t done = 0;
  for (int i = 0; i < threads; ++i) {
    int owner = thread + i < threads ? thread + i : thread + i - threads;
    int64_t end = launch.tasks * (owner + 1) / threads;
    done += drainShare(launch, next[owner], end, threadScratch);
  }
  if (done > 0)
    finished->value.fetch_add(done, std::memory_order_acq_rel);
  for (int spin = 0;
       finished->value.load(std::memory_order_acquire) < launch.tasks; ++spin) {
    if (spin < kSpins)
      pauseProcessor();
    else
      ::sched_yield();
  }
}

void LaunchRunner::run(const Launch *launches, size_t count,
                       int64_t *nanoseconds) {
  int threads = pool.size();
  if (threads > 1)
    for (size_t i = 0; i < count; ++i) {
      Counter *counter = counters(i);
      counter[0].value.store(0, std::memory_order_relaxed);
      for (int thread = 0; thread < threads; ++thread)
        counter[1 + thread].value.store(launches[i].tasks * thread / threads,
                                        std::memory_order_relaxed);
    }
  pool.run([&](int thread) {
    bool timed = nanoseconds && thread == 0;
    int64_t before = timed ? now() : 0;
    for (size_t i = 0; i < count; ++i) {
      if (threads == 1)
        runAlone(launches[i]);
      else
        runTogether(launches[i], i, thread);
      if (timed) {
        int64_t after = now();
        nanoseconds[i] += after - before;
        before = after;
      }
    }
  });
}

} // namespace hyb::rt
