//===- Fragments.cpp - tiles in the registers of a warpgroup --------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every tile has the layout of its shape, so ops work register by register. Of
// 16-bit tiles two neighbours share a register, as an operand of a product and
// a store want them.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "../KernelLowering.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;
using namespace hybrid::nvptx;

Layout hybrid::hopper::fragmentLayout(ArrayRef<int64_t> shape) {
  constexpr int64_t kWarps = 4;
  // A vector of rows is a column.
  int64_t columns = shape.size() == 1 ? 1 : shape[1];
  Layout whole =
      Accumulator{1, std::max<int64_t>(columns / 8, 1), kWarps, 1}.layout(
          kRows, std::max<int64_t>(columns, 8), kWarps);
  return whole.restricted({shape[0], columns});
}

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isHalf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isBF16() || element.isF16();
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// One instruction where softmax needs it: the maximum is not a comparison and
/// a choice, and of exponentials what is below the smallest normal number is 0.
static Value elementOf(GpuBuilder &b, Operation *op, ValueRange operands) {
  if (getElementTypeOrSelf(op->getResult(0).getType()).isF32()) {
    if (isa<arith::MaximumFOp>(op))
      return b.maximum(operands[0], operands[1]);
    if (isa<math::Exp2Op>(op))
      return b.intrinsic("llvm.nvvm.ex2.approx.ftz.f32", b.getF32Type(),
                         operands[0]);
  }
  return scalarOp(b, op, operands);
}

/// f32 to 16 bits, two at a time; the first is the lower half. As PTX that
/// stays in its place: above the wait for the product that still reads the last
/// operand it would need registers of its own, and moves that serialise
/// products.
LogicalResult KernelEmitter::emitConversion(Operation *op) {
  auto trunc = dyn_cast<arith::TruncFOp>(op);
  if (!trunc || !getElementTypeOrSelf(trunc.getIn().getType()).isF32())
    return op->emitError("gives 16-bit values by something else than "
                         "arith.truncf from f32; compute in f32");
  Type element = getElementTypeOrSelf(trunc.getType());
  std::string text = std::string("cvt.rn.") +
                     (element.isBF16() ? "bf16x2" : "f16x2") +
                     ".f32 $0, $1, $2;";
  Values &from = tiles[trunc.getIn()];
  Values words;
  for (size_t n = 0; n < from.size(); n += 2)
    words.push_back(
        assembly(text, "=r,f,f", {from[n + 1], from[n]}, b.getI32Type()));
  tiles[trunc.getResult()] = words;
  return success();
}

LogicalResult KernelEmitter::emitElementwise(Operation *op) {
  Value result = op->getResult(0);
  if (isHalf(result.getType()))
    return emitConversion(op);
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()) && isHalf(operand.getType()))
      return op->emitError("works on 16-bit values in registers; widen what is "
                           "loaded, or leave the program to the generic path");
  int64_t count = fragmentLayout(typeOf(result).getShape()).numRegisters();
  Values made;
  for (int64_t n = 0; n < count; ++n) {
    Values operands;
    for (Value operand : op->getOperands())
      operands.push_back(isa<RankedTensorType>(operand.getType())
                             ? tiles[operand][n]
                             : mapping.lookupOrDefault(operand));
    made.push_back(elementOf(b, op, operands));
  }
  tiles[result] = made;
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Halves are combined as long as there are any: the additions of a level do
/// not wait for each other. Then the four lanes that share a row.
void KernelEmitter::emitReduce(tile::ReduceOp reduce) {
  auto type = typeOf(reduce.getInput());
  Layout layout = fragmentLayout(type.getShape());
  Layout narrow = fragmentLayout(typeOf(reduce.getResult()).getShape());
  auto combine = [&](Value x, Value y) -> Value {
    if (reduce.getKind() == tile::ReduceKind::max)
      return b.maximum(x, y);
    return arith::AddFOp::create(b, x, y);
  };
  SmallVector<Values> rows(narrow.numRegisters());
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
    Coordinates offset = layout.registerOffset(reg);
    offset[1] = 0;
    rows[*narrow.registerAt(offset)].push_back(tiles[reduce.getInput()][reg]);
  }
  Values &result = tiles[reduce.getResult()];
  for (Values &row : rows) {
    while (row.size() > 1) {
      size_t half = (row.size() + 1) / 2;
      for (size_t n = 0; n + half < row.size(); ++n)
        row[n] = combine(row[n], row[n + half]);
      row.resize(half);
    }
    for (int64_t mask : {1, 2})
      row[0] = combine(row[0], b.shuffleXor(row[0], mask));
    result.push_back(row[0]);
  }
}

