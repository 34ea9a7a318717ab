//===- Launch.h - What a kernel is given ------------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The part of the kernel border (architecture.md section 5) that is the same on
// every device.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_LAUNCH_H
#define HYBRID_RUNTIME_CORE_LAUNCH_H

#include <cstddef>
#include <cstdint>

namespace hyb::rt {

/// `struct hyb_view`: sizes and strides in elements, unused ones 0.
struct KernelView {
  void *base;
  int64_t sizes[4];
  int64_t strides[4];
};
static_assert(sizeof(KernelView) == 72 && offsetof(KernelView, strides) == 40);

/// What a device made of a kernel when it loaded the code; only that device
/// knows what it points to.
using KernelHandle = const void *;

struct LibraryProduct;

/// One kernel over all its tasks, which are independent of each other.
struct Launch {
  KernelHandle kernel;
  const KernelView *views;
  const int64_t *grid;
  int64_t tasks;
  uint32_t viewCount = 0, gridRank = 0;
  /// Or a product that a library of the device computes: then there is no
  /// kernel and no grid, and the views are a, b and c.
  const LibraryProduct *product = nullptr;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_LAUNCH_H
