//===- SoftmaxForward.cpp - softmax attention over the rows of a call ----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxParts.h"

using namespace mlir;
using namespace hybrid::tile;

namespace {
/// Views of buildSoftmaxForward.
enum View : unsigned { Q, K, V, Table, TokenSegment, O, Lse };
} // namespace

static SmallVector<Type> viewTypes(MLIRContext *c, const SoftmaxShape &s) {
  constexpr int64_t t = ShapedType::kDynamic;
  SmallVector<Type> types = {
      KernelBuilder::viewType(c, {t, s.heads, s.dim}, s.element),
      KernelBuilder::viewType(c, {t, s.kvHeads, s.dim}, s.element),
      KernelBuilder::viewType(c, {t, s.kvHeads, s.valueDim}, s.element)};
  llvm::append_range(types, KernelBuilder::segmentViewTypes(c));
  types.push_back(
      KernelBuilder::viewType(c, {t, s.heads, s.valueDim}, s.element));
  types.push_back(KernelBuilder::viewType(c, {t, s.heads}));
  return types;
}

/// The rows [row, segment.end) of one head, `tileRows` of them.
static Value loadHead(KernelBuilder &k, View view, Value row, Value head,
                      int64_t tileRows, int64_t width, const Segment &segment) {
  return k.load(k.view(view), {row, head, k.idx(0)}, {0, 2}, {tileRows, width},
                {segment.end});
}

/// All visible key tiles through the online softmax. Positions count from the
/// segment's begin; the sinks that lie in front of it are not there.
static OnlineSoftmax attend(KernelBuilder &k, const SoftmaxShape &s,
                            const Segment &segment, Value head,
                            Value firstQuery) {
  Value q = k.named("load_q", loadHead(k, Q, k.add(segment.begin, firstQuery),
                                       head, s.queryTile, s.dim, segment));
  Value kvHead = s.group() == 1 ? head : k.div(head, k.idx(s.group()));
  Visibility sees = Visibility::of(k, s, head);
  if (sees.sinks)
    sees.sinks = k.max(k.idx(0), k.sub(sees.sinks, segment.first));
  Value length = k.sub(segment.end, segment.begin);
  Value end = k.min(length, k.add(firstQuery, k.idx(s.queryTile)));
  KeyRange range = visibleKeys(k, sees, firstQuery, end, s.keyTile);

  int64_t rowShape[] = {s.queryTile, 1},
          scoreShape[] = {s.queryTile, s.keyTile};
  Value query =
      k.add(k.splat(k.toI32(firstQuery), rowShape), k.iota(0, rowShape));
  auto tile = [&](Value n, ValueRange carried) {
    KeyTile keys = keyTileAt(k, range, n, s.keyTile);
    Value row = k.add(segment.begin, keys.first);
    Value keyTile = k.named(
        "load_k", loadHead(k, K, row, kvHead, s.keyTile, s.dim, segment));
    Value product =
        k.named("scores", k.dot(q, keyTile, k.zeros(scoreShape), false, true));
    Value scores = k.mul(product, k.full(s.scale, scoreShape));
    scores = k.named("mask", maskScores(k, scores, sees, query, keys));
    Value values = k.named(
        "load_v", loadHead(k, V, row, kvHead, s.keyTile, s.valueDim, segment));
    return OnlineSoftmax::from(carried).update(k, scores, values).carried();
  };
  return OnlineSoftmax::from(
      k.loop(k.idx(0), range.tiles, 1,
             OnlineSoftmax::start(k, s.queryTile, s.valueDim).carried(), tile));
}

ProgramOp hybrid::tile::buildSoftmaxForward(OpBuilder &builder, Location loc,
                                            const SoftmaxShape &s) {
  MLIRContext *context = builder.getContext();
  Symbols sym(context);
  AffineExpr grid[] = {sym.segments, getAffineConstantExpr(s.heads, context),
                       sym.longest.ceilDiv(s.queryTile)};
  KernelBuilder k(builder, loc, "softmax_forward", grid,
                  {Order::parallel, Order::parallel, Order::parallel},
                  viewTypes(context, s));
  Segment segment = k.segment(k.view(Table), k.id(0));
  Value head = k.id(1), firstQuery = k.mul(k.id(2), k.idx(s.queryTile));
  Value row = k.add(segment.begin, firstQuery);
  k.when(k.lt(row, segment.end), [&] {
    OnlineSoftmax result = attend(k, s, segment, head, firstQuery);
    k.store(result.output(k), k.view(O), {row, head, k.idx(0)}, {0, 2},
            {segment.end});
    Value lse = k.reshape(result.logSumExp(k), {s.queryTile});
    k.store(lse, k.view(Lse), {row, head}, {0}, {segment.end});
  });
  return k.finish();
}
