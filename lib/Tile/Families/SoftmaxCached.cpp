//===- SoftmaxCached.cpp - softmax attention over a cache -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SlotSoftmax.h"
#include "SoftmaxCache.h"

using namespace mlir;
using namespace hybrid::tile;

//===----------------------------------------------------------------------===//
// Append
//===----------------------------------------------------------------------===//

ProgramOp hybrid::tile::buildSoftmaxAppend(OpBuilder &builder, Location loc,
                                           const SoftmaxShape &s) {
  enum View : unsigned { K, V, KCache, VCache, Table, TokenSegment };
  MLIRContext *context = builder.getContext();
  constexpr int64_t t = ShapedType::kDynamic;
  SmallVector<Type> types = {
      KernelBuilder::viewType(context, {t, s.kvHeads, s.dim}, s.element),
      KernelBuilder::viewType(context, {t, s.kvHeads, s.valueDim}, s.element)};
  llvm::append_range(types, cacheTypes(context, s));
  llvm::append_range(types, KernelBuilder::segmentViewTypes(context));
  Symbols sym(context);
  AffineExpr grid[] = {sym.segments, getAffineConstantExpr(s.kvHeads, context),
                       sym.longest.ceilDiv(s.queryTile)};
  KernelBuilder k(builder, loc, "softmax_append", grid,
                  {Order::parallel, Order::parallel, Order::parallel}, types);

  Segment segment = k.segment(k.view(Table), k.id(0));
  Value head = k.id(1), zero = k.idx(0);
  Value offset = k.mul(k.id(2), k.idx(s.queryTile));
  Value row = k.add(segment.begin, offset),
        position = k.add(segment.first, offset);
  auto append = [&](View from, View to, int64_t width) {
    Value tile = k.load(k.view(from), {row, head, zero}, {0, 2},
                        {s.queryTile, width}, {segment.end});
    Value end = k.add(segment.first, k.sub(segment.end, segment.begin));
    storeInCache(k, s, tile, k.view(to), segment.slot, head, position, end);
  };
  k.when(k.lt(row, segment.end), [&] {
    append(K, KCache, s.dim);
    append(V, VCache, s.valueDim);
  });
  return k.finish();
}

//===----------------------------------------------------------------------===//
// Attend
//===----------------------------------------------------------------------===//

namespace {
/// One point: a query tile of the heads that share a key head, so that the
/// cache is read once for all of them; of a single head where their rules
/// differ.
class CachedAttention {
public:
  CachedAttention(OpBuilder &builder, Location loc, const SoftmaxShape &s,
                  bool split);
  ProgramOp emit();

private:
  enum View : unsigned { Q, KCache, VCache, Table, TokenSegment, O, Lse };

  SmallVector<Type> viewTypes(MLIRContext *context) const;
  KernelBuilder makeBuilder(OpBuilder &builder, Location loc) const;
  /// Rows of the point's tiles: (row, head) pairs, heads fastest.
  int64_t tileRows() const { return s.queryTile * heads; }
  Value loadQueries(Value row);
  Value loadCache(View view, const KeyTile &keys, Value end, int64_t width);
  /// The keys that queries from `firstQuery` on see, and this point's part of
  /// their tiles.
  struct Keys {
    Value end, lower, upper;
    Visibility sees;
    KeyRange range;
  };
  Keys findKeys(Value firstQuery);
  OnlineSoftmax attend(Value row, Value firstQuery);
  void store(const OnlineSoftmax &result, Value row);
  /// The same for the one row of an elementwise point.
  void attendElementwise(Value row, Value query);

  const SoftmaxShape &s;
  bool split;
  int64_t heads; // query heads per point
  KernelBuilder k;
  Segment segment;
  Value head, kvHead; // first query head of the point
};
} // namespace

CachedAttention::CachedAttention(OpBuilder &builder, Location loc,
                                 const SoftmaxShape &s, bool split)
    : s(s), split(split), heads(s.headsPerPoint()),
      k(makeBuilder(builder, loc)) {}

SmallVector<Type> CachedAttention::viewTypes(MLIRContext *c) const {
  constexpr int64_t t = ShapedType::kDynamic;
  SmallVector<Type> types = {
      KernelBuilder::viewType(c, {t, s.heads, s.dim}, s.element)};
  llvm::append_range(types, cacheTypes(c, s));
  llvm::append_range(types, KernelBuilder::segmentViewTypes(c));
  llvm::append_range(types, outputTypes(c, s, split));
  return types;
}

KernelBuilder CachedAttention::makeBuilder(OpBuilder &builder,
                                           Location loc) const {
  MLIRContext *context = builder.getContext();
  Symbols sym(context);
  SmallVector<AffineExpr> grid = {
      sym.segments, getAffineConstantExpr(s.heads / heads, context),
      sym.longest.ceilDiv(s.queryTile)};
  if (split)
    grid.push_back(getAffineConstantExpr(s.splits, context));
  SmallVector<Order> order(grid.size(), Order::parallel);
  return KernelBuilder(builder, loc, split ? "softmax_split" : "softmax_cached",
                       grid, order, viewTypes(context));
}

