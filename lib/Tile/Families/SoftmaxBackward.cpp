//===- SoftmaxBackward.cpp - adjoint of softmax attention, by keys -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxAdjoint.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::softmax_adjoint;

namespace {
/// One point: a key tile of one key head, against every query tile that sees
/// it. With dq, key tiles take turns to add to it.
class Backward {
public:
  Backward(KernelBuilder &k, const SoftmaxShape &s, bool withQueries)
      : k(k), s(s), withQueries(withQueries),
        rows(k, s, k.segment(k.view(Table), k.id(0))) {}
  void emit();

private:
  KernelBuilder::Values overHead(Value head, ValueRange dkdv);
  KernelBuilder::Values overQueryTile(Value head, const Visibility &sees,
                                      Value firstQuery, ValueRange dkdv);
  Value isFirstTurn(const Visibility &sees, Value firstQuery);

  KernelBuilder &k;
  const SoftmaxShape &s;
  bool withQueries;
  Rows rows;
  Value kvHead, firstKey; // firstKey counts from the segment's begin
  Value keys, values;
};
} // namespace

/// Whether this key tile is the lowest one that the query tile sees: then dq is
/// stored, not added to, and nothing has to clear it before.
Value Backward::isFirstTurn(const Visibility &sees, Value firstQuery) {
  Value zero = k.idx(0), tile = k.idx(s.keyTile), lowest = zero;
  if (sees.window) {
    lowest = k.max(zero, k.sub(k.add(firstQuery, k.idx(1)), sees.window));
    lowest = k.mul(k.div(lowest, tile), tile);
  }
  if (sees.sinks)
    lowest = k.select(k.gt(sees.sinks, zero), zero, lowest);
  return k.eq(firstKey, lowest);
}

/// dv += Pᵀ do; dk += dsᵀ q; dq += ds k.
KernelBuilder::Values Backward::overQueryTile(Value head,
                                              const Visibility &sees,
                                              Value firstQuery,
                                              ValueRange dkdv) {
  QueryTile queries = QueryTile::load(rows, head, firstQuery);
  ScoreAdjoint scores =
      ScoreAdjoint::of(rows, queries, keys, values, sees, {firstKey, {}});
  Value dk =
      k.named("dk", k.dot(scores.dScores, queries.q, dkdv[0], true, false));
  Value dv = k.named(
      "dv", k.dot(scores.probabilities, queries.dOutput, dkdv[1], true, false));
  if (withQueries) {
    Value dq = k.named(
        "dq", k.dot(scores.dScores, keys, k.zeros({s.queryTile, s.dim})));
    Value row = k.add(rows.segment.begin, firstQuery);
    AccumulateOp add =
        k.accumulate(dq, k.view(Gradients), {row, head, k.idx(0)}, {0, 2},
                     {rows.segment.end}, isFirstTurn(sees, firstQuery));
    k.named("add_dq", add);
  }
  return {dk, dv};
}

KernelBuilder::Values Backward::overHead(Value head, ValueRange dkdv) {
  Visibility sees = rows.visibility(head);
  Value length = k.sub(rows.segment.end, rows.segment.begin),
        tile = k.idx(s.queryTile);
  Value lower = k.mul(k.div(firstKey, tile), tile), upper = length;
  if (sees.window) {
    // The last key of the tile is seen up to window - 1 rows later.
    Value lastSeen = k.add(k.add(firstKey, k.idx(s.keyTile - 1)), sees.window);
    Value windowed = k.min(length, lastSeen);
    upper = sees.sinks ? k.select(k.lt(firstKey, sees.sinks), length, windowed)
                       : windowed;
  }
  return k.loop(lower, upper, s.queryTile, dkdv,
                [&](Value firstQuery, ValueRange carried) {
                  return overQueryTile(head, sees, firstQuery, carried);
                });
}

void Backward::emit() {
  kvHead = k.id(1);
  firstKey = k.mul(k.id(2), k.idx(s.keyTile));
  Value row = k.add(rows.segment.begin, firstKey);
  k.when(k.lt(row, rows.segment.end), [&] {
    keys = k.named("load_k", rows.load(K, row, kvHead, s.keyTile, s.dim));
    values =
        k.named("load_v", rows.load(V, row, kvHead, s.keyTile, s.valueDim));
    KernelBuilder::Values dkdv = {k.zeros({s.keyTile, s.dim}),
                                  k.zeros({s.keyTile, s.valueDim})};
    if (s.group() == 1) {
      dkdv = overHead(kvHead, dkdv);
    } else {
      Value firstHead = k.mul(kvHead, k.idx(s.group()));
      dkdv = k.loop(firstHead, k.add(firstHead, k.idx(s.group())), 1, dkdv,
                    [&](Value head, ValueRange carried) {
                      return overHead(head, carried);
                    });
    }
    unsigned gradients = withQueries ? Gradients + 1 : Gradients;
    for (unsigned n : {0, 1})
      k.store(dkdv[n], k.view(gradients + n), {row, kvHead, k.idx(0)}, {0, 2},
              {rows.segment.end});
  });
}

static ProgramOp build(OpBuilder &builder, Location loc, const SoftmaxShape &s,
                       bool withQueries) {
  MLIRContext *context = builder.getContext();
  Symbols sym(context);
  AffineExpr grid[] = {sym.segments, getAffineConstantExpr(s.kvHeads, context),
                       sym.longest.ceilDiv(s.keyTile)};
  SmallVector<Type> types = operandTypes(context, s);
  // Key tiles take turns to add to dq, so it is f32.
  if (withQueries)
    types.push_back(KernelBuilder::viewType(
        context, {ShapedType::kDynamic, s.heads, s.dim}));
  types.append({keyType(context, s), valueType(context, s)});
  Order turns = withQueries ? Order::ordered : Order::parallel;
  KernelBuilder k(builder, loc,
                  withQueries ? "softmax_backward" : "softmax_backward_keys",
                  grid, {Order::parallel, Order::parallel, turns}, types);
  Backward(k, s, withQueries).emit();
  return k.finish();
}

ProgramOp hybrid::tile::buildSoftmaxBackward(OpBuilder &builder, Location loc,
                                             const SoftmaxShape &s) {
  return build(builder, loc, s, /*withQueries=*/true);
}

ProgramOp hybrid::tile::buildSoftmaxBackwardKeys(OpBuilder &builder,
                                                 Location loc,
                                                 const SoftmaxShape &s) {
  return build(builder, loc, s, /*withQueries=*/false);
}
