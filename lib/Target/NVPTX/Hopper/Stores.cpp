//===- Stores.cpp - tiles from registers to memory ------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three ways: 16-bit tiles and f32 tiles in pieces of 16 bytes after an
// exchange between lanes, and element by element what has no such places.
//
//===----------------------------------------------------------------------===//

#include "Access.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using namespace hybrid::nvptx;

/// `row` and `column` are this thread's, i32.
Value KernelEmitter::isInside(const Access &s, Value row, Value column) {
  Value inside = b.less(row, s.rowsLeft);
  if (!s.columnsLeft)
    return inside;
  return b.both(inside, b.less(b.widen(column), s.columnsLeft));
}

/// Whether pieces of so many bytes begin at multiples of them in every row, and
/// no limit cuts one.
Value KernelEmitter::isAligned(const Access &s, int64_t bytes) {
  Value bits = LLVM::PtrToIntOp::create(b, b.getI64Type(), s.address);
  bits = arith::OrIOp::create(b, bits, s.stride);
  if (s.columnsLeft)
    bits = arith::OrIOp::create(
        b, bits,
        b.mul(s.columnsLeft, b.i64(storedBytes(s.type().getElementType()))));
  bits = arith::AndIOp::create(b, bits, b.i64(bytes - 1));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bits, b.i64(0));
}

/// Stores neighbours, or adds them to what is there.
void KernelEmitter::put(const Access &s, Value inside, ValueRange elements,
                        Value at) {
  if (!s.adds)
    return b.storeIf(inside, elements, at);
  Values there = b.loadIf(inside, s.type().getElementType(),
                          int64_t(elements.size()), at, /*invariant=*/false);
  for (auto [sum, element] : llvm::zip_equal(there, elements))
    sum = arith::AddFOp::create(b, sum, element);
  b.storeIf(inside, there, at);
}

/// Of four words per lane, word w of lane t goes to word t of lane w of the
/// four lanes that share a row: two rounds in which half of the words are
/// exchanged.
KernelEmitter::Values KernelEmitter::swapInQuads(ValueRange words) {
  Values held(words);
  for (int64_t bit : {1, 2}) {
    Value mine = arith::AndIOp::create(b, b.lane(), b.i32(bit));
    Value isHigh =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, mine, b.i32(0));
    for (int64_t low = 0; low < 4; ++low) {
      if (low & bit)
        continue;
      int64_t high = low | bit;
      Value sent = b.select(isHigh, held[low], held[high]);
      Value got = b.shuffleXor(sent, bit);
      Value newLow = b.select(isHigh, got, held[low]);
      held[high] = b.select(isHigh, held[high], got);
      held[low] = newLow;
    }
  }
  return held;
}

