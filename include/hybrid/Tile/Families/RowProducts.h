//===- RowProducts.h - few rows through several matrices -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_ROWPRODUCTS_H
#define HYBRID_TILE_FAMILIES_ROWPRODUCTS_H

#include "hybrid/Tile/TileOps.h"
#include "mlir/IR/AffineExpr.h"

namespace hybrid::tile {

/// c_i[r, n] = Σ_k a[r, k] b_i[n, k] for a few rows r, each read against the
/// whole of every matrix b_i [columns, depth].
struct RowProductsShape {
  struct Matrix {
    int64_t columns;
    /// Of the result; null is f32.
    mlir::Type result = {};
    /// Behind the product there is a short convolution with a state, whose
    /// result is c_i; every row is a segment of its own then. The taps are
    /// those of the shape.
    bool isConvolved = false;
  };
  llvm::SmallVector<Matrix> matrices;
  int64_t depth = 64;
  /// Columns that a point takes, and its depth at once.
  int64_t columnTile = 4, depthTile = 8192;
  /// Of the short convolutions; a block of columns divides their channels.
  int64_t taps = 4;
  /// The number of rows, for the grid; null means the tokens.
  mlir::AffineExpr rows = {};
  /// Of a and the matrices; null is f32.
  mlir::Type element = {};

  /// What makes the rows from others, if anything does: a `hybrid.rowwise`
  /// region or an operation that could stand in one, of whose results number
  /// `row` is a, and those in `kept` are stored.
  mlir::Operation *rowwise = nullptr;
  unsigned row = 0;
  llvm::SmallVector<unsigned> kept;
  /// Whether it makes a row for each segment, from the last rows of segments;
  /// nothing is kept then.
  bool isOfLastRows = false;

  /// Or the rows are the outputs of an attention over ranges of keys, [heads,
  /// width], joined by the weights that their log-sum-exp gives; 0 ranges: they
  /// are not.
  struct Ranges {
    int64_t heads = 0, count = 0, width = 0;
  } ranges;
};

/// Views: a, or the operands of the row-wise operation, or partial outputs
/// [rows, heads, ranges, width] and their log-sum-exp [rows, heads, ranges] in
/// f32; of last rows segment table and token segments; the matrices; where
/// there are convolutions segment table, token segments and, of each, the
/// weight [columns, taps] and the state [slots, taps − 1, columns], in place;
/// the kept results; c_i. One point per row and block of columns of any matrix.
/// What costs is reading the matrices, so that all of a point's part is asked
/// for at once, before the row is there, and every point makes the row for
/// itself. In 16 bits row and columns are one product; in f32 they are sums of
/// products, for those of matrix units have other bits and would wait for one
/// another. Fails with an error at a row-wise operation that has shapes that
/// tiles cannot have.
mlir::FailureOr<ProgramOp> buildRowProducts(mlir::OpBuilder &builder,
                                            mlir::Location loc,
                                            const RowProductsShape &shape);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_ROWPRODUCTS_H
