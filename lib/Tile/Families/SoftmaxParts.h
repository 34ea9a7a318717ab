//===- SoftmaxParts.h - pieces that softmax programs share -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_FAMILIES_SOFTMAXPARTS_H
#define HYBRID_LIB_TILE_FAMILIES_SOFTMAXPARTS_H

#include "hybrid/Tile/Families/KernelBuilder.h"
#include "hybrid/Tile/Families/Softmax.h"

namespace hybrid::tile {

/// The window of a head without one: larger than any position, small enough
/// that sums with positions stay inside i32.
inline constexpr int64_t kNoWindow = int64_t(1) << 30;

/// What one head, or one group of heads with equal rules, sees. Positions are
/// counted within one sequence; null means that no head has a window.
struct Visibility {
  /// Window and pinned positions of `head` (an index), from constant tables
  /// where the heads differ.
  static Visibility of(KernelBuilder &k, const SoftmaxShape &shape,
                       mlir::Value head);

  mlir::Value window, sinks; // index
};

/// The key tiles a query tile must visit: those that cover [0, sinkEnd), then
/// those that cover [start, end). Nothing in between is visible.
struct KeyRange {
  mlir::Value sinkEnd, sinkTiles, start,
      tiles; // index; `tiles` counts both parts
};

/// Key tiles for queries whose first position is `firstQuery`, of keys up to
/// `end` (exclusive).
KeyRange visibleKeys(KernelBuilder &k, const Visibility &sees,
                     mlir::Value firstQuery, mlir::Value end, int64_t keyTile);

/// One tile of a KeyRange: positions [first, limit).
struct KeyTile {
  mlir::Value first, limit; // index; limit is null where the range needs none
};
KeyTile keyTileAt(KernelBuilder &k, const KeyRange &range, mlir::Value n,
                  int64_t keyTile);

/// Which keys are visible from which query positions, both i32 of one shape;
/// `limit` as in KeyTile.
mlir::Value isVisible(KernelBuilder &k, const Visibility &sees, mlir::Value key,
                      mlir::Value query, mlir::Value limit);

/// -inf where key position `keyFirst` + column is not visible from the query
/// position of the row (`query` is [rows, 1] of i32).
mlir::Value maskScores(KernelBuilder &k, mlir::Value scores,
                       const Visibility &sees, mlir::Value query,
                       const KeyTile &keys);

/// Running maximum, sum and accumulator of the online softmax. Masks come
/// before `exp`; the first correction factor is 0, never NaN.
struct OnlineSoftmax {
  mlir::Value max, sum, acc; // [rows, 1], [rows, 1], [rows, valueDim]

  static OnlineSoftmax start(KernelBuilder &k, int64_t rows, int64_t valueDim);
  static OnlineSoftmax from(mlir::ValueRange carried);
  KernelBuilder::Values carried() const { return {max, sum, acc}; }

  /// Takes in a tile of masked scores [rows, keys] and its values [keys,
  /// valueDim].
  OnlineSoftmax update(KernelBuilder &k, mlir::Value scores,
                       mlir::Value values) const;
  /// Over the keys of both.
  OnlineSoftmax with(KernelBuilder &k, const OnlineSoftmax &other) const;
  /// acc / sum, and 0 for a row that saw nothing; the name is the op's.
  mlir::Value output(KernelBuilder &k, llvm::StringRef name = "output") const;
  /// ln of the sum, [rows, 1]; -inf for a row that saw nothing.
  mlir::Value logSumExp(KernelBuilder &k) const;
};

/// Views of partial outputs [t, H, ranges, width], f32 where `element` is null,
/// and of their log-sum-exp [t, H, ranges], which is f32.
llvm::SmallVector<mlir::Type> rangeViews(mlir::MLIRContext *context,
                                         int64_t heads, int64_t ranges,
                                         int64_t width, mlir::Type element);

/// o = Σ_s w_s o_s / Σ_s w_s with w_s = exp(lse_s - max lse) for all heads of a
/// row, [H, width], with nothing passed between threads. A range that saw
/// nothing has lse = -inf and weighs nothing.
mlir::Value joinRanges(KernelBuilder &k, mlir::Value partial, mlir::Value lse,
                       mlir::Value row);

/// `value` where it is finite or NaN, 0 where it is -inf: a maximum that may be
/// subtracted.
mlir::Value finiteOrZero(KernelBuilder &k, mlir::Value value);

} // namespace hybrid::tile

#endif // HYBRID_LIB_TILE_FAMILIES_SOFTMAXPARTS_H
