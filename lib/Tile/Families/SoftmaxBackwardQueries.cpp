//===- SoftmaxBackwardQueries.cpp - adjoint of the queries alone ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxAdjoint.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::softmax_adjoint;

/// dq of one query tile: Σ over the visible key tiles of ds k, in ascending
/// order.
static Value sumOverKeys(const Rows &rows, Value head, Value firstQuery) {
  KernelBuilder &k = rows.k;
  const SoftmaxShape &s = rows.s;
  QueryTile queries = QueryTile::load(rows, head, firstQuery);
  Value kvHead = s.group() == 1 ? head : k.div(head, k.idx(s.group()));
  Visibility sees = rows.visibility(head);
  Value length = k.sub(rows.segment.end, rows.segment.begin);
  Value end = k.min(length, k.add(firstQuery, k.idx(s.queryTile)));
  KeyRange range = visibleKeys(k, sees, firstQuery, end, s.keyTile);
  return k.loop(
      k.idx(0), range.tiles, 1, {k.zeros({s.queryTile, s.dim})},
      [&](Value n, ValueRange carried) {
        KeyTile at = keyTileAt(k, range, n, s.keyTile);
        Value row = k.add(rows.segment.begin, at.first);
        Value keys =
            k.named("load_k", rows.load(K, row, kvHead, s.keyTile, s.dim));
        Value values =
            k.named("load_v", rows.load(V, row, kvHead, s.keyTile, s.valueDim));
        ScoreAdjoint scores =
            ScoreAdjoint::of(rows, queries, keys, values, sees, at);
        return KernelBuilder::Values{
            k.named("dq", k.dot(scores.dScores, keys, carried[0]))};
      })[0];
}

ProgramOp hybrid::tile::buildSoftmaxBackwardQueries(OpBuilder &builder,
                                                    Location loc,
                                                    const SoftmaxShape &s) {
  MLIRContext *context = builder.getContext();
  Symbols sym(context);
  AffineExpr grid[] = {sym.segments, getAffineConstantExpr(s.heads, context),
                       sym.longest.ceilDiv(s.queryTile)};
  SmallVector<Type> types = operandTypes(context, s);
  types.push_back(queryType(context, s));
  KernelBuilder k(builder, loc, "softmax_backward_queries", grid,
                  {Order::parallel, Order::parallel, Order::parallel}, types);
  Rows rows(k, s, k.segment(k.view(Table), k.id(0)));
  Value head = k.id(1), firstQuery = k.mul(k.id(2), k.idx(s.queryTile));
  Value row = k.add(rows.segment.begin, firstQuery);
  k.when(k.lt(row, rows.segment.end), [&] {
    k.store(sumOverKeys(rows, head, firstQuery), k.view(Gradients),
            {row, head, k.idx(0)}, {0, 2}, {rows.segment.end});
  });
  return k.finish();
}
