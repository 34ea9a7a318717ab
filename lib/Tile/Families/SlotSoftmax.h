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

/// One query against tiles of keys: place j of n has a running maximum, a sum
/// and an accumulator of its own, as if the keys j, j + n, j + 2 n, … were a
/// sequence. Nothing passes between places until all keys are read, so that
/// threads need not meet for every tile; the keys that a tile has for a place
/// share a correction.
struct SlotSoftmax {
  mlir::Value max, sum, acc; // [places, 1], [places, 1], [places, valueDim]

  static SlotSoftmax start(KernelBuilder &k, int64_t places, int64_t valueDim);
  static SlotSoftmax from(mlir::ValueRange carried);
  KernelBuilder::Values carried() const { return {max, sum, acc}; }

  /// Takes in keys [m places, dim] and their values for `query` [1, dim]; of
  /// each m'th those count that are in its `visible` [places, 1].
  SlotSoftmax update(KernelBuilder &k, mlir::Value keys, mlir::Value query,
                     double scale, mlir::ValueRange visible,
                     mlir::Value values) const;
  /// All places together, of one row.
  OnlineSoftmax joined(KernelBuilder &k) const;
};

} // namespace hybrid::tile

#endif // HYBRID_LIB_TILE_FAMILIES_SLOTSOFTMAX_H
