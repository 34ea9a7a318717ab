//===- KernelBorder.h - What a kernel is to the processor -------*- C++ -*-===//
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

#include "core/Launch.h"

namespace hyb::rt {

/// `task` counts the parallel grid dimensions, the last one fastest.
using Kernel = void (*)(const KernelView *views, const int64_t *grid,
                        int64_t task, void *scratch);

inline KernelHandle handleOf(Kernel kernel) {
  return reinterpret_cast<KernelHandle>(kernel);
}
inline Kernel kernelOf(const Launch &launch) {
  return reinterpret_cast<Kernel>(reinterpret_cast<uintptr_t>(launch.kernel));
}

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CPU_KERNELBORDER_H
