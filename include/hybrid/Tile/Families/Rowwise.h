//===- Rowwise.h - row-wise graph operations as one program -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_ROWWISE_H
#define HYBRID_TILE_FAMILIES_ROWWISE_H

#include "hybrid/Tile/TileOps.h"
#include "llvm/ADT/SmallVector.h"

namespace hybrid::tile {

/// The program of a `hybrid.rowwise` region, or of one operation that could
/// stand in such a region. Views: one per operand (two for segments), then one
/// per result, all contiguous. A point works on a block of rows (indices of the
/// leading dim of the results); operands without such rows are loaded whole.
/// Every operand is loaded once and every result stored once. A block has at
/// most `mostRows` rows, and its widest tile about `blockElements` elements.
///
/// Fails with an error at the operation for shapes that tiles cannot have.
mlir::FailureOr<ProgramOp> buildRowwise(mlir::OpBuilder &builder,
                                        mlir::Operation *op,
                                        int64_t blockElements = 8192,
                                        int64_t mostRows = 64);

/// Which results of a row-wise operation are sums over rows, and how many rows
/// a point takes: a power of two.
struct RowSums {
  llvm::SmallVector<bool> summed;
  int64_t part = 64;
};

/// The same where some results are read by sums over rows alone: of those each
/// point gives the sum of its part, so their views have a row per part.
mlir::FailureOr<ProgramOp> buildRowwiseSums(mlir::OpBuilder &builder,
                                            mlir::Operation *op,
                                            const RowSums &sums,
                                            int64_t blockElements = 8192);

/// Whether buildRowwise knows how to emit `op` (a single operation).
bool hasRowwiseEmission(mlir::Operation *op);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_ROWWISE_H
