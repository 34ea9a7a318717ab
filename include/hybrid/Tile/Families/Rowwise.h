//===- Rowwise.h - row-wise graph operations as one program -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_ROWWISE_H
#define HYBRID_TILE_FAMILIES_ROWWISE_H

#include "hybrid/Tile/TileOps.h"

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

/// Whether buildRowwise knows how to emit `op` (a single operation).
bool hasRowwiseEmission(mlir::Operation *op);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_ROWWISE_H
