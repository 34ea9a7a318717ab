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
class ThreadPool {
public:
  /// `threads` 0: one per processor that this process may use.
  static Result<std::unique_ptr<ThreadPool>> create(int threads);
  ~ThreadPool();

  int size() const { return static_cast<int>(workers.size()) + 1; }

  /// Calls `work(thread)` once on every thread, 0 being the caller, and returns
  /// when all have returned. Callers take turns.
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

  std::mutex callers;
  std::vector<std::thread> workers;
  Job job = nullptr;
  const void *jobContext = nullptr;
  bool stopping = false;
  /// Changes when there is a job; the futex that workers sleep on.
  alignas(64) std::atomic<uint32_t> turn{0};
  alignas(64) std::atomic<int> sleeping{0};
  alignas(64) std::atomic<int> working{0};
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CPU_THREADPOOL_H
