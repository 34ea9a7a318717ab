//===- Workspace.h - What running a launch list takes -----------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared with the compiler, whose memory plan says what the runtime will
// allocate.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CPU_WORKSPACE_H
#define HYBRID_RUNTIME_CPU_WORKSPACE_H

#include <cstdint>

namespace hyb {

/// A counter of tasks has a cache line to itself.
inline constexpr int64_t kCounterBytes = 64;

/// From one thread's scratch to the next one's, for kernels that need `bytes`:
/// pages of its own keep neighbours out of each other's lines.
inline int64_t scratchStride(int64_t bytes) {
  return (bytes + 4095) / 4096 * 4096;
}

/// Counters of a launch list: tasks finished, then a share per thread.
inline int64_t counterCount(int64_t launches, int64_t threads) {
  return launches * (threads + 1);
}

/// Beside the arena: scratch and counters.
inline int64_t workspaceBytes(int64_t launches, int64_t scratchBytes,
                              int64_t threads) {
  return scratchStride(scratchBytes) * threads +
         counterCount(launches, threads) * kCounterBytes;
}

} // namespace hyb

#endif // HYBRID_RUNTIME_CPU_WORKSPACE_H
