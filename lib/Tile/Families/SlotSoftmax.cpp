//===- SlotSoftmax.cpp - online softmax per place of a key tile -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SlotSoftmax.h"

#include <limits>

using namespace mlir;
using namespace hybrid::tile;

static ArrayRef<int64_t> shapeOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getShape();
}

SlotSoftmax SlotSoftmax::start(KernelBuilder &k, int64_t places,
                               int64_t valueDim) {
  return {k.full(-std::numeric_limits<double>::infinity(), {places, 1}),
          k.zeros({places, 1}), k.zeros({places, valueDim})};
}

SlotSoftmax SlotSoftmax::from(ValueRange carried) {
  return {carried[0], carried[1], carried[2]};
}

SlotSoftmax SlotSoftmax::update(KernelBuilder &k, Value keys, Value query,
                                double scale, ValueRange visible,
                                Value values) const {
  ArrayRef<int64_t> column = shapeOf(max), wide = shapeOf(acc);
  const int64_t places = column[0];
  auto part = [&](Value tile, int64_t n) {
    return visible.size() == 1 ? tile : k.slice(tile, 0, n * places, places);
  };
  SmallVector<Value> scores;
  SlotSoftmax next;
  next.max = max;
  for (auto [n, counts] : llvm::enumerate(visible)) {
    Value some = part(keys, n);
    Value products = k.mul(some, k.broadcast(query, shapeOf(some)));
    Value score = k.mul(k.sum(products, 1), k.full(scale, column));
    scores.push_back(
        k.select(counts, score,
                 k.full(-std::numeric_limits<double>::infinity(), column)));
    next.max = k.max(next.max, scores.back());
  }
  Value shift = finiteOrZero(k, next.max);
  Value correction = k.exp(k.sub(max, shift));
  next.sum = k.mul(sum, correction);
  next.acc = k.mul(acc, k.broadcast(correction, wide));
  for (auto [n, score] : llvm::enumerate(scores)) {
    Value p = k.exp(k.sub(score, shift));
    next.sum = k.add(next.sum, p);
    next.acc = k.add(next.acc, k.mul(part(values, n), k.broadcast(p, wide)));
  }
  return next;
}

OnlineSoftmax SlotSoftmax::joined(KernelBuilder &k) const {
  ArrayRef<int64_t> column = shapeOf(max), wide = shapeOf(acc);
  Value most = k.maximum(max, 0);
  Value shift = finiteOrZero(k, most);
  Value weights = k.exp(k.sub(max, k.broadcast(shift, column)));
  return {most, k.sum(k.mul(sum, weights), 0),
          k.sum(k.mul(acc, k.broadcast(weights, wide)), 0)};
}
