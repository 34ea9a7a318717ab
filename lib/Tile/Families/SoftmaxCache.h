//===- SoftmaxCache.h - rows of a cache of keys or values --- -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_FAMILIES_SOFTMAXCACHE_H
#define HYBRID_LIB_TILE_FAMILIES_SOFTMAXCACHE_H

#include "SoftmaxParts.h"

namespace hybrid::tile {

/// Views of a cache of keys [slots, Hk, rows, D] and one of values.
llvm::SmallVector<mlir::Type> cacheTypes(mlir::MLIRContext *context,
                                         const SoftmaxShape &shape);

/// Views of what attention over a cache gives: o [T, H, Dv], or of ranges of
/// keys o [T, H, splits, Dv] in f32 and their log-sum-exp [T, H, splits].
llvm::SmallVector<mlir::Type> outputTypes(mlir::MLIRContext *context,
                                          const SoftmaxShape &shape,
                                          bool isSplit);

/// The rows of a tile of positions that lie below `end`, [keyTile, width];
/// others are 0 and not read.
mlir::Value loadFromCache(KernelBuilder &k, const SoftmaxShape &shape,
                          mlir::Value view, mlir::Value slot,
                          mlir::Value kvHead, const KeyTile &keys,
                          mlir::Value end, int64_t width);

/// Stores a tile [rows, width] for the positions from `position` on that lie
/// below `end`.
void storeInCache(KernelBuilder &k, const SoftmaxShape &shape, mlir::Value tile,
                  mlir::Value view, mlir::Value slot, mlir::Value kvHead,
                  mlir::Value position, mlir::Value end);

} // namespace hybrid::tile

#endif // HYBRID_LIB_TILE_FAMILIES_SOFTMAXCACHE_H
