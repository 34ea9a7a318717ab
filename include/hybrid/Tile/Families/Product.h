//===- Product.h - matrix products -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_PRODUCT_H
#define HYBRID_TILE_FAMILIES_PRODUCT_H

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Tile/TileOps.h"
#include "mlir/IR/AffineExpr.h"

namespace hybrid::tile {

/// What becomes of the sums of one or more products of the same rows before
/// anything is stored: a row-wise region over tiles of them. Where the region
/// has the result of a product as a 16-bit tensor, it gets the f32 sum.
struct ProductEpilogue {
  /// Null: the sums are stored as they are.
  RowwiseOp region = {};
  /// Operands of the region that are the products, in the order of the
  /// matrices.
  llvm::SmallVector<unsigned> sums;

  unsigned matrices() const { return region ? sums.size() : 1; }
};

/// Whether a tile of the sums has all that `op` of such a region needs: it
/// works element by element, or turns heads that lie in one tile of columns.
bool isEpilogue(mlir::Operation *op);

/// Columns that the operations of a region need together: those of a head, or
/// any number (1).
int64_t epilogueColumns(RowwiseOp region);

/// c[m, n] = Σ_k op(a)[m, k] op(b)[k, n], op being the transpose where asked.
/// At most one of `rows` and `depth` is ShapedType::kDynamic.
struct ProductShape {
  int64_t rows = mlir::ShapedType::kDynamic, columns = 64, depth = 64;
  bool transposeA = false, transposeB = false;
  /// c += instead of c =; c is then read and overwritten.
  bool accumulate = false;
  /// Rows of segment s use the matrix of its slot, b [slots, ...]. Rows are
  /// then those of the packed stream.
  bool grouped = false;
  /// What the dynamic size is, for the grid; null means the tokens.
  mlir::AffineExpr dynamicSize = {};
  /// Tiles of b stay in a first-level cache; each is brought there once per
  /// `rowTile` rows. With few rows it is used where it lies, which is what a
  /// step of decoding wants.
  int64_t rowTile = 128, columnTile = 128, depthTile = 128;
  /// Ranges that the depth is cut into; c is then [splits, rows, columns], for
  /// `buildProductSum`. For products of few tiles and great depth.
  int64_t splits = 1;
  /// Rows of the pieces that what is left of a stream is taken in; 0 computes
  /// the last tile whole.
  int64_t tailRows = 16;
  /// Operands are read by whole tiles, as the copy engine of sm_90a does:
  /// tiles have the sizes given, and what lies outside of a view is 0.
  bool wholeTiles = false;
  /// Of the operands and of the result; null is f32.
  mlir::Type element = {}, resultElement = {};
  /// Of whole tiles; `columns` and `columnTile` are those of each matrix.
  ProductEpilogue epilogue = {};
};

/// Views: a, b, with groups the segment table and token segments, c. One point
/// per tile of c; the rows left at the end may be taken a few at a time, so
/// that a short stream costs little. The sum over k is in ascending order.
/// With an epilogue: a, a b per matrix, the other operands of the region, its
/// results. Operands and results are [rows, columns]; operands of a row less,
/// [1, columns].
ProgramOp buildProduct(mlir::OpBuilder &builder, mlir::Location loc,
                       const ProductShape &shape);

/// The sum over the parts of a product whose depth was split, in ascending
/// order. Views: parts [splits, rows, columns], c.
ProgramOp buildProductSum(mlir::OpBuilder &builder, mlir::Location loc,
                          const ProductShape &shape);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_PRODUCT_H
