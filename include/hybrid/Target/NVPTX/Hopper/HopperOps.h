//===- HopperOps.h - the hopper dialect -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_NVPTX_HOPPER_HOPPEROPS_H
#define HYBRID_TARGET_NVPTX_HOPPER_HOPPEROPS_H

#include "hybrid/Tile/TileOps.h"

#include "hybrid/Target/NVPTX/Hopper/HopperDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "hybrid/Target/NVPTX/Hopper/HopperTypes.h.inc"

namespace hybrid::hopper {

/// Threads, and rows of a product, of a warpgroup; depth of one instruction.
inline constexpr int64_t kWarpgroupThreads = 128, kRows = 64, kStepDepth = 16;
/// Columns of a row that four lanes hold together, two each.
inline constexpr int64_t kFragmentColumns = 8;

} // namespace hybrid::hopper

#define GET_OP_CLASSES
#include "hybrid/Target/NVPTX/Hopper/HopperOps.h.inc"

#endif // HYBRID_TARGET_NVPTX_HOPPER_HOPPEROPS_H
