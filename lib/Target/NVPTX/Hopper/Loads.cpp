//===- Loads.cpp - what is read beside the operands of products -----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Access.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using namespace hybrid::nvptx;

/// What a thread has of a block, element by element: for vectors beside tiles.
/// Lanes that hold the same read the same. A block that no limit cuts is read
/// without conditions, at constant distances from one address.
void KernelEmitter::loadElements(tile::LoadOp load) {
  auto type = cast<RankedTensorType>(load.getTile().getType());
  const View &view = views[load.getView()];
  ArrayRef<int64_t> dims = load.getDims();
  Layout layout = fragmentLayout(type.getShape());
  Value bytes = b.i64(storedBytes(view.element)), own = b.i64(0),
        isWhole = b.truth(true);
  // What is left in front of each limit, from this thread's first element on.
  Values left;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value base = dim == 0 ? threadRow : threadColumn;
    base = type.getDimSize(dim) == 1 ? b.i64(0) : b.widen(base);
    own = b.add(own, b.mul(base, view.strides[dims[dim]]));
    if (size_t(dim) >= load.getLimits().size())
      continue;
    Value whole = arith::SubIOp::create(
        b, b.fromIndex(mapping.lookupOrDefault(load.getLimits()[dim])),
        b.fromIndex(mapping.lookupOrDefault(load.getIndices()[dims[dim]])));
    isWhole = b.both(isWhole, b.less(b.i64(type.getDimSize(dim) - 1), whole));
    left.push_back(arith::SubIOp::create(b, whole, base));
  }
  Value address = b.address(viewAddress(load.getView(), load.getIndices()),
                            b.mul(own, bytes));
  auto read = [&](bool isCut) {
    Values made;
    for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
      Coordinates offset = layout.registerOffset(reg);
      Value inside = b.truth(true), elements = b.i64(0);
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        Value at = b.i64(offset[dim]);
        elements = b.add(elements, b.mul(at, view.strides[dims[dim]]));
        if (isCut && size_t(dim) < left.size())
          inside = b.both(inside, b.less(at, left[dim]));
      }
      Value from = b.address(address, b.mul(elements, bytes));
      made.push_back(
          isCut ? b.loadIf(inside, view.element, 1, from, /*invariant=*/true)[0]
                : b.load(view.element, 1, from, /*invariant=*/true)[0]);
    }
    return made;
  };
  if (left.empty()) {
    tiles[load.getTile()] = read(/*isCut=*/false);
    return;
  }
  auto branch = scf::IfOp::create(
      b, SmallVector<Type>(layout.numRegisters(), view.element), isWhole,
      /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  for (bool isCut : {false, true}) {
    b.setInsertionPointToStart(isCut ? branch.elseBlock() : branch.thenBlock());
    scf::YieldOp::create(b, read(isCut));
  }
  tiles[load.getTile()] = Values(branch.getResults());
}

/// 16-bit tiles in pieces of 16 bytes: a lane reads eight neighbouring columns
/// of a row, and the exchange of a store, done backwards, deals them out.
KernelEmitter::Values KernelEmitter::loadRows(const Access &s) {
  constexpr int64_t kTiles = 4, kTileColumns = 8;
  Value lane4 = arith::AndIOp::create(b, b.lane(), b.i32(3));
  Value column = b.mul(lane4, b.i32(kTileColumns));
  int64_t tileCount = s.type().getDimSize(1) / kTileColumns;
  Values words(2 * tileCount);
  for (int64_t half : {0, 1}) {
    Value row = b.add(threadRow, b.i32(8 * half));
    Value at = b.address(s.address, b.add(b.mul(b.widen(row), s.stride),
                                          b.widen(b.mul(column, b.i32(2)))));
    for (int64_t first = 0; first < tileCount; first += kTiles) {
      Value inside =
          isInside(s, row, b.add(column, b.i32(first * kTileColumns)));
      Values piece = b.loadIf(inside, b.getI32Type(), kTiles,
                              b.address(at, 2 * first * kTileColumns),
                              /*invariant=*/true);
      for (auto [n, word] : llvm::enumerate(swapInQuads(piece)))
        words[2 * (first + int64_t(n)) + half] = word;
    }
  }
  return words;
}

/// Element by element, where pieces do not begin at multiples of 16 bytes.
KernelEmitter::Values KernelEmitter::loadHalves(const Access &s) {
  RankedTensorType type = s.type();
  Layout layout = fragmentLayout(type.getShape());
  auto element = [&](int64_t reg) -> Value {
    Coordinates offset = layout.registerOffset(reg);
    Value row = b.add(threadRow, b.i32(offset[0])),
          column = b.add(threadColumn, b.i32(offset[1]));
    Value at = b.address(s.address, b.add(b.mul(b.widen(row), s.stride),
                                          b.mul(b.widen(column), b.i64(2))));
    Value bits = b.loadIf(isInside(s, row, column), b.getI16Type(), 1, at,
                          /*invariant=*/true)[0];
    return arith::ExtUIOp::create(b, b.getI32Type(), bits);
  };
  Values words;
  for (int64_t reg = 0; reg < layout.numRegisters(); reg += 2) {
    Value low = element(reg), high = element(reg + 1);
    high = arith::ShLIOp::create(b, high, b.i32(16));
    words.push_back(arith::OrIOp::create(b, low, high));
  }
  return words;
}

void KernelEmitter::emitLoad(tile::LoadOp load) {
  auto type = cast<RankedTensorType>(load.getTile().getType());
  if (!isHalf(type))
    return loadElements(load);
  Access s = accessOf(load);
  SmallVector<Type> words(fragmentLayout(type.getShape()).numRegisters() / 2,
                          b.getI32Type());
  auto branch = scf::IfOp::create(b, words, isAligned(s, 16),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loadRows(s));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loadHalves(s));
  tiles[load.getTile()] = Values(branch.getResults());
}

/// A column of a table, at the row that each row of the tile says.
void KernelEmitter::emitGather(tile::LoadRowsOp load) {
  const View &view = views[load.getView()];
  int64_t rowDim = load.getDims()[0];
  Value address = viewAddress(load.getView(), load.getIndices());
  Value bytes = b.mul(view.strides[rowDim], b.i64(storedBytes(view.element)));
  Values made;
  for (auto [row, mask] :
       llvm::zip_equal(tiles[load.getRows()], tiles[load.getMask()])) {
    Value at = b.address(address, b.mul(b.widen(row), bytes));
    made.push_back(b.loadIf(mask, view.element, 1, at, /*invariant=*/true)[0]);
  }
  tiles[load.getTile()] = made;
}
