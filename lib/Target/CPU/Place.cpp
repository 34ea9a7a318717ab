//===- Place.cpp - where the elements of a tile lie -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Place.h"

using namespace mlir;
using namespace hybrid::cpu;

SmallVector<Int, 3> Place::rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<Int, 3> strides(shape.size(), Int(1));
  for (int64_t dim = shape.size() - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1].getKnown() * shape[dim + 1];
  return strides;
}

bool Place::isContiguous() const {
  int64_t expected = 1;
  for (int64_t dim = rank() - 1; dim >= 0; --dim) {
    if (shape[dim] == 1)
      continue;
    if (!strides[dim].is(expected))
      return false;
    expected *= shape[dim];
  }
  return true;
}

Place Place::slice(CodeBuilder &b, int64_t dim, int64_t start,
                   int64_t size) const {
  Place result = *this;
  result.offset = b.add(offset, b.mul(strides[dim], start));
  result.shape[dim] = size;
  return result;
}

Place Place::permute(ArrayRef<int64_t> permutation) const {
  Place result = *this;
  for (auto [dim, source] : llvm::enumerate(permutation)) {
    result.shape[dim] = shape[source];
    result.strides[dim] = strides[source];
  }
  return result;
}

Place Place::broadcastTo(ArrayRef<int64_t> newShape) const {
  Place result = *this;
  for (int64_t dim = 0; dim < rank(); ++dim)
    if (shape[dim] != newShape[dim])
      result.strides[dim] = 0;
  result.shape.assign(newShape.begin(), newShape.end());
  return result;
}

bool hybrid::cpu::differInUnitDims(ArrayRef<int64_t> from,
                                   ArrayRef<int64_t> to) {
  auto notOne = [](int64_t size) { return size != 1; };
  return llvm::equal(llvm::make_filter_range(from, notOne),
                     llvm::make_filter_range(to, notOne));
}

Place Place::reshape(ArrayRef<int64_t> newShape) const {
  Place result = *this;
  result.shape.assign(newShape.begin(), newShape.end());
  if (!differInUnitDims(shape, newShape)) {
    assert(isContiguous() && "a strided place cannot be reshaped");
    result.strides = rowMajor(newShape);
    return result;
  }
  result.strides.clear();
  const auto *source = shape.begin();
  for (int64_t size : newShape) {
    if (size == 1) {
      result.strides.push_back(0);
      continue;
    }
    while (*source == 1)
      ++source;
    result.strides.push_back(strides[source - shape.begin()]);
    ++source;
  }
  return result;
}

Value Place::addressOf(CodeBuilder &b, ArrayRef<Int> indices) const {
  Int total = offset;
  for (auto [index, stride] : llvm::zip_equal(indices, strides))
    total = b.add(total, b.mul(index, stride));
  return b.address(base, total, element);
}

void hybrid::cpu::copyTransposed(CodeBuilder &b, const Place &from,
                                 const Place &to) {
  int64_t lanes = b.getTraits().lanes;
  int64_t rows = to.shape[0], columns = to.shape[1];
  auto copyElement = [&](Int row, Int column) {
    b.store(b.load(from.element, from.addressOf(b, {row, column})),
            to.addressOf(b, {row, column}));
  };
  auto copyElements = [&](int64_t firstRow, int64_t firstColumn) {
    b.loop(firstRow, rows, 1, [&](Value row) {
      b.loop(firstColumn, columns, 1,
             [&](Value column) { copyElement(row, column); });
    });
  };
  if (!from.strides[0].is(1) || !to.strides[1].is(1) || rows < lanes ||
      columns < lanes) {
    copyElements(0, 0);
    return;
  }
  int64_t fullRows = rows / lanes * lanes,
          fullColumns = columns / lanes * lanes;
  Type vector = b.widened(from.element, lanes);
  b.loop(0, fullColumns, lanes, [&](Value column) {
    b.loop(0, fullRows, lanes, [&](Value row) {
      SmallVector<Value> block;
      for (int64_t lane = 0; lane < lanes; ++lane)
        block.push_back(
            b.load(vector, from.addressOf(b, {row, b.add(column, lane)})));
      for (auto [lane, value] : llvm::enumerate(b.transpose(block)))
        b.store(value, to.addressOf(b, {b.add(row, lane), column}));
    });
  });
  if (fullColumns != columns)
    copyElements(0, fullColumns);
  if (fullRows != rows)
    copyElements(fullRows, 0);
}
