//===- RecurrenceEmitter.cpp - array notation for the chunk equations ----===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceEmitter.h"

using namespace mlir;
using namespace hybrid::tile;
using namespace hybrid::tile::recurrence;

/// The shape two tiles of one rank meet in.
static SmallVector<int64_t> commonShape(ArrayRef<int64_t> a,
                                        ArrayRef<int64_t> b) {
  assert(a.size() == b.size() && "stretching keeps the rank");
  SmallVector<int64_t> shape;
  for (auto [x, y] : llvm::zip(a, b)) {
    assert((x == y || x == 1 || y == 1) && "dims do not match");
    shape.push_back(std::max(x, y));
  }
  return shape;
}

Value Emitter::with(Value x, Value y, Binary op) {
  if (isa<RankedTensorType>(x.getType())) {
    SmallVector<int64_t> shape = commonShape(shapeOf(x), shapeOf(y));
    x = broadcast(x, shape);
    y = broadcast(y, shape);
  }
  return (this->*op)(x, y);
}

Value Emitter::select(Value mask, Value x, Value y) {
  if (!isa<RankedTensorType>(x.getType()))
    return KernelBuilder::select(mask, x, y);
  SmallVector<int64_t> shape =
      commonShape(shapeOf(mask), commonShape(shapeOf(x), shapeOf(y)));
  return KernelBuilder::select(broadcast(mask, shape), broadcast(x, shape),
                               broadcast(y, shape));
}

Value Emitter::masked(Value mask, Value x) {
  SmallVector<int64_t> shape = commonShape(shapeOf(mask), shapeOf(x));
  return select(mask, x, zeros(shape));
}

Value Emitter::scaled(Value x, double factor) {
  return factor == 1.0 ? x : mul(x, full(factor, shapeOf(x)));
}

Value Emitter::sum(Value x, unsigned dim) {
  return shapeOf(x)[dim] == 1 ? x : KernelBuilder::sum(x, dim);
}

Value Emitter::dot(Value x, Value y, Transpose transpose, Value acc) {
  bool transposeA = transpose == Transpose::A,
       transposeB = transpose == Transpose::B;
  if (!acc)
    acc =
        zeros({shapeOf(x)[transposeA ? 1 : 0], shapeOf(y)[transposeB ? 0 : 1]});
  return KernelBuilder::dot(x, y, acc, transposeA, transposeB);
}

StoreOp Emitter::store(Value tile, Value view, ValueRange indices,
                       ArrayRef<int64_t> dims, ValueRange limits) {
  return StoreOp::create(ops(), forView(tile, view), view, indices, limits,
                         dims);
}

void Emitter::named(StringRef name, Operation *op) {
  std::string full = scope.empty() ? name.str() : scope + "." + name.str();
  if (names.insert(full).second)
    KernelBuilder::named(full, op);
}
