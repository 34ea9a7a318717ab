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

SlotSoftmax SlotSoftmax::start(KernelBuilder &k, int64_t keys,
                               int64_t valueDim) {
  return {k.full(-std::numeric_limits<double>::infinity(), {keys, 1}),
          k.zeros({keys, 1}), k.zeros({keys, valueDim})};
}

SlotSoftmax SlotSoftmax::from(ValueRange carried) {
  return {carried[0], carried[1], carried[2]};
}

SlotSoftmax SlotSoftmax::update(KernelBuilder &k, Value keys, Value query,
                                double scale, Value visible,
                                Value values) const {
  ArrayRef<int64_t> column = shapeOf(max), wide = shapeOf(acc);
  Value products = k.mul(keys, k.broadcast(query, shapeOf(keys)));
  Value scores = k.mul(k.sum(products, 1), k.full(scale, column));
  scores = k.select(visible, scores,
                    k.full(-std::numeric_limits<double>::infinity(), column));
  SlotSoftmax next;
  next.max = k.max(max, scores);
  Value shift = finiteOrZero(k, next.max);
  Value correction = k.exp(k.sub(max, shift));
  Value p = k.exp(k.sub(scores, shift));
  next.sum = k.add(k.mul(sum, correction), p);
  next.acc = k.add(k.mul(acc, k.broadcast(correction, wide)),
                   k.mul(values, k.broadcast(p, wide)));
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