/// 16 bytes per lane: a lane gets eight neighbouring columns of a row.
void KernelEmitter::storeRows(const Access &s) {
  Values &words = tiles[s.tile];
  constexpr int64_t kTiles = 4, kTileColumns = 8;
  Value lane4 = arith::AndIOp::create(b, b.lane(), b.i32(3));
  Value column = b.mul(lane4, b.i32(kTileColumns));
  for (int64_t half : {0, 1}) {
    Value row = b.add(threadRow, b.i32(8 * half));
    Value at = b.address(s.address, b.add(b.mul(b.widen(row), s.stride),
                                          b.widen(b.mul(column, b.i32(2)))));
    SmallVector<Values> groups;
    // Every lane takes part in the exchange, whether its row is stored or not.
    for (int64_t first = 0; first < s.type().getDimSize(1) / kTileColumns;
         first += kTiles) {
      Values four;
      for (int64_t n = 0; n < kTiles; ++n)
        four.push_back(words[2 * (first + n) + half]);
      groups.push_back(swapInQuads(four));
    }
    auto branch = scf::IfOp::create(b, b.less(row, s.rowsLeft),
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (auto [n, group] : llvm::enumerate(groups)) {
      int64_t first = int64_t(n) * kTiles * kTileColumns;
      if (s.columnsLeft)
        b.storeIf(isInside(s, row, b.add(column, b.i32(first))), group,
                  b.address(at, 2 * first));
      else
        b.store(group, b.address(at, 2 * first));
    }
  }
}

/// Registers 2n and 2n + 1 are neighbours in a row. A lane gives its pair of
/// one of two neighbouring tiles of eight columns for the other lane's of the
/// other tile: even lanes have four columns of the first, odd ones of the
/// second.
void KernelEmitter::storeQuads(const Access &s) {
  Layout layout = fragmentLayout(s.type().getShape());
  constexpr int64_t kTileColumns = 8, kBytes = 4;
  const Values &elements = tiles[s.tile];
  Value odd = arith::AndIOp::create(b, b.lane(), b.i32(1));
  Value isOdd =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, odd, b.i32(0));
  // From the even lane's column to the other tile's.
  Value own = b.add(threadColumn, b.mul(odd, b.i32(kTileColumns - 2)));
  for (int64_t first = 0; first < s.type().getDimSize(1);
       first += 2 * kTileColumns)
    for (int64_t half : {0, 8}) {
      Value quad[4];
      for (int64_t n : {0, 1}) {
        Value
            low = elements[*layout.registerAt({half, first + n})],
            high =
                elements[*layout.registerAt({half, first + kTileColumns + n})];
        Value got = b.shuffleXor(b.select(isOdd, low, high), 1);
        quad[n] = b.select(isOdd, got, low);
        quad[2 + n] = b.select(isOdd, high, got);
      }
      Value row = b.add(threadRow, b.i32(half)),
            column = b.add(own, b.i32(first));
      Value at =
          b.address(s.address, b.add(b.mul(b.widen(row), s.stride),
                                     b.mul(b.widen(column), b.i64(kBytes))));
      put(s, isInside(s, row, column), ValueRange(quad), at);
    }
}

void KernelEmitter::storeElements(const Access &s) {
  RankedTensorType type = s.type();
  Layout layout = fragmentLayout(type.getShape());
  int64_t bytes = storedBytes(type.getElementType());
  bool isColumn = type.getNumElements() == type.getDimSize(0);
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
    Coordinates offset = layout.registerOffset(reg);
    Value row = b.add(threadRow, b.i32(offset[0]));
    Value column = isColumn ? b.i32(0) : b.add(threadColumn, b.i32(offset[1]));
    Value inside = isInside(s, row, column);
    if (isColumn) {
      // Four lanes hold the same.
      Value lane4 = arith::AndIOp::create(b, b.lane(), b.i32(3));
      inside = b.both(inside, arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                    lane4, b.i32(0)));
    }
    Value element;
    if (isHalf(type)) {
      Value word = tiles[s.tile][reg / 2];
      if (reg % 2)
        word = arith::ShRUIOp::create(b, word, b.i32(16));
      element = b.bitcast(
          arith::TruncIOp::create(b, b.getI16Type(), word).getResult(),
          type.getElementType());
    } else {
      element = tiles[s.tile][reg];
    }
    Value at =
        b.address(s.address, b.add(b.mul(b.widen(row), s.stride),
                                   b.mul(b.widen(column), b.i64(bytes))));
    put(s, inside, element, at);
  }
}

LogicalResult KernelEmitter::emitStore(Operation *op) {
  auto sum = dyn_cast<tile::AccumulateOp>(op);
  if (sum && (sum.getFirst() || isHalf(sum.getTile().getType())))
    return op->emitError("adds in turns, or to 16-bit numbers; leave the "
                         "program to the generic path");
  Access s = sum ? accessOf(sum) : accessOf(cast<tile::StoreOp>(op));
  RankedTensorType type = s.type();
  constexpr int64_t kWide = 32, kQuads = 16;
  bool isMatrix = type.getRank() == 2 && type.getDimSize(1) > 1;
  bool inRows = isMatrix && isHalf(type) && type.getDimSize(1) % kWide == 0,
       inQuads = isMatrix && type.getElementType().isF32() &&
                 type.getDimSize(1) % kQuads == 0;
  if (!inRows && !inQuads)
    return storeElements(s), success();
  Value isWhole = isAligned(s, 16);
  auto branch = scf::IfOp::create(b, isWhole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  inRows ? storeRows(s) : storeQuads(s);
  b.setInsertionPointToStart(branch.elseBlock());
  storeElements(s);
  return success();
}