Value CachedAttention::loadQueries(Value row) {
  Value tile = k.load(k.view(Q), {row, head, k.idx(0)}, {0, 1, 2},
                      {s.queryTile, heads, s.dim}, {segment.end});
  return k.named("load_q", k.reshape(tile, {tileRows(), s.dim}));
}

Value CachedAttention::loadCache(View view, const KeyTile &keys, Value end,
                                 int64_t width) {
  return loadFromCache(k, s, k.view(view), segment.slot, kvHead, keys, end,
                       width);
}

CachedAttention::Keys CachedAttention::findKeys(Value firstQuery) {
  Keys keys;
  keys.sees = Visibility::of(k, s, head);
  Value stop = k.add(segment.first, k.sub(segment.end, segment.begin));
  keys.end = k.min(stop, k.add(firstQuery, k.idx(s.queryTile)));
  keys.range = visibleKeys(k, keys.sees, firstQuery, keys.end, s.keyTile);
  keys.lower = k.idx(0);
  keys.upper = keys.range.tiles;
  if (split) {
    Value share = k.ceilDiv(keys.range.tiles, k.idx(s.splits));
    keys.lower = k.mul(k.id(3), share);
    keys.upper = k.min(keys.range.tiles, k.add(keys.lower, share));
  }
  return keys;
}

OnlineSoftmax CachedAttention::attend(Value row, Value firstQuery) {
  Value q = loadQueries(row);
  Keys all = findKeys(firstQuery);

  int64_t scoreShape[] = {tileRows(), s.keyTile};
  Value query = k.reshape(k.iota(0, {s.queryTile, heads}), {tileRows(), 1});
  query = k.add(query, k.splat(k.toI32(firstQuery), {tileRows(), 1}));
  auto tile = [&](Value n, ValueRange carried) {
    KeyTile keys = keyTileAt(k, all.range, n, s.keyTile);
    Value keyTile = k.named("load_k", loadCache(KCache, keys, all.end, s.dim));
    Value product =
        k.named("scores", k.dot(q, keyTile, k.zeros(scoreShape), false, true));
    Value scores = k.mul(product, k.full(s.scale, scoreShape));
    scores = k.named("mask", maskScores(k, scores, all.sees, query, keys));
    Value values =
        k.named("load_v", loadCache(VCache, keys, all.end, s.valueDim));
    return OnlineSoftmax::from(carried).update(k, scores, values).carried();
  };
  return OnlineSoftmax::from(
      k.loop(all.lower, all.upper, 1,
             OnlineSoftmax::start(k, tileRows(), s.valueDim).carried(), tile));
}

void CachedAttention::store(const OnlineSoftmax &result, Value row) {
  Value zero = k.idx(0);
  Value o = k.reshape(result.output(k), {s.queryTile, heads, s.valueDim});
  if (!split)
    return k.store(o, k.view(O), {row, head, zero}, {0, 1, 2}, {segment.end});
  Value lse = k.reshape(result.logSumExp(k), {s.queryTile, heads});
  k.store(o, k.view(O), {row, head, k.id(3), zero}, {0, 1, 3}, {segment.end});
  k.store(lse, k.view(Lse), {row, head, k.id(3)}, {0, 1}, {segment.end});
}

void CachedAttention::attendElementwise(Value row, Value query) {
  Value q = loadQueries(row);
  Keys all = findKeys(query);
  SmallVector<Value> queries;
  KernelBuilder::Values start;
  for (int64_t h = 0; h < heads; ++h) {
    queries.push_back(k.slice(q, 0, h, 1));
    llvm::append_range(start,
                       SlotSoftmax::start(k, s.keyTile, s.valueDim).carried());
  }
  int64_t column[] = {s.keyTile, 1};
  auto tile = [&](Value n, ValueRange carried) {
    KeyTile keys = keyTileAt(k, all.range, n, s.keyTile);
    // Both first: they are what takes time.
    Value keyTile = k.named("load_k", loadCache(KCache, keys, all.end, s.dim));
    Value values =
        k.named("load_v", loadCache(VCache, keys, all.end, s.valueDim));
    Value key = k.add(k.splat(k.toI32(keys.first), column), k.iota(0, column));
    Value visible = isVisible(k, all.sees, key, k.splat(k.toI32(query), column),
                              keys.limit);
    KernelBuilder::Values next;
    for (int64_t h = 0; h < heads; ++h)
      llvm::append_range(
          next, SlotSoftmax::from(carried.slice(3 * h, 3))
                    .update(k, keyTile, queries[h], s.scale, visible, values)
                    .carried());
    return next;
  };
  KernelBuilder::Values slots = k.loop(all.lower, all.upper, 1, start, tile);
  Value zero = k.idx(0);
  for (int64_t h = 0; h < heads; ++h) {
    OnlineSoftmax result =
        SlotSoftmax::from(ValueRange(slots).slice(3 * h, 3)).joined(k);
    Value at = k.add(head, k.idx(h)),
          o = result.output(k, "output_" + std::to_string(h));
    if (!split) {
      k.store(o, k.view(O), {row, at, zero}, {1, 2});
      continue;
    }
    k.store(o, k.view(O), {row, at, k.id(3), zero}, {2, 3});
    k.store(result.logSumExp(k), k.view(Lse), {row, at, k.id(3)}, {1, 2});
  }
}

