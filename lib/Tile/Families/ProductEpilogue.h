//===- ProductEpilogue.h - a row-wise region over sums ----------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TILE_FAMILIES_PRODUCTEPILOGUE_H
#define HYBRID_LIB_TILE_FAMILIES_PRODUCTEPILOGUE_H

#include "hybrid/Tile/Families/KernelBuilder.h"
#include "hybrid/Tile/Families/Product.h"

namespace hybrid::tile {

/// Where the sums of a point belong.
struct EpilogueTile {
  /// The first view behind those of the matrices.
  unsigned firstView;
  mlir::Value row, column; // index
  int64_t rows, columns;
  /// Limits of rows and columns, as a store takes them.
  llvm::SmallVector<mlir::Value> limits;
  /// Rows of the call.
  mlir::Value numRows;
};

/// The views of the region's other operands and of its results.
void appendEpilogueViews(const ProductEpilogue &epilogue,
                         llvm::SmallVectorImpl<mlir::Type> &types);

/// Emits the region over the sums, one tile per matrix.
void emitEpilogue(KernelBuilder &k, const ProductEpilogue &epilogue,
                  const EpilogueTile &tile, mlir::ValueRange sums);

} // namespace hybrid::tile

#endif // HYBRID_LIB_TILE_FAMILIES_PRODUCTEPILOGUE_H
