//===- Softmax.h - programs of the softmax family -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_SOFTMAX_H
#define HYBRID_TILE_FAMILIES_SOFTMAX_H

#include "hybrid/Tile/TileOps.h"
#include "llvm/ADT/SmallVector.h"

namespace hybrid::tile {

/// One softmax attention: o_t = Σ_j softmax_j(scale · q_t·k_j) v_j over the
/// visible j of the same sequence: j ≤ t, and with a window W of the head also
/// t - j < W or j < sinks of the head. A row that sees nothing gives 0 and the
/// log-sum-exp -inf. Query head h reads key and value head h / (heads /
/// kvHeads).
struct SoftmaxShape {
  int64_t heads = 1, kvHeads = 1;
  int64_t dim = 64, valueDim = 64;
  double scale = 1.0;
  /// One entry per query head; 0 means none. The window counts the row itself.
  llvm::SmallVector<int64_t> windows, sinks;
  /// Rows of q, and rows of k and v, per tile.
  int64_t queryTile = 64, keyTile = 64;
  /// Ranges of keys that work independently (buildSoftmaxSplit alone).
  int64_t splits = 1;
  /// Over a cache, a query row at a time without matrix products, whose tiles
  /// would be mostly padding: for steps, where reading the cache is what costs.
  /// `queryTile` is 1.
  bool elementwise = false;
  /// Of queries, keys, values, outputs, caches and their gradients; null is
  /// f32. Statistics are f32.
  mlir::Type element = {};
  /// Of the outputs of ranges; null is f32.
  mlir::Type partial = {};

  int64_t group() const { return heads / kvHeads; }
  /// Query heads that a point over a cache works on: those that share a key
  /// head, so that the cache is read once for all of them; one where their
  /// rules differ.
  int64_t headsPerPoint() const;
  bool anyWindow() const;
  /// Rows of a cache that are never overwritten: the largest number of sinks.
  int64_t pinnedRows() const;
};

/// Views: q [t, H, D], k [t, Hk, D], v [t, Hk, Dv], segment table, token
/// segments, o [t, H, Dv], log-sum-exp [t, H]. One point per segment, head and
/// query tile.
ProgramOp buildSoftmaxForward(mlir::OpBuilder &builder, mlir::Location loc,
                              const SoftmaxShape &shape);

/// Views: q, k, v, o, log-sum-exp, do, segment table, token segments, dq, dk,
/// dv. One point per segment, key head and key tile; key tiles take turns to
/// add to dq, dk and dv stay in the accumulators of one point.
ProgramOp buildSoftmaxBackward(mlir::OpBuilder &builder, mlir::Location loc,
                               const SoftmaxShape &shape);

/// The same in two programs without turns, for machines with more processors
/// than segments and heads: each computes the scores. Views as above, of the
/// gradients dk and dv, or dq.
ProgramOp buildSoftmaxBackwardKeys(mlir::OpBuilder &builder, mlir::Location loc,
                                   const SoftmaxShape &shape);
ProgramOp buildSoftmaxBackwardQueries(mlir::OpBuilder &builder,
                                      mlir::Location loc,
                                      const SoftmaxShape &shape);

/// Views: k [t, Hk, D], v [t, Hk, Dv], k cache [slots, Hk, rows, D], v cache
/// [slots, Hk, rows, Dv] (both overwritten), segment table, token segments.
/// Position p goes to row p below the pinned rows n, else to n + (p - n) mod
/// (rows - n).
ProgramOp buildSoftmaxAppend(mlir::OpBuilder &builder, mlir::Location loc,
                             const SoftmaxShape &shape);

/// Views: q [t, H, D], k cache, v cache, segment table, token segments, o
/// [t, H, Dv]. Runs after the append.
ProgramOp buildSoftmaxCached(mlir::OpBuilder &builder, mlir::Location loc,
                             const SoftmaxShape &shape);

/// As buildSoftmaxCached for a range of the keys each: instead of o the views
/// end with the partial outputs [t, H, splits, Dv] and their log-sum-exp
/// [t, H, splits].
ProgramOp buildSoftmaxSplit(mlir::OpBuilder &builder, mlir::Location loc,
                            const SoftmaxShape &shape);

/// A cached attention of calls with a few rows, elementwise, with what comes in
/// front of it: appending the new rows, and making the queries and new keys.
struct SoftmaxStep {
  SoftmaxShape shape;
  /// Most new rows of a segment.
  int64_t newRows = 4;
  /// Keys of a tile that share a running maximum; divides the tile.
  int64_t keysPerPlace = 1;
  /// Row-wise operations or regions of one result that give the queries and the
  /// new keys, of which canMakeHeads holds; null where these are given.
  mlir::Operation *query = nullptr, *key = nullptr;
};

/// Whether each head of the one result of a row-wise operation depends on that
/// head of its operands alone, so that a point can make its heads for itself.
bool canMakeHeads(mlir::Operation *op);

/// Views: q [t, H, D] or the operands of what makes it without segments, k
/// [t, Hk, D] likewise, v [t, Hk, Dv], k cache and v cache as they are before
/// the call, the same as they are after it (both updated, the same memory),
/// segment table, token segments, then o [t, H, Dv], or of more than one range
/// the partial outputs and log-sum-exp of buildSoftmaxSplit. Every point reads
/// a range of the keys of earlier calls from the cache; the last range has the
/// new keys too, from where they are made, and puts them into the cache.
ProgramOp buildSoftmaxStep(mlir::OpBuilder &builder, mlir::Location loc,
                           const SoftmaxStep &step);

/// Views: partial outputs, their log-sum-exp, o [t, H, Dv]. One point per
/// token, elementwise one per token and head.
ProgramOp buildSoftmaxCombine(mlir::OpBuilder &builder, mlir::Location loc,
                              const SoftmaxShape &shape);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_SOFTMAX_H
