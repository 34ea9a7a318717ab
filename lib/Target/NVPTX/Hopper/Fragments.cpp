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
    // Off by what rounds the angle, and by 2^-20 of a whole.
    if (isa<math::SinOp>(op))
      return b.intrinsic("llvm.nvvm.sin.approx.ftz.f", b.getF32Type(),
                         operands[0]);
    if (isa<math::CosOp>(op))
      return b.intrinsic("llvm.nvvm.cos.approx.ftz.f", b.getF32Type(),
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
        b.assembly(text, "=r,f,f", {from[n + 1], from[n]}, b.getI32Type()));
  tiles[trunc.getResult()] = words;
  return success();
}

void KernelEmitter::emitWidening(arith::ExtFOp op) {
  Type element = getElementTypeOrSelf(op.getIn().getType());
  Values made;
  auto append = [&](Value bits) {
    Value narrow = b.bitcast(
        arith::TruncIOp::create(b, b.getI16Type(), bits).getResult(), element);
    made.push_back(arith::ExtFOp::create(b, b.getF32Type(), narrow));
  };
  for (Value word : tiles[op.getIn()]) {
    append(word);
    append(arith::ShRUIOp::create(b, word, b.i32(16)));
  }
  tiles[op.getResult()] = made;
}

LogicalResult KernelEmitter::emitElementwise(Operation *op) {
  if (auto widening = dyn_cast<arith::ExtFOp>(op))
    return emitWidening(widening), success();
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

/// A row of numbers, of which a thread reads those of its columns.
KernelEmitter::Values KernelEmitter::readTable(arith::ConstantOp constant) {
  auto elements = cast<DenseElementsAttr>(constant.getValue());
  Type element = elements.getElementType();
  int64_t count = elements.getNumElements();
  std::string name =
      (kernel.getSymName() + "_table_" + Twine(numTables++)).str();
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(function);
    global = LLVM::GlobalOp::create(
        b, LLVM::LLVMArrayType::get(element, count), /*isConstant=*/true,
        LLVM::Linkage::Internal, name,
        elements.reshape(RankedTensorType::get({count}, element)),
        /*alignment=*/16, kGlobalSpace);
  }
  Layout layout = fragmentLayout(typeOf(constant.getResult()).getShape());
  Value bytes = b.i32(storedBytes(element));
  Value address = b.address(LLVM::AddressOfOp::create(b, global),
                            b.mul(threadColumn, bytes));
  Values made;
  for (int64_t reg = 0; reg < layout.numRegisters(); ++reg)
    made.push_back(b.load(
        element, 1,
        b.address(address, b.mul(b.i32(layout.registerOffset(reg)[1]), bytes)),
        /*invariant=*/true)[0]);
  return made;
}

LogicalResult KernelEmitter::emitTile(Operation *op) {
  Value result = op->getResult(0);
  auto type = typeOf(result);
  Layout layout = fragmentLayout(type.getShape());
  int64_t count = layout.numRegisters();
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<arith::ConstantOp>([&](arith::ConstantOp constant) {
        auto elements = cast<DenseElementsAttr>(constant.getValue());
        if (!elements.isSplat()) {
          tiles[result] = readTable(constant);
          return success();
        }
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
      // Columns begin at those of a fragment, so registers are a range.
      .Case<tile::SliceOp>([&](tile::SliceOp slice) {
        const Values &from = tiles[slice.getInput()];
        int64_t columns = typeOf(slice.getInput()).getDimSize(1);
        size_t perColumns = from.size() / (columns / kFragmentColumns);
        tiles[result] = Values(ArrayRef(from).slice(
            slice.getOffset() / kFragmentColumns * perColumns,
            slice.getSize() / kFragmentColumns * perColumns));
        return success();
      })
      .Case<tile::ConcatOp>([&](tile::ConcatOp concat) {
        Values made;
        for (Value input : concat.getInputs())
          llvm::append_range(made, tiles[input]);
        tiles[result] = made;
        return success();
      })
      .Case<tile::LoadOp>([&](auto load) { return emitLoad(load), success(); })
      .Case<tile::LoadRowsOp>(
          [&](auto load) { return emitGather(load), success(); })
      .Case<tile::ReduceOp>(
          [&](auto reduce) { return emitReduce(reduce), success(); })
      .Default([&](Operation *other) { return emitElementwise(other); });
}
