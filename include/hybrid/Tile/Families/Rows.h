//===- Rows.h - embedding, loss heads and sums over tokens -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_ROWS_H
#define HYBRID_TILE_FAMILIES_ROWS_H

#include "hybrid/Tile/TileOps.h"
#include "llvm/ADT/SmallVector.h"

namespace hybrid::tile {

/// A table of `vocab` rows of `width`.
struct EmbedShape {
  int64_t vocab = 256, width = 64;
  /// Adjoint alone: adds to dtable instead of overwriting it.
  bool accumulate = false;
  /// Adjoint alone: rows of the table per point, a power of two, each of which
  /// looks through all ids for its own; 0 gives a point all rows of a block of
  /// columns.
  int64_t pointRows = 0;
  /// Rows are dealt in turn to so many points beside each other, a power of
  /// two: rows of many tokens are neighbours where ids go by how often they
  /// come.
  int64_t turns = 32;
  /// Of table and rows; null is f32. The gradient of the table is f32.
  mlir::Type element = {};
};

/// Views: ids [t] i32, table [V, W], y [t, W]. One point per block of tokens.
ProgramOp buildEmbed(mlir::OpBuilder &builder, mlir::Location loc,
                     const EmbedShape &shape);

/// Views: ids [t] i32, dy [t, W], dtable [V, W]. One point per block of
/// columns, or of rows, which goes through the tokens in order.
ProgramOp buildEmbedGrad(mlir::OpBuilder &builder, mlir::Location loc,
                         const EmbedShape &shape);

/// The same, added to dtable, with the tokens in the order of their ids in
/// place of the ids. Views: tokens_by_id [t, 3] i32
/// (docs/rationale/architecture.md, section 6), dy [t, W], dtable [V, W]. One
/// point per token.
ProgramOp buildEmbedGradByIds(mlir::OpBuilder &builder, mlir::Location loc,
                              const EmbedShape &shape);

struct CrossEntropyShape {
  int64_t vocab = 256;
  /// Columns per tile of the online log-sum-exp; rows per tile.
  int64_t columnTile = 1024, rowTile = 8;
  /// Whether the largest logit of each row, and the sum of the exponentials of
  /// what is below it, are results of the loss and known to the adjoint.
  bool hasStatistics = false;
  /// Adjoint alone: whether a view of dloss [t] is given.
  bool hasLossGradient = false;
  /// Adjoint alone: dlogits overwrites the logits and has no view of its own.
  bool inPlace = false;
  /// Adjoint alone: of dlogits; null is f32.
  mlir::Type gradientElement = {};
};

/// loss_t = weights_t (ln Σ_n exp(logits_t[n]) - logits_t[labels_t]), 0 for the
/// label -100. Views: logits [t, V], labels [t] i32, weights [t], loss [t],
/// (largest [t], sum [t]).
ProgramOp buildCrossEntropy(mlir::OpBuilder &builder, mlir::Location loc,
                            const CrossEntropyShape &shape);

/// dlogits_t = dloss_t weights_t (softmax(logits_t) - onehot(labels_t)). Views:
/// logits, labels, weights, (dloss), (largest, sum), dlogits. One point per
/// block of rows, or per tile where the statistics are known.
ProgramOp buildCrossEntropyGrad(mlir::OpBuilder &builder, mlir::Location loc,
                                const CrossEntropyShape &shape);

struct ReduceTokensShape {
  /// Of x after the tokens, one or two dims; none for a sum of scalars.
  llvm::SmallVector<int64_t> sizes;
  /// How many of them, from the first, are summed as well.
  unsigned summed = 0;
  /// Adds to the result instead of overwriting it.
  bool accumulate = false;
  /// Tokens per point; the results are then partial sums, y [⌈t / part⌉, the
  /// sizes that are left]. 0 sums all tokens.
  int64_t part = 0;
  /// Of the tile that is loaded at once; rows are fewer where a summed dim
  /// would make it larger than 4,096 elements.
  int64_t rowTile = 16, columnTile = 64;
};

/// Views: x [t, sizes...], y [the sizes that are left]. One point per block of
/// columns and part, which goes through its tokens in order.
ProgramOp buildReduceTokens(mlir::OpBuilder &builder, mlir::Location loc,
                            const ReduceTokensShape &shape);

/// y_s = the last row of segment s, 0 for an empty one. Views: x [t, W],
/// segment table, token segments, y [segments, W].
ProgramOp buildLastRows(mlir::OpBuilder &builder, mlir::Location loc,
                        int64_t width, mlir::Type element = {});

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_ROWS_H
