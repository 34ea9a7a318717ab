//===- ThreadPool.h - Threads that run one function together ----*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CPU_THREADPOOL_H
#define HYBRID_RUNTIME_CPU_THREADPOOL_H

#include "core/Status.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace hyb::rt {

/// Tells the processor that this is a waiting loop.
inline void pauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// A fixed set of threads, the caller's included. Between calls the others wait
/// in a short loop, because the next decode step or training step usually comes
/// at once, and then sleep.
///
/// Nobody waits for a thread that the system has not got round to running: a
/// job is made such that the caller could do it alone, and a worker that
/// arrives after the caller has finished finds the door shut.
class ThreadPool {
public:
  /// `threads` 0: one per processor that this process may use.
  static Result<std::unique_ptr<ThreadPool>> create(int threads);
  ~ThreadPool();

  int size() const { return static_cast<int>(workers.size()) + 1; }

  /// Calls `work(0)` on the caller and `work(thread)` on every other thread
  /// that arrives before the caller is done; returns when all that began have
  /// returned. Callers take turns.
  template <typename Work> void run(const Work &work) {
    runJob([](const void *context,
              int thread) { (*static_cast<const Work *>(context))(thread); },
           &work);
  }

private:
  using Job = void (*)(const void *context, int thread);

  ThreadPool() = default;
  void runJob(Job function, const void *context);
  void workerLoop(int thread);
  /// Waits for another turn than `seen`; the new turn.
  uint32_t awaitTurn(uint32_t seen);

  /// The door of the current job: its turn in the upper half, then whether it
  /// is open, then how many workers are inside.
  static constexpr uint64_t kOpen = uint64_t(1) << 31;
  static constexpr uint64_t kInside = kOpen - 1;
  bool enter(uint32_t turnNumber);

  std::mutex callers;
  std::vector<std::thread> workers;
  Job job = nullptr;
  const void *jobContext = nullptr;
  std::atomic<bool> stopping{false};
  /// Changes when there is a job; the futex that workers sleep on.
  alignas(64) std::atomic<uint32_t> turn{0};
  alignas(64) std::atomic<int> sleeping{0};
  alignas(64) std::atomic<uint64_t> door{0};
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CPU_THREADPOOL_H
