//===- ThreadPool.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cpu/ThreadPool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

namespace hyb::rt {

namespace {

/// Rounds of the waiting loop before a worker sleeps: some 50 to 100
/// microseconds, more than what a decode step leaves between calls and less
/// than anybody notices.
constexpr int kSpins = 2000;

constexpr int kMaxThreads = 1024;

int availableProcessors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0)
    return CPU_COUNT(&set);
  return 1;
}

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr,
            0);
}

void futexWakeAll(std::atomic<uint32_t> &word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr,
            0);
}

} // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) {
  if (threads < 0 || threads > kMaxThreads)
    return failure(HYB_INVALID_ARGUMENT,
                   "threads is %d; give 1 to %d, or 0 for one per processor",
                   threads, kMaxThreads);
  if (threads == 0)
    threads = availableProcessors();
  std::unique_ptr<ThreadPool> pool(new ThreadPool());
  // std::thread reports a refusal of the system by an exception only.
  try {
    for (int thread = 1; thread < threads; ++thread)
      pool->workers.emplace_back(
          [self = pool.get(), thread] { self->workerLoop(thread); });
  } catch (const std::system_error &) {
    return failure(HYB_OUT_OF_MEMORY,
                   "cannot start thread %d of %d; ask for fewer threads",
                   static_cast<int>(pool->workers.size()) + 1, threads);
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stopping = true;
  turn.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(turn);
  for (std::thread &worker : workers)
    worker.join();
}

uint32_t ThreadPool::awaitTurn(uint32_t seen) {
  uint32_t now;
  for (int spin = 0; spin < kSpins; ++spin) {
    if ((now = turn.load(std::memory_order_acquire)) != seen)
      return now;
    pauseProcessor();
  }
  // Announced before the last look, so that a caller who changes the turn after
  // it sees a sleeper; the futex itself compares once more.
  sleeping.fetch_add(1, std::memory_order_seq_cst);
  while ((now = turn.load(std::memory_order_seq_cst)) == seen)
    futexWait(turn, seen);
  sleeping.fetch_sub(1, std::memory_order_relaxed);
  return now;
}

bool ThreadPool::enter(uint32_t turnNumber) {
  uint64_t seen = door.load(std::memory_order_acquire);
  do {
    if (seen >> 32 != turnNumber || !(seen & kOpen))
      return false;
  } while (
      !door.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire));
  return true;
}

void ThreadPool::workerLoop(int thread) {
  uint32_t seen = 0;
  while (true) {
    seen = awaitTurn(seen);
    if (stopping)
      return;
    if (!enter(seen))
      continue;
    job(jobContext, thread);
    door.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::runJob(Job function, const void *context) {
  std::lock_guard<std::mutex> lock(callers);
  if (workers.empty())
    return function(context, 0);
  // No worker is inside and the door is shut: nobody reads these.
  job = function;
  jobContext = context;
  uint32_t number = turn.load(std::memory_order_relaxed) + 1;
  door.store(uint64_t(number) << 32 | kOpen, std::memory_order_release);
  turn.store(number, std::memory_order_seq_cst);
  if (sleeping.load(std::memory_order_seq_cst) > 0)
    futexWakeAll(turn);
  function(context, 0);
  door.fetch_and(~kOpen, std::memory_order_acq_rel);
  for (int spin = 0; door.load(std::memory_order_acquire) & kInside; ++spin) {
    if (spin < kSpins)
      pauseProcessor();
    else
      ::sched_yield();
  }
}

} // namespace hyb::rt
