//===- SoftmaxParts.cpp - pieces that softmax programs share -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxParts.h"

#include <limits>

using namespace mlir;
using namespace hybrid::tile;

static constexpr double kMinusInfinity =
    -std::numeric_limits<double>::infinity();

bool SoftmaxShape::anyWindow() const {
  return llvm::any_of(windows, [](int64_t w) { return w != 0; });
}

int64_t SoftmaxShape::headsPerPoint() const {
  auto uniform = [&](ArrayRef<int64_t> table) {
    for (int64_t h = 0; h < static_cast<int64_t>(table.size()); ++h)
      if (table[h] != table[h - h % group()])
        return false;
    return true;
  };
  return uniform(windows) && uniform(sinks) ? group() : 1;
}

int64_t SoftmaxShape::pinnedRows() const {
  int64_t rows = 0;
  for (int64_t n : sinks)
    rows = std::max(rows, n);
  return rows;
}

//===----------------------------------------------------------------------===//
// Visibility
//===----------------------------------------------------------------------===//

/// Entry `head` of a table of one number per head, folded where all are equal.
static Value perHead(KernelBuilder &k, ArrayRef<int64_t> table, Value head) {
  if (llvm::all_equal(table))
    return k.idx(table.front());
  return k.toIndex(k.extract(k.tableI32(table), {head}));
}

Visibility Visibility::of(KernelBuilder &k, const SoftmaxShape &shape,
                          Value head) {
  if (!shape.anyWindow())
    return {};
  SmallVector<int64_t> windows, sinks(shape.sinks);
  for (int64_t w : shape.windows)
    windows.push_back(w == 0 ? kNoWindow : w);
  sinks.resize(shape.heads, 0);
  Visibility sees;
  sees.window = perHead(k, windows, head);
  if (llvm::any_of(sinks, [](int64_t n) { return n != 0; }))
    sees.sinks = perHead(k, sinks, head);
  return sees;
}

KeyRange hybrid::tile::visibleKeys(KernelBuilder &k, const Visibility &sees,
                                   Value firstQuery, Value end,
                                   int64_t keyTile) {
  KeyRange range;
  Value zero = k.idx(0), tile = k.idx(keyTile);
  range.start = zero;
  range.sinkTiles = zero;
  if (sees.window)
    range.start = k.max(zero, k.sub(k.add(firstQuery, k.idx(1)), sees.window));
  Value main = k.ceilDiv(k.max(zero, k.sub(end, range.start)), tile);
  if (sees.sinks) {
    range.sinkEnd = k.min(sees.sinks, range.start);
    range.sinkTiles = k.ceilDiv(range.sinkEnd, tile);
  }
  range.tiles = k.add(range.sinkTiles, main);
  return range;
}

KeyTile hybrid::tile::keyTileAt(KernelBuilder &k, const KeyRange &range,
                                Value n, int64_t keyTile) {
  Value tile = k.idx(keyTile);
  Value inMain = k.add(range.start, k.mul(k.sub(n, range.sinkTiles), tile));
  KeyTile at{inMain, {}};
  if (!range.sinkEnd)
    return at;
  // The last sink tile may reach over the sinks, into the main part.
  Value isSink = k.lt(n, range.sinkTiles);
  at.first = k.select(isSink, k.mul(n, tile), inMain);
  at.limit = k.select(isSink, range.sinkEnd,
                      k.idx(std::numeric_limits<int32_t>::max()));
  return at;
}

Value hybrid::tile::isVisible(KernelBuilder &k, const Visibility &sees,
                              Value key, Value query, Value limit) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(key.getType()).getShape();
  auto scalar = [&](Value index) { return k.splat(k.toI32(index), shape); };
  Value visible = k.le(key, query);
  if (sees.window) {
    Value near = k.lt(k.sub(query, key), scalar(sees.window));
    if (sees.sinks)
      near = k.either(near, k.lt(key, scalar(sees.sinks)));
    visible = k.both(visible, near);
  }
  if (limit)
    visible = k.both(visible, k.lt(key, scalar(limit)));
  return visible;
}

Value hybrid::tile::maskScores(KernelBuilder &k, Value scores,
                               const Visibility &sees, Value query,
                               const KeyTile &keys) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(scores.getType()).getShape();
  int64_t columns[] = {1, shape[1]};
  Value key = k.broadcast(
      k.add(k.splat(k.toI32(keys.first), columns), k.iota(1, columns)), shape);
  Value visible =
      isVisible(k, sees, key, k.broadcast(query, shape), keys.limit);
  return k.select(visible, scores, k.full(kMinusInfinity, shape));
}

//===----------------------------------------------------------------------===//
// Online softmax
//===----------------------------------------------------------------------===//

