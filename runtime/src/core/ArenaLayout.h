//===- ArenaLayout.h - Places buffers with lifetimes in one arena ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One algorithm for the runtime, which places the buffers of a plan, and for
// the compiler, which prints the memory that a plan will take: the two numbers
// cannot differ. Plain C++ without LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_ARENALAYOUT_H
#define HYBRID_RUNTIME_CORE_ARENALAYOUT_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hyb {

/// Buffers start at multiples of this: a cache line and the widest vector
/// register of a processor are 64 bytes, what a GPU's memory serves best is
/// 256.
inline constexpr uint64_t kArenaAlignment = 256;

struct ArenaBuffer {
  uint64_t bytes = 0;
  /// Live from launch `first` to launch `last`, both inclusive.
  uint32_t first = 0;
  uint32_t last = 0;
  /// Result, in bytes from the start of the arena.
  uint64_t offset = 0;
};

/// Gives every buffer an offset such that no two that are live at once overlap,
/// and sets `total` to the size of the arena. Returns false when a size
/// overflows. Largest first, each at the lowest free place: not optimal (the
/// problem is NP-hard), but deterministic, and close on the ladder-like
/// lifetimes of a forward and backward run.
inline bool layoutArena(std::vector<ArenaBuffer> &buffers, uint64_t &total) {
  std::vector<ArenaBuffer *> order;
  for (ArenaBuffer &buffer : buffers)
    order.push_back(&buffer);
  // Equal sizes keep their order, which makes the layout one of a kind.
  std::sort(order.begin(), order.end(),
            [](const ArenaBuffer *a, const ArenaBuffer *b) {
              return a->bytes != b->bytes ? a->bytes > b->bytes : a < b;
            });

  total = 0;
  // Kept in ascending order of offset, so that one walk finds the first gap.
  std::vector<const ArenaBuffer *> placed;
  for (ArenaBuffer *buffer : order) {
    uint64_t size;
    if (__builtin_add_overflow(buffer->bytes, kArenaAlignment - 1, &size))
      return false;
    size -= size % kArenaAlignment;
    uint64_t offset = 0;
    for (const ArenaBuffer *other : placed) {
      if (other->last < buffer->first || buffer->last < other->first)
        continue;
      if (other->offset >= offset && other->offset - offset >= size)
        break;
      // Sums of placed buffers were checked when they were placed.
      uint64_t end = other->offset + (other->bytes + kArenaAlignment - 1) /
                                         kArenaAlignment * kArenaAlignment;
      offset = std::max(offset, end);
    }
    uint64_t end;
    if (__builtin_add_overflow(offset, size, &end))
      return false;
    buffer->offset = offset;
    total = std::max(total, end);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), buffer,
                         [](const ArenaBuffer *a, const ArenaBuffer *b) {
                           return a->offset < b->offset;
                         }),
        buffer);
  }
  return true;
}

} // namespace hyb

#endif // HYBRID_RUNTIME_CORE_ARENALAYOUT_H
