//===- LowerPrograms.h - programs as the code of one thread -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_LOWERPROGRAMS_H
#define HYBRID_LIB_TARGET_NVPTX_LOWERPROGRAMS_H

#include "Chips.h"

namespace hybrid::nvptx {

/// On each function made from a program.
inline constexpr llvm::StringLiteral kSharedBytesAttr = "hybrid.shared_bytes",
                                     kThreadsAttr = "hybrid.threads";
/// On each that has registers for more than one block on a multiprocessor.
inline constexpr llvm::StringLiteral kBlocksAttr = "hybrid.blocks";
/// A unit attribute on each that waits for the kernel in front of it by itself.
inline constexpr llvm::StringLiteral kOverlapsAttr = "hybrid.overlaps";
/// On each whose blocks take several points of the grid.
inline constexpr llvm::StringLiteral kPersistentAttr = "hybrid.persistent";
/// On each function made from a hopper kernel: an array with the argument
/// number
/// (`view`), the element `type` and the `box` of each tensor map.
inline constexpr llvm::StringLiteral kTensorMapsAttr = "hybrid.tensor_maps";

/// Copies of a product's operands that a loop keeps, at most.
inline constexpr int64_t kMostStages = 3;

/// Turns every `tile.program` of the module into a function and adds their
/// number to `count`.
mlir::LogicalResult lowerPrograms(mlir::ModuleOp module, const Chip &chip,
                                  unsigned &count);

} // namespace hybrid::nvptx

#endif // HYBRID_LIB_TARGET_NVPTX_LOWERPROGRAMS_H
