//===- KernelBorder.h - What a kernel is to the runtime ---------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C border of architecture.md section 5, shared by nothing but convention
// with the code that the compiler makes.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CPU_KERNELBORDER_H
#define HYBRID_RUNTIME_CPU_KERNELBORDER_H

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

/// `task` counts the parallel grid dimensions, the last one fastest.
using Kernel = void (*)(const KernelView *views, const int64_t *grid,
                        int64_t task, void *scratch);

/// One kernel over all its tasks, which are independent of each other.
struct Launch {
  Kernel kernel;
  const KernelView *views;
  const int64_t *grid;
  int64_t tasks;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CPU_KERNELBORDER_H
