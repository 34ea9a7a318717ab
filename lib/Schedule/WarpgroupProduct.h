//===- WarpgroupProduct.h - products of warpgroups -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_SCHEDULE_WARPGROUPPRODUCT_H
#define HYBRID_LIB_SCHEDULE_WARPGROUPPRODUCT_H

#include "TargetTraits.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Tile/Families/Product.h"

namespace hybrid {

/// Whether warpgroups of the target can multiply the operands of `op`: 16-bit
/// numbers, and not too few of them to fill a tile.
bool fitsWarpgroups(ProductOp op, const tile::ProductShape &shape,
                    const TargetTraits &target);

/// Whether every row of `value`, wherever it will lie in memory, begins at a
/// multiple of 16 bytes, as the copy engine asks.
bool hasAlignedRows(mlir::Value value);

/// `shape` in tiles of warpgroups, at most `columns` wide; `together` columns,
/// from a multiple of their number on, are in one tile.
tile::ProductShape tiledForWarpgroups(tile::ProductShape shape,
                                      const TargetTraits &target,
                                      int64_t columns, int64_t together = 1);

/// Gives the program of such a shape its record.
void recordProduct(tile::ProgramOp program, const tile::ProductShape &shape,
                   const TargetTraits &target);

} // namespace hybrid

#endif // HYBRID_LIB_SCHEDULE_WARPGROUPPRODUCT_H
