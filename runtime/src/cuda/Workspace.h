//===- Workspace.h - What products by a library take ------------*- C++ -*-===//
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

#ifndef HYBRID_RUNTIME_CUDA_WORKSPACE_H
#define HYBRID_RUNTIME_CUDA_WORKSPACE_H

#include <cstdint>

namespace hyb {

/// The memory that a queue gives to products that run one after another. What
/// NVIDIA's guide to cuBLASLt tells for Hopper.
inline constexpr int64_t kProductWorkspaceBytes = int64_t(32) << 20;

} // namespace hyb

#endif // HYBRID_RUNTIME_CUDA_WORKSPACE_H
