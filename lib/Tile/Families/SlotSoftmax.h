//===- SlotSoftmax.h - online softmax per place of a key tile -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_FAMILIES_SLOTSOFTMAX_H
#define HYBRID_LIB_TILE_FAMILIES_SLOTSOFTMAX_H

#include "SoftmaxParts.h"

namespace hybrid::tile {

/// One query against tiles of keys: place j of a tile has a running maximum, a
/// sum and an accumulator of its own, as if the keys j, j + tile, j + 2 tile, …
/// were a sequence. Nothing passes between places until all keys are read, so
/// that threads need not meet for every tile.
struct SlotSoftmax {
  mlir::Value max, sum, acc; // [keys, 1], [keys, 1], [keys, valueDim]

  static SlotSoftmax start(KernelBuilder &k, int64_t keys, int64_t valueDim);
  static SlotSoftmax from(mlir::ValueRange carried);
  KernelBuilder::Values carried() const { return {max, sum, acc}; }

  /// Takes in keys [keys, dim], of which those in `visible` [keys, 1] count,
  /// and their values, for `query` [1, dim].
  SlotSoftmax update(KernelBuilder &k, mlir::Value keys, mlir::Value query,
                     double scale, mlir::Value visible,
                     mlir::Value values) const;
  /// All places together, of one row.
  OnlineSoftmax joined(KernelBuilder &k) const;
};

} // namespace hybrid::tile

#endif // HYBRID_LIB_TILE_FAMILIES_SLOTSOFTMAX_H