LogicalResult KernelEmitter::emitTile(Operation *op) {
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return emitStore(store), success();
  Value result = op->getResult(0);
  auto type = typeOf(result);
  Layout layout = fragmentLayout(type.getShape());
  int64_t count = layout.numRegisters();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<arith::ConstantOp>([&](arith::ConstantOp constant) {
        auto elements = cast<DenseElementsAttr>(constant.getValue());
        Value one = arith::ConstantOp::create(
            b, cast<TypedAttr>(elements.getSplatValue<Attribute>()));
        tiles[result] = Values(count, one);
        return success();
      })
      .Case<tile::SplatOp>([&](tile::SplatOp splat) {
        tiles[result] =
            Values(count, mapping.lookupOrDefault(splat.getScalar()));
        return success();
      })
      .Case<tile::IotaOp>([&](tile::IotaOp iota) {
        Value base = iota.getDim() == 0 ? threadRow : threadColumn;
        if (type.getDimSize(iota.getDim()) == 1)
          base = b.i32(0);
        Values made;
        for (int64_t reg = 0; reg < count; ++reg)
          made.push_back(
              b.add(base, b.i32(layout.registerOffset(reg)[iota.getDim()])));
        tiles[result] = made;
        return success();
      })
      .Case<tile::BroadcastOp>([&](tile::BroadcastOp broadcast) {
        auto from = typeOf(broadcast.getInput());
        Layout narrow = fragmentLayout(from.getShape());
        Values made;
        for (int64_t reg = 0; reg < count; ++reg) {
          Coordinates offset = layout.registerOffset(reg);
          for (int64_t dim : {0, 1})
            if (from.getDimSize(dim) == 1)
              offset[dim] = 0;
          made.push_back(
              tiles[broadcast.getInput()][*narrow.registerAt(offset)]);
        }
        tiles[result] = made;
        return success();
      })
      .Case<tile::ReshapeOp>([&](tile::ReshapeOp reshape) -> LogicalResult {
        auto from = typeOf(reshape.getInput());
        if (from.getNumElements() != from.getDimSize(0) ||
            type.getNumElements() != type.getDimSize(0))
          return op->emitError("changes the shape of ")
                 << from << "; only a column becomes a vector and back";
        tiles[result] = tiles[reshape.getInput()];
        return success();
      })
      .Case<tile::ReduceOp>(
          [&](auto reduce) { return emitReduce(reduce), success(); })
      .Default([&](Operation *other) { return emitElementwise(other); });
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

Value KernelEmitter::viewAddress(Value view, ValueRange indices) {
  const View &from = views[view];
  Value offset = b.i64(0);
  for (auto [dim, at] : llvm::enumerate(indices))
    offset = b.add(offset, b.mul(b.fromIndex(mapping.lookupOrDefault(at)),
                                 from.strides[dim]));
  return b.address(from.base, b.mul(offset, b.i64(storedBytes(from.element))));
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
void KernelEmitter::storeRows(tile::StoreOp store, Value address, Value stride,
                              Value rowsLeft) {
  auto type = typeOf(store.getTile());
  Values &words = tiles[store.getTile()];
  constexpr int64_t kTiles = 4, kTileColumns = 8;
  Value lane4 = arith::AndIOp::create(b, b.lane(), b.i32(3));
  for (int64_t half : {0, 1}) {
    Value row = b.add(threadRow, b.i32(8 * half));
    Value at = b.address(address,
                         b.add(b.mul(b.widen(row), stride),
                               b.widen(b.mul(lane4, b.i32(2 * kTileColumns)))));
    SmallVector<Values> groups;
    // Every lane takes part in the exchange, whether its row is stored or not.
    for (int64_t first = 0; first < type.getDimSize(1) / kTileColumns;
         first += kTiles) {
      Values four;
      for (int64_t n = 0; n < kTiles; ++n)
        four.push_back(words[2 * (first + n) + half]);
      groups.push_back(swapInQuads(four));
    }
    auto branch = scf::IfOp::create(b, b.less(row, rowsLeft),
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (auto [n, group] : llvm::enumerate(groups))
      b.store(group, b.address(at, int64_t(n) * 2 * kTiles * kTileColumns));
  }
}

void KernelEmitter::storeElements(tile::StoreOp store, Value address,
                                  Value stride, Value rowsLeft) {
  auto type = typeOf(store.getTile());
  Layout layout = fragmentLayout(type.getShape());
  int64_t bytes = storedBytes(type.getElementType());
  bool isColumn = type.getNumElements() == type.getDimSize(0);
  Value columnsLeft;
  if (store.getLimits().size() > 1)
    columnsLeft = arith::SubIOp::create(
        b, b.fromIndex(mapping.lookupOrDefault(store.getLimits()[1])),
        b.fromIndex(
            mapping.lookupOrDefault(store.getIndices()[store.getDims()[1]])));
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg) {
    Coordinates offset = layout.registerOffset(reg);
    Value row = b.add(threadRow, b.i32(offset[0]));
    Value column = isColumn ? b.i32(0) : b.add(threadColumn, b.i32(offset[1]));
    Value inside = b.less(row, rowsLeft);
    if (isColumn) {
      // Four lanes hold the same.
      Value lane4 = arith::AndIOp::create(b, b.lane(), b.i32(3));
      inside = b.both(inside, arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                                    lane4, b.i32(0)));
    }
    if (columnsLeft)
      inside = b.both(inside, b.less(b.widen(column), columnsLeft));
    Value element;
    if (isHalf(type)) {
      Value word = tiles[store.getTile()][reg / 2];
      if (reg % 2)
        word = arith::ShRUIOp::create(b, word, b.i32(16));
      element = b.bitcast(
          arith::TruncIOp::create(b, b.getI16Type(), word).getResult(),
          type.getElementType());
    } else {
      element = tiles[store.getTile()][reg];
    }
    Value at = b.address(address, b.add(b.mul(b.widen(row), stride),
                                        b.mul(b.widen(column), b.i64(bytes))));
    b.storeIf(inside, element, at);
  }
}

void KernelEmitter::emitStore(tile::StoreOp store) {
  const View &view = views[store.getView()];
  auto type = typeOf(store.getTile());
  ArrayRef<int64_t> dims = store.getDims();
  Value address = viewAddress(store.getView(), store.getIndices());
  Value stride =
      b.mul(view.strides[dims[0]], b.i64(storedBytes(type.getElementType())));
  // As i32: what is left, but no more than the rows of a warpgroup.
  Value rowsLeft = b.i32(kRows);
  if (!store.getLimits().empty()) {
    Value left = arith::SubIOp::create(
        b, b.fromIndex(mapping.lookupOrDefault(store.getLimits()[0])),
        b.fromIndex(mapping.lookupOrDefault(store.getIndices()[dims[0]])));
    left = arith::MinSIOp::create(b, left, b.i64(kRows));
    left = arith::MaxSIOp::create(b, left, b.i64(0));
    rowsLeft = arith::TruncIOp::create(b, b.getI32Type(), left);
  }
  constexpr int64_t kWide = 32;
  bool canBeWide = isHalf(type) && type.getRank() == 2 &&
                   type.getDimSize(1) % kWide == 0 &&
                   store.getLimits().size() < 2;
  if (!canBeWide)
    return storeElements(store, address, stride, rowsLeft);
  Value bits = LLVM::PtrToIntOp::create(b, b.getI64Type(), address);
  bits = arith::OrIOp::create(b, bits, stride);
  bits = arith::AndIOp::create(b, bits, b.i64(15));
  Value isAligned =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bits, b.i64(0));
  auto branch = scf::IfOp::create(b, isAligned, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  storeRows(store, address, stride, rowsLeft);
  b.setInsertionPointToStart(branch.elseBlock());
  storeElements(store, address, stride, rowsLeft);
}
