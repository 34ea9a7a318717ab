//===- Inverse.cpp - unit lower triangular inverses -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The 16 x 16 blocks on the diagonal are inverted by forward substitution, one
// column per thread. Then neighbouring blocks are joined,
//
//     [ T1         ]       where T1, T2 are inverses of the diagonal blocks
//     [ -T2 A T1 T2]       and A is the block below,
//
// and the joined ones again, by products.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

/// Rows of a block that one thread substitutes in.
static constexpr int64_t kBlock = 16;

SharedTile KernelLowering::part(const SharedTile &tile, int64_t row,
                                int64_t column, int64_t rows, int64_t columns) {
  SharedTile result = tile;
  result.pointer = b.address(
      tile.pointer, (row * tile.strides[0] + column * tile.strides[1]) *
                        storedBytes(tile.element));
  result.extents = {rows, columns};
  return result;
}

void KernelLowering::fillZero(const SharedTile &to) {
  Layout layout = Layout::blocked(to.extents, plan.numWarps());
  write(layout, Values(layout.numRegisters(), b.zero(to.element)), to);
}

void KernelLowering::copyStrictLower(Value matrix, const SharedTile &to) {
  Layout layout = plan.layoutOf(matrix);
  Values registers = get(matrix, layout), base = threadBase(layout);
  for (auto [reg, value] : llvm::enumerate(registers)) {
    Coordinates offset = layout.registerOffset(reg);
    Value row = b.add(base[0], b.i32(offset[0]));
    Value column = b.add(base[1], b.i32(offset[1]));
    value = b.select(b.less(column, row), value, b.zero(to.element));
  }
  ArrayRef<int64_t> shape = shapeOf(matrix);
  write(layout, registers, part(to, 0, 0, shape[0], shape[1]));
}

void KernelLowering::invertDiagonal(const SharedTile &matrix,
                                    const SharedTile &inverse, int64_t size) {
  shared.readsAndWrites(matrix.buffer, inverse.buffer);
  Type f32 = b.getF32Type();
  int64_t stride = matrix.strides[0];
  for (int64_t first = 0; first < size; first += numThreads()) {
    Value column = b.add(b.thread(), b.i32(first));
    auto mine = scf::IfOp::create(b, b.less(column, b.i32(size)),
                                  /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(mine.thenBlock()->getTerminator());
    Value own = arith::AndIOp::create(b, column, b.i32(kBlock - 1));
    Value block = arith::AndIOp::create(b, column, b.i32(~(kBlock - 1)));
    Value from =
        b.address(matrix.pointer, b.mul(block, b.i32((stride + 1) * 4)));
    Value to = b.address(inverse.pointer, b.add(b.mul(block, b.i32(stride * 4)),
                                                b.mul(column, b.i32(4))));
    // x[i] = (i = own) - Σ_{j<i} a[i, j] x[j]
    Values x;
    for (int64_t i = 0; i < kBlock; ++i) {
      Value isOwn =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own, b.i32(i));
      Value sum =
          b.select(isOwn, arith::ConstantOp::create(b, b.getF32FloatAttr(1.0f)),
                   b.zero(f32));
      for (int64_t j = 0; j < i; ++j) {
        Value a = b.load(f32, 1, b.address(from, (i * stride + j) * 4)).front();
        Value negated = arith::NegFOp::create(b, a);
        sum = LLVM::FMulAddOp::create(b, f32, negated, x[j], sum);
      }
      x.push_back(sum);
      b.store(sum, b.address(to, i * stride * 4));
    }
  }
}

void KernelLowering::mergeInverses(const SharedTile &matrix,
                                   const SharedTile &inverse, int64_t size,
                                   int64_t block) {
  Accumulator shape =
      Accumulator::divide(block, block, plan.numWarps(), /*wholeRows=*/false);
  Layout layout = shape.layout(block, block, plan.numWarps());
  Values zeros(layout.numRegisters(), b.zero(b.getF32Type()));
  auto times = [&](const SharedTile &x, const SharedTile &y) {
    return multiply(inShared(x, /*depthFirst=*/false),
                    inShared(y, /*depthFirst=*/true), block, shape,
                    tile::Precision::fp32, zeros);
  };
  SmallVector<int64_t> starts;
  for (int64_t start = 0; start < size; start += 2 * block)
    starts.push_back(start);
  SmallVector<Values> below;
  for (int64_t start : starts)
    below.push_back(times(part(matrix, start + block, start, block, block),
                          part(inverse, start, start, block, block)));
  SmallVector<SharedTile> products;
  for (const Values &registers : below) {
    int64_t stride = block + 4;
    auto [buffer, pointer] = shared.allocate(block * stride * 4);
    products.push_back(
        {buffer, pointer, b.getF32Type(), {stride, 1}, {block, stride}});
    write(layout, registers, products.back());
  }
  SmallVector<Values> results;
  for (auto [start, product] : llvm::zip_equal(starts, products)) {
    results.push_back(times(
        part(inverse, start + block, start + block, block, block), product));
    for (Value &value : results.back())
      value = arith::NegFOp::create(b, value);
  }
  shared.writes(inverse.buffer);
  for (auto [start, registers] : llvm::zip_equal(starts, results))
    writeUnordered(layout, registers,
                   part(inverse, start + block, start, block, block));
}

void KernelLowering::lowerInverse(tile::UnitLowerInverseOp op) {
  int64_t size = shapeOf(op.getInput()).front();
  int64_t padded = kBlock * llvm::PowerOf2Ceil(ceilDiv(size, kBlock));
  Type f32 = b.getF32Type();
  // Rows apart by 4 banks suit both ways of reading.
  int64_t stride = padded + 4;
  auto make = [&]() -> SharedTile {
    auto [buffer, pointer] = shared.allocate(padded * stride * 4);
    return {buffer, pointer, f32, {stride, 1}, {padded, padded}};
  };
  SharedTile matrix = make(), inverse = make();
  fillZero(inverse);
  if (padded != size)
    fillZero(matrix);
  copyStrictLower(op.getInput(), matrix);
  invertDiagonal(matrix, inverse, padded);
  for (int64_t block = kBlock; block < padded; block *= 2)
    mergeInverses(matrix, inverse, padded, block);
  remember(op.getResult(), inverse);
}
