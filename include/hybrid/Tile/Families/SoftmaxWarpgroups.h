//===- SoftmaxWarpgroups.h - softmax programs for warpgroups -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Softmax attention for machines where one thread copies tiles and warpgroups
// multiply them (sm_90a). Each program has its `tile.schedule` right behind it.
// Operands of products are of the type of the views, scores are scaled inside
// of the exponent (base 2), statistics and sums are f32.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_SOFTMAXWARPGROUPS_H
#define HYBRID_TILE_FAMILIES_SOFTMAXWARPGROUPS_H

#include "hybrid/Tile/Families/Softmax.h"

namespace hybrid::tile {

/// Why warpgroups cannot run the attention of `shape`, for a person; empty
/// where they can. `isCached`: its keys come from a cache. Tiles of `shape` are
/// not looked at: these programs have their own.
std::string whyNotWarpgroups(const SoftmaxShape &shape, bool isCached);

/// Views and results as buildSoftmaxForward.
ProgramOp buildSoftmaxForwardWarpgroups(mlir::OpBuilder &builder,
                                        mlir::Location loc,
                                        const SoftmaxShape &shape);

/// Views and results as buildSoftmaxCached.
ProgramOp buildSoftmaxCachedWarpgroups(mlir::OpBuilder &builder,
                                       mlir::Location loc,
                                       const SoftmaxShape &shape);

/// What the adjoint programs need of every row, [H, t] of f32, so that a tile's
/// rows are neighbours. Views: o, log-sum-exp, do, then -log2(e) log-sum-exp (0
/// for a row that saw nothing) and delta = Σ do o. A program for any target,
/// without a record.
ProgramOp buildSoftmaxRowTerms(mlir::OpBuilder &builder, mlir::Location loc,
                               const SoftmaxShape &shape);

/// Views: q, k, v, do, the two row terms, segment table, token segments, then
/// dk and dv, or dq.
ProgramOp buildSoftmaxBackwardKeysWarpgroups(mlir::OpBuilder &builder,
                                             mlir::Location loc,
                                             const SoftmaxShape &shape);
ProgramOp buildSoftmaxBackwardQueriesWarpgroups(mlir::OpBuilder &builder,
                                                mlir::Location loc,
                                                const SoftmaxShape &shape);

} // namespace hybrid::tile

#endif // HYBRID_TILE_FAMILIES_SOFTMAXWARPGROUPS_H