ProgramOp CachedAttention::emit() {
  segment = k.segment(k.view(Table), k.id(0));
  head = heads == 1 ? k.id(1) : k.mul(k.id(1), k.idx(heads));
  kvHead = heads == s.group() ? k.id(1) : k.div(head, k.idx(s.group()));
  Value offset = k.mul(k.id(2), k.idx(s.queryTile));
  Value row = k.add(segment.begin, offset);
  Value firstQuery = k.add(segment.first, offset);
  k.when(k.lt(row, segment.end), [&] {
    if (s.elementwise)
      attendElementwise(row, firstQuery);
    else
      store(attend(row, firstQuery), row);
  });
  return k.finish();
}

ProgramOp hybrid::tile::buildSoftmaxCached(OpBuilder &builder, Location loc,
                                           const SoftmaxShape &shape) {
  return CachedAttention(builder, loc, shape, /*split=*/false).emit();
}

ProgramOp hybrid::tile::buildSoftmaxSplit(OpBuilder &builder, Location loc,
                                          const SoftmaxShape &shape) {
  return CachedAttention(builder, loc, shape, /*split=*/true).emit();
}

//===----------------------------------------------------------------------===//
// Combine
//===----------------------------------------------------------------------===//

static SmallVector<Type> combineTypes(MLIRContext *c, const SoftmaxShape &s) {
  SmallVector<Type> types = outputTypes(c, s, /*isSplit=*/true);
  llvm::append_range(types, outputTypes(c, s, /*isSplit=*/false));
  return types;
}

/// o = Σ_s w_s o_s / Σ_s w_s with w_s = exp(lse_s - max lse), for one token and
/// head: all parts at once.
static ProgramOp combineElementwise(OpBuilder &builder, Location loc,
                                    const SoftmaxShape &s) {
  enum View : unsigned { Partial, Lse, O };
  MLIRContext *context = builder.getContext();
  AffineExpr grid[] = {Symbols(context).tokens,
                       getAffineConstantExpr(s.heads, context)};
  KernelBuilder k(builder, loc, "softmax_combine", grid,
                  {Order::parallel, Order::parallel}, combineTypes(context, s));
  Value row = k.id(0), head = k.id(1), zero = k.idx(0);
  int64_t column[] = {s.splits, 1}, wide[] = {s.splits, s.valueDim};
  Value lse =
      k.reshape(k.named("load_lse", k.load(k.view(Lse), {row, head, zero}, {2},
                                           {s.splits})),
                column);
  Value parts = k.load(k.view(Partial), {row, head, zero, zero}, {2, 3}, wide);
  Value shift = finiteOrZero(k, k.maximum(lse, 0));
  Value weights =
      k.named("weights", k.exp(k.sub(lse, k.broadcast(shift, column))));
  OnlineSoftmax total{shift, k.sum(weights, 0),
                      k.sum(k.mul(parts, k.broadcast(weights, wide)), 0)};
  k.store(total.output(k), k.view(O), {row, head, zero}, {1, 2});
  return k.finish();
}

/// The same for all heads of one token. A range that saw nothing has lse = -inf
/// and weighs nothing.
ProgramOp hybrid::tile::buildSoftmaxCombine(OpBuilder &builder, Location loc,
                                            const SoftmaxShape &s) {
  enum View : unsigned { Partial, Lse, O };
  if (s.elementwise)
    return combineElementwise(builder, loc, s);
  MLIRContext *context = builder.getContext();
  KernelBuilder k(builder, loc, "softmax_combine", {Symbols(context).tokens},
                  {Order::parallel}, combineTypes(context, s));

  Value row = k.id(0), zero = k.idx(0);
  int64_t statShape[] = {s.heads, s.splits}, wide[] = {s.heads, s.valueDim};
  Value lse = k.named(
      "load_lse", k.load(k.view(Lse), {row, zero, zero}, {1, 2}, statShape));
  Value shift = finiteOrZero(k, k.maximum(lse, 1));
  Value weights =
      k.named("weights", k.exp(k.sub(lse, k.broadcast(shift, statShape))));
  Value acc = k.zeros(wide);
  for (int64_t n = 0; n < s.splits; ++n) {
    Value part =
        k.load(k.view(Partial), {row, zero, k.idx(n), zero}, {1, 3}, wide);
    acc = k.add(acc, k.mul(part, k.broadcast(k.slice(weights, 1, n, 1), wide)));
  }
  OnlineSoftmax total{shift, k.sum(weights, 1), acc};
  k.store(total.output(k), k.view(O), {row, zero, zero}, {1, 2});
  return k.finish();
}
