//===- SoftmaxBackward.cpp - adjoint of softmax attention in one order ---===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxParts.h"

using namespace mlir;
using namespace hybrid::tile;

namespace {
/// Views of buildSoftmaxBackward.
enum View : unsigned { Q, K, V, O, Lse, DO, Table, TokenSegment, DQ, DK, DV };

/// One point: a key tile of one key head, against every query tile that sees
/// it.
class Backward {
public:
  Backward(KernelBuilder &k, const SoftmaxShape &s) : k(k), s(s) {}
  void emit();

private:
  Value load(View view, Value row, Value head, int64_t rows, int64_t width) {
    return k.load(k.view(view), {row, head, k.idx(0)}, {0, 2}, {rows, width},
                  {segment.end});
  }
  KernelBuilder::Values overHead(Value head, ValueRange dkdv);
  KernelBuilder::Values overQueryTile(Value head, const Visibility &sees,
                                      Value firstQuery, ValueRange dkdv);
  Value probabilities(const Visibility &sees, Value q, Value lse,
                      Value firstQuery);
  Value isFirstTurn(const Visibility &sees, Value firstQuery);

  KernelBuilder &k;
  const SoftmaxShape &s;
  Segment segment;
  Value kvHead, firstKey; // firstKey counts from the segment's begin
  Value keys, values;
};
} // namespace

static SmallVector<Type> viewTypes(MLIRContext *c, const SoftmaxShape &s) {
  constexpr int64_t t = ShapedType::kDynamic;
  Type q = KernelBuilder::viewType(c, {t, s.heads, s.dim});
  Type k = KernelBuilder::viewType(c, {t, s.kvHeads, s.dim});
  Type v = KernelBuilder::viewType(c, {t, s.kvHeads, s.valueDim});
  Type o = KernelBuilder::viewType(c, {t, s.heads, s.valueDim});
  Type lse = KernelBuilder::viewType(c, {t, s.heads});
  SmallVector<Type> types = {q, k, v, o, lse, o};
  llvm::append_range(types, KernelBuilder::segmentViewTypes(c));
  types.append({q, k, v});
  return types;
}

/// P_tj = exp(scale · q_t·k_j - lse_t) where j is visible, else 0. Rows past
/// the end have q = do = 0 and add nothing.
Value Backward::probabilities(const Visibility &sees, Value q, Value lse,
                              Value firstQuery) {
  int64_t rowShape[] = {s.queryTile, 1}, shape[] = {s.queryTile, s.keyTile};
  Value product =
      k.named("scores", k.dot(q, keys, k.zeros(shape), false, true));
  Value scores = k.mul(product, k.full(s.scale, shape));
  Value query =
      k.add(k.splat(k.toI32(firstQuery), rowShape), k.iota(0, rowShape));
  scores = k.named("mask", maskScores(k, scores, sees, query, {firstKey, {}}));
  return k.named(
      "softmax",
      k.exp(k.sub(scores, k.broadcast(finiteOrZero(k, lse), shape))));
}

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

/// dA = P (do·v - D), D = rowsum(do o); dv += Pᵀ do; dk += scale dAᵀ q;
/// dq += scale dA k.
KernelBuilder::Values Backward::overQueryTile(Value head,
                                              const Visibility &sees,
                                              Value firstQuery,
                                              ValueRange dkdv) {
  int64_t shape[] = {s.queryTile, s.keyTile};
  Value row = k.add(segment.begin, firstQuery);
  Value q = k.named("load_q", load(Q, row, head, s.queryTile, s.dim));
  Value dout = k.named("load_do", load(DO, row, head, s.queryTile, s.valueDim));
  Value o = k.named("load_o", load(O, row, head, s.queryTile, s.valueDim));
  Value lse =
      k.load(k.view(Lse), {row, head}, {0}, {s.queryTile}, {segment.end});
  Value p =
      probabilities(sees, q, k.reshape(lse, {s.queryTile, 1}), firstQuery);
  Value delta = k.named("delta", k.sum(k.mul(dout, o), 1));

  Value dp = k.named("dp", k.dot(dout, values, k.zeros(shape), false, true));
  Value da = k.mul(p, k.sub(dp, k.broadcast(delta, shape)));
  Value ds = k.named("ds", k.mul(da, k.full(s.scale, shape)));
  Value dk = k.named("dk", k.dot(ds, q, dkdv[0], true, false));
  Value dv = k.named("dv", k.dot(p, dout, dkdv[1], true, false));
  Value dq = k.named("dq", k.dot(ds, keys, k.zeros({s.queryTile, s.dim})));
  AccumulateOp add = k.accumulate(dq, k.view(DQ), {row, head, k.idx(0)}, {0, 2},
                                  {segment.end}, isFirstTurn(sees, firstQuery));
  k.named("add_dq", add);
  return {dk, dv};
}

KernelBuilder::Values Backward::overHead(Value head, ValueRange dkdv) {
  Visibility sees = Visibility::of(k, s, head);
  if (sees.sinks)
    sees.sinks = k.max(k.idx(0), k.sub(sees.sinks, segment.first));
  Value length = k.sub(segment.end, segment.begin), tile = k.idx(s.queryTile);
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
  segment = k.segment(k.view(Table), k.id(0));
  kvHead = k.id(1);
  firstKey = k.mul(k.id(2), k.idx(s.keyTile));
  Value row = k.add(segment.begin, firstKey);
  k.when(k.lt(row, segment.end), [&] {
    keys = k.named("load_k", load(K, row, kvHead, s.keyTile, s.dim));
    values = k.named("load_v", load(V, row, kvHead, s.keyTile, s.valueDim));
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
    k.store(dkdv[0], k.view(DK), {row, kvHead, k.idx(0)}, {0, 2},
            {segment.end});
    k.store(dkdv[1], k.view(DV), {row, kvHead, k.idx(0)}, {0, 2},
            {segment.end});
  });
}

ProgramOp hybrid::tile::buildSoftmaxBackward(OpBuilder &builder, Location loc,
                                             const SoftmaxShape &s) {
  MLIRContext *context = builder.getContext();
  Symbols sym(context);
  AffineExpr grid[] = {sym.segments, getAffineConstantExpr(s.kvHeads, context),
                       sym.longest.ceilDiv(s.keyTile)};
  KernelBuilder k(builder, loc, "softmax_backward", grid,
                  {Order::parallel, Order::parallel, Order::ordered},
                  viewTypes(context, s));
  Backward(k, s).emit();
  return k.finish();
}
