//===- SoftmaxCache.cpp - rows of a cache of keys or values -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxCache.h"

using namespace mlir;
using namespace hybrid::tile;

/// Cache rows of `count` positions from `first` on, as i32. The positions that
/// are read or written span at most the ring, so that one subtraction wraps
/// them; others are masked.
static Value cacheRows(KernelBuilder &k, const SoftmaxShape &s, Value rows,
                       Value first, int64_t count) {
  Value pinned = k.idx(s.pinnedRows()), ring = k.sub(rows, pinned);
  Value from = k.max(first, pinned);
  Value base = k.rem(k.sub(from, pinned), ring);
  auto scalar = [&](Value index) { return k.splat(k.toI32(index), {count}); };
  Value position = k.add(scalar(first), k.iota(0, {count}));
  Value place = k.add(k.sub(position, scalar(from)), scalar(base));
  Value wrapped =
      k.select(k.lt(place, scalar(ring)), place, k.sub(place, scalar(ring)));
  Value inRing = k.add(wrapped, scalar(pinned));
  return k.select(k.lt(position, scalar(pinned)), position, inRing);
}

/// Which of `count` positions from `first` on lie below all `limits`.
static Value below(KernelBuilder &k, Value first, int64_t count,
                   ArrayRef<Value> limits) {
  Value end = limits.front();
  for (Value limit : limits.drop_front())
    if (limit)
      end = k.min(end, limit);
  Value left = k.splat(k.toI32(k.sub(end, first)), {count});
  return k.lt(k.iota(0, {count}), left);
}

SmallVector<Type> hybrid::tile::cacheTypes(MLIRContext *c,
                                           const SoftmaxShape &s) {
  constexpr int64_t d = ShapedType::kDynamic;
  return {KernelBuilder::viewType(c, {d, s.kvHeads, d, s.dim}, s.element),
          KernelBuilder::viewType(c, {d, s.kvHeads, d, s.valueDim}, s.element)};
}

SmallVector<Type>
hybrid::tile::outputTypes(MLIRContext *c, const SoftmaxShape &s, bool isSplit) {
  constexpr int64_t t = ShapedType::kDynamic;
  if (!isSplit)
    return {KernelBuilder::viewType(c, {t, s.heads, s.valueDim}, s.element)};
  return rangeViews(c, s.heads, s.splits, s.valueDim, s.partial);
}

Value hybrid::tile::loadFromCache(KernelBuilder &k, const SoftmaxShape &s,
                                  Value view, Value slot, Value kvHead,
                                  const KeyTile &keys, Value end,
                                  int64_t width) {
  Value zero = k.idx(0);
  if (!s.anyWindow()) // a row per position
    return k.load(view, {slot, kvHead, keys.first, zero}, {2, 3},
                  {s.keyTile, width}, {end});
  Value rows = cacheRows(k, s, k.dim(view, 2), keys.first, s.keyTile);
  Value mask = below(k, keys.first, s.keyTile, {end, keys.limit});
  return k.loadRows(view, {slot, kvHead, zero, zero}, rows, mask, {2, 3},
                    {s.keyTile, width});
}

void hybrid::tile::storeInCache(KernelBuilder &k, const SoftmaxShape &s,
                                Value tile, Value view, Value slot,
                                Value kvHead, Value position, Value end) {
  Value zero = k.idx(0);
  if (!s.anyWindow())
    return k.store(tile, view, {slot, kvHead, position, zero}, {2, 3}, {end});
  int64_t count = cast<RankedTensorType>(tile.getType()).getDimSize(0);
  Value rows = cacheRows(k, s, k.dim(view, 2), position, count);
  k.storeRows(tile, view, {slot, kvHead, zero, zero}, rows,
              below(k, position, count, {end}), {2, 3});
}