Value hybrid::tile::finiteOrZero(KernelBuilder &k, Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return k.select(k.eq(value, k.full(kMinusInfinity, shape)), k.zeros(shape),
                  value);
}

OnlineSoftmax OnlineSoftmax::start(KernelBuilder &k, int64_t rows,
                                   int64_t valueDim) {
  return {k.full(kMinusInfinity, {rows, 1}), k.zeros({rows, 1}),
          k.zeros({rows, valueDim})};
}

OnlineSoftmax OnlineSoftmax::from(ValueRange carried) {
  return {carried[0], carried[1], carried[2]};
}

OnlineSoftmax OnlineSoftmax::update(KernelBuilder &k, Value scores,
                                    Value values) const {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(scores.getType()).getShape();
  ArrayRef<int64_t> accShape = cast<RankedTensorType>(acc.getType()).getShape();
  OnlineSoftmax next;
  next.max = k.named("row_max", k.max(max, k.maximum(scores, 1)));
  Value shift = finiteOrZero(k, next.max);
  Value correction = k.named("correction", k.exp(k.sub(max, shift)));
  Value p = k.named("softmax", k.exp(k.sub(scores, k.broadcast(shift, shape))));
  next.sum = k.named("row_sum", k.add(k.mul(sum, correction), k.sum(p, 1)));
  Value rescaled = k.mul(acc, k.broadcast(correction, accShape));
  next.acc = k.named("values", k.dot(p, values, rescaled));
  return next;
}

OnlineSoftmax OnlineSoftmax::with(KernelBuilder &k,
                                  const OnlineSoftmax &other) const {
  ArrayRef<int64_t> wide = cast<RankedTensorType>(acc.getType()).getShape();
  OnlineSoftmax both;
  both.max = k.max(max, other.max);
  Value shift = finiteOrZero(k, both.max);
  Value here = k.exp(k.sub(max, shift)), there = k.exp(k.sub(other.max, shift));
  both.sum = k.add(k.mul(sum, here), k.mul(other.sum, there));
  both.acc = k.add(k.mul(acc, k.broadcast(here, wide)),
                   k.mul(other.acc, k.broadcast(there, wide)));
  return both;
}

Value OnlineSoftmax::output(KernelBuilder &k, StringRef name) const {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(sum.getType()).getShape();
  ArrayRef<int64_t> accShape = cast<RankedTensorType>(acc.getType()).getShape();
  Value one = k.full(1.0, shape), zero = k.zeros(shape);
  Value divisor = k.select(k.eq(sum, zero), one, sum);
  return k.named(name, k.mul(acc, k.broadcast(k.div(one, divisor), accShape)));
}

Value OnlineSoftmax::logSumExp(KernelBuilder &k) const {
  return k.add(finiteOrZero(k, max), k.log(sum));
}

//===----------------------------------------------------------------------===//
// Ranges of keys
//===----------------------------------------------------------------------===//

SmallVector<Type> hybrid::tile::rangeViews(MLIRContext *c, int64_t heads,
                                           int64_t ranges, int64_t width,
                                           Type element) {
  constexpr int64_t t = ShapedType::kDynamic;
  return {KernelBuilder::viewType(c, {t, heads, ranges, width}, element),
          KernelBuilder::viewType(c, {t, heads, ranges})};
}

/// Every thread that has a place of the output has its part of all ranges, and
/// what weighs them: the loads do not wait for each other, nor for what another
/// thread does.
Value hybrid::tile::joinRanges(KernelBuilder &k, Value partial, Value lse,
                               Value row) {
  ArrayRef<int64_t> sizes = cast<ViewType>(partial.getType()).getShape();
  const int64_t heads = sizes[1], ranges = sizes[2], width = sizes[3];
  Value zero = k.idx(0);
  int64_t wide[] = {heads, width};
  SmallVector<Value> parts, sums;
  Value most;
  for (int64_t n = 0; n < ranges; ++n) {
    Value sum = k.load(lse, {row, zero, k.idx(n)}, {1, 2}, {heads, 1});
    // Stretched before anything is made of it: a column with a layout of its
    // own would be exchanged between threads, once for each range.
    sums.push_back(k.broadcast(sum, wide));
    parts.push_back(
        k.loadStored(partial, {row, zero, k.idx(n), zero}, {1, 3}, wide));
    most = n == 0 ? sums.front() : k.max(most, sums.back());
  }
  Value shift = finiteOrZero(k, most);
  OnlineSoftmax total{most, k.zeros(wide), k.zeros(wide)};
  for (auto [part, sum] : llvm::zip_equal(parts, sums)) {
    Value weight = k.exp(k.sub(sum, shift));
    total.sum = k.add(total.sum, weight);
    total.acc = k.add(total.acc, k.mul(k.widened(part), weight));
  }
  return total.output(k, "joined");
}
