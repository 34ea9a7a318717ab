//===- Mma.cpp - products on tensor cores -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `mma.sync` m16n8k16 for bf16 and f16, m16n8k8 in tf32 for f32. An f32 operand
// is the sum of two tf32 numbers, x = hi + lo, so that three products of the
// four are as good as f32 (what is left out is below 2^-22 of the product):
//
//     x y ≈ lo(x) hi(y) + hi(x) lo(y) + hi(x) hi(y)
//
// The sum over the depth may be taken in any order, so slot t of a tf32
// fragment holds depth 2t and slot t + 4 depth 2t + 1: then a fragment is pairs
// in shared memory, and an accumulator's registers are the left operand of the
// next product as they are (H. Ootomo, R. Yokota, "Recovering single precision
// accuracy from Tensor Cores", 2022, has the split, and why the tensor cores,
// which round sums toward zero, should not carry them for long).
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::nvptx;

namespace {
/// Which parts of the operands one pass multiplies.
struct PartPair {
  bool lowLeft, lowRight;
};
} // namespace

static SmallVector<PartPair, 3> passesOf(tile::Precision precision) {
  switch (precision) {
  case tile::Precision::tf32:
    return {{false, false}};
  case tile::Precision::split2:
    return {{true, false}, {false, false}};
  case tile::Precision::fp32:
  case tile::Precision::split3:
    break;
  }
  return {{true, false}, {false, true}, {false, false}};
}

/// Emits one product of a warp's share.
class KernelLowering::Product {
public:
  Product(KernelLowering &kernel, const Operand &left, const Operand &right,
          int64_t depth, const Accumulator &shape, tile::Precision precision);

  /// sums + left · right for a range of column tiles.
  Values emit(Values sums, int64_t first, int64_t last);

private:
  /// The words of a fragment: one word per register of the instruction. For f32
  /// a second list has the low parts.
  struct Fragment {
    Values high, low;
  };
  void step(int64_t number, Value leftBytes, Value rightBytes, Values &sums);
  Fragment left(int64_t tile, int64_t step, Value bytes);
  /// Fragments of two neighbouring column tiles, or of one.
  SmallVector<Fragment, 2> right(int64_t tile, int64_t count, int64_t step,
                                 Value bytes);
  Values floats(const Operand &operand, Value base, Value bytes, int64_t index,
                int64_t depthAt);
  Fragment split(Values values);
  Values matrices(const Operand &operand, Value base, Value bytes,
                  int64_t index, int64_t depthAt, int64_t count);
  void maskDepth(Values &words, int64_t step, ArrayRef<int64_t> depths);
  Value addressOf(const Operand &operand, Value index, Value depthAt);

  GpuBuilder &b;
  const Operand &leftOperand, &rightOperand;
  int64_t depth;
  Accumulator shape;
  Type element;
  SmallVector<PartPair, 3> passes;
  bool isHalf;
  /// Depth of one instruction.
  int64_t stepDepth;
  Value leftBase, rightBase, pair; // pair: 2 (lane mod 4)
  int64_t firstTile = 0, lastTile = 0;
};

KernelLowering::Product::Product(KernelLowering &kernel, const Operand &left,
                                 const Operand &right, int64_t depth,
                                 const Accumulator &shape,
                                 tile::Precision precision)
    : b(kernel.b), leftOperand(left), rightOperand(right), depth(depth),
      shape(shape), element(right.tile->element), isHalf(!element.isF32()),
      stepDepth(isHalf ? 16 : 8) {
  passes =
      isHalf ? SmallVector<PartPair, 3>{{false, false}} : passesOf(precision);
  // Row g, pair 2t; and where the warp's share begins.
  Value group = arith::ShRUIOp::create(b, b.lane(), b.i32(2));
  Value four = arith::AndIOp::create(b, b.lane(), b.i32(3));
  pair = b.mul(four, b.i32(2));
  Value rowWarp = arith::AndIOp::create(b, b.warp(), b.i32(shape.rowWarps - 1));
  Value columnWarp =
      arith::ShRUIOp::create(b, b.warp(), b.i32(llvm::Log2_64(shape.rowWarps)));
  columnWarp =
      arith::AndIOp::create(b, columnWarp, b.i32(shape.columnWarps - 1));
  Value row = b.mul(rowWarp, b.i32(16 * shape.rowTiles));
  Value column = b.mul(columnWarp, b.i32(8 * shape.columnTiles));
  if (!isHalf) {
    if (left.tile)
      leftBase = addressOf(left, b.add(row, group), pair);
    rightBase = addressOf(right, b.add(column, group), pair);
    return;
  }
  // A lane gives the address of one row of the four 8 x 8 matrices that it
  // loads: of matrix lane / 8, row lane mod 8.
  Value inMatrix = arith::AndIOp::create(b, b.lane(), b.i32(7));
  Value bit3 = arith::AndIOp::create(b, b.lane(), b.i32(8));
  Value bit4 = arith::AndIOp::create(b, b.lane(), b.i32(16));
  bit4 = arith::ShRUIOp::create(b, bit4, b.i32(1));
  // Matrices of the left operand: rows first, then depth; of the right one:
  // depth first, then columns. Memory rows run along the index, or, to be
  // transposed on the way, along the depth.
  auto place = [&](const Operand &operand, Value start, Value indexBit,
                   Value depthBit) {
    bool byIndex = operand.depthStride == 1;
    Value index = b.add(start, byIndex ? b.add(indexBit, inMatrix) : indexBit);
    Value at = byIndex ? depthBit : b.add(depthBit, inMatrix);
    return addressOf(operand, index, at);
  };
  if (left.tile)
    leftBase = place(left, row, bit3, bit4);
  rightBase = place(right, column, bit4, bit3);
}

Value KernelLowering::Product::addressOf(const Operand &operand, Value index,
                                         Value depthAt) {
  int64_t bytes = storedBytes(element);
  Value offset = b.add(b.mul(index, b.i32(operand.indexStride * bytes)),
                       b.mul(depthAt, b.i32(operand.depthStride * bytes)));
  return b.address(operand.tile->pointer, offset);
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// Depths 2t and 2t + 1 past `depthAt` at an index, as f32.
KernelLowering::Values KernelLowering::Product::floats(const Operand &operand,
                                                       Value base, Value bytes,
                                                       int64_t index,
                                                       int64_t depthAt) {
  Value at = bytes ? b.address(base, bytes) : base;
  int64_t offset =
      (index * operand.indexStride + depthAt * operand.depthStride) * 4;
  if (operand.depthStride == 1)
    return b.load(element, 2, b.address(at, offset));
  Values values = b.load(element, 1, b.address(at, offset));
  llvm::append_range(
      values,
      b.load(element, 1, b.address(at, offset + 4 * operand.depthStride)));
  return values;
}

/// hi is x rounded to the 11 significant bits of tf32, lo what is left; the
/// tensor core ignores the bits of lo that it has no place for.
KernelLowering::Product::Fragment
KernelLowering::Product::split(Values values) {
  Fragment fragment;
  bool wantsLow = passes.size() > 1;
  for (Value value : values) {
    Value bits = b.bitcast(value, b.getI32Type());
    bits = b.add(bits, b.i32(0x1000));
    bits = arith::AndIOp::create(b, bits, b.i32(~0x1fff));
    fragment.high.push_back(bits);
    if (!wantsLow)
      continue;
    Value rest = arith::SubFOp::create(b, value, b.bitcast(bits, element));
    fragment.low.push_back(b.bitcast(rest, b.getI32Type()));
  }
  return fragment;
}

/// `count` 8 x 8 matrices of 16-bit elements: a word of each per lane.
KernelLowering::Values
KernelLowering::Product::matrices(const Operand &operand, Value base,
                                  Value bytes, int64_t index, int64_t depthAt,
                                  int64_t count) {
  Value at = bytes ? b.address(base, bytes) : base;
  at = b.address(
      at, (index * operand.indexStride + depthAt * operand.depthStride) * 2);
  return b.loadMatrices(at, count, /*isTransposed=*/operand.depthStride != 1);
}

/// Zeros what lies past the depth. `depths` says where in the step the first
/// element of each word is.
void KernelLowering::Product::maskDepth(Values &words, int64_t step,
                                        ArrayRef<int64_t> depths) {
  int64_t left = depth - step * stepDepth;
  if (left >= stepDepth)
    return;
  auto inside = [&](int64_t at) { return b.less(pair, b.i32(left - at)); };
  for (auto [word, at] : llvm::zip_equal(words, depths)) {
    if (!isHalf) {
      word = b.select(inside(at), word, b.zero(element));
      continue;
    }
    Value low = b.select(inside(at), b.i32(0xffff), b.i32(0));
    Value high = b.select(inside(at + 1), b.i32(0xffff0000), b.i32(0));
    word = arith::AndIOp::create(b, word, arith::OrIOp::create(b, low, high));
  }
}

KernelLowering::Product::Fragment
KernelLowering::Product::left(int64_t tile, int64_t step, Value bytes) {
  int64_t row = tile * 16, at = step * stepDepth;
  auto inRegister = [&](int64_t r, int64_t c) {
    return leftOperand.registers[*leftOperand.layout.registerAt({r, c})];
  };
  if (!isHalf) {
    // Row g then g + 8, for depth 2t and then 2t + 1.
    Values values(4);
    for (int64_t half : {0, 1}) {
      Values pairOf;
      if (leftOperand.tile)
        pairOf = floats(leftOperand, leftBase, bytes, row + 8 * half, at);
      else
        pairOf = {inRegister(row + 8 * half, at),
                  inRegister(row + 8 * half, at + 1)};
      values[half] = pairOf[0];
      values[2 + half] = pairOf[1];
    }
    maskDepth(values, step, {0, 0, 1, 1});
    return split(values);
  }
  Values words;
  if (leftOperand.tile) {
    words = matrices(leftOperand, leftBase, bytes, row, at, 4);
  } else {
    for (int64_t c : {at, at + 8})
      for (int64_t r : {row, row + 8}) {
        Value both = LLVM::UndefOp::create(b, VectorType::get({2}, element));
        for (int64_t j : {0, 1})
          both = LLVM::InsertElementOp::create(b, both, inRegister(r, c + j),
                                               b.i32(j));
        words.push_back(b.bitcast(both, b.getI32Type()));
      }
  }
  maskDepth(words, step, {0, 0, 8, 8});
  return {words, {}};
}

SmallVector<KernelLowering::Product::Fragment, 2>
KernelLowering::Product::right(int64_t tile, int64_t count, int64_t step,
                               Value bytes) {
  int64_t column = tile * 8, at = step * stepDepth;
  SmallVector<Fragment, 2> fragments;
  if (!isHalf) {
    for (int64_t n = 0; n < count; ++n) {
      Values values =
          floats(rightOperand, rightBase, bytes, column + 8 * n, at);
      maskDepth(values, step, {0, 1});
      fragments.push_back(split(values));
    }
    return fragments;
  }
  Values words =
      matrices(rightOperand, rightBase, bytes, column, at, 2 * count);
  for (int64_t n = 0; n < count; ++n) {
    Values own{words[2 * n], words[2 * n + 1]};
    maskDepth(own, step, {0, 8});
    fragments.push_back({own, {}});
  }
  return fragments;
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

void KernelLowering::Product::step(int64_t number, Value leftBytes,
                                   Value rightBytes, Values &sums) {
  // So many column tiles at once: enough that neighbouring instructions have
  // different sums to wait for, few enough for the registers.
  constexpr int64_t kAtOnce = 4;
  SmallVector<Fragment> lefts;
  for (int64_t m = 0; m < shape.rowTiles; ++m)
    lefts.push_back(left(m, number, leftBytes));
  int64_t columns = lastTile - firstTile;
  for (int64_t first = firstTile; first < lastTile; first += kAtOnce) {
    int64_t last = std::min(first + kAtOnce, lastTile);
    SmallVector<Fragment> rights;
    for (int64_t n = first; n < last; n += 2)
      llvm::append_range(
          rights, right(n, std::min<int64_t>(2, last - n), number, rightBytes));
    for (const PartPair &pass : passes)
      for (int64_t m = 0; m < shape.rowTiles; ++m)
        for (int64_t n = first; n < last; ++n) {
          const Fragment &other = rights[n - first];
          MutableArrayRef<Value> own = MutableArrayRef<Value>(sums).slice(
              4 * (m * columns + n - firstTile), 4);
          Values next = b.multiplyMatrices(
              element, pass.lowLeft ? lefts[m].low : lefts[m].high,
              pass.lowRight ? other.low : other.high, own);
          llvm::copy(next, own.begin());
        }
  }
}

KernelLowering::Values KernelLowering::Product::emit(Values sums, int64_t first,
                                                     int64_t last) {
  firstTile = first;
  lastTile = last;
  // Instructions that are written out before a loop is made.
  constexpr int64_t kMany = 384, kInLoop = 128;
  int64_t steps = ceilDiv(depth, stepDepth), whole = depth / stepDepth;
  int64_t perStep =
      shape.rowTiles * (lastTile - firstTile) * int64_t(passes.size());
  int64_t inLoop = std::max<int64_t>(1, kInLoop / perStep);
  while (whole % inLoop != 0)
    --inLoop;
  int64_t done = 0;
  if (leftOperand.tile && steps * perStep > kMany && whole > inLoop) {
    auto loop =
        scf::ForOp::create(b, b.i32(0), b.i32(whole / inLoop), b.i32(1), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    auto bytesOf = [&](const Operand &operand) {
      return b.mul(loop.getInductionVar(),
                   b.i32(inLoop * stepDepth * operand.depthStride *
                         storedBytes(element)));
    };
    Value leftBytes = bytesOf(leftOperand), rightBytes = bytesOf(rightOperand);
    Values carried(loop.getRegionIterArgs());
    for (int64_t n = 0; n < inLoop; ++n)
      step(n, leftBytes, rightBytes, carried);
    scf::YieldOp::create(b, carried);
    sums = Values(loop.getResults());
    done = whole;
  }
  for (int64_t n = done; n < steps; ++n)
    step(n, {}, {}, sums);
  return sums;
}

KernelLowering::Operand KernelLowering::inShared(const SharedTile &tile,
                                                 bool depthFirst) {
  Operand operand;
  operand.tile = tile;
  operand.indexStride = tile.strides[depthFirst ? 1 : 0];
  operand.depthStride = tile.strides[depthFirst ? 0 : 1];
  return operand;
}

/// An accumulator whose warps hold the same rows is the left operand of the
/// next product as it is.
std::optional<KernelLowering::Operand>
KernelLowering::leftInRegisters(Value a, const Accumulator &shape) {
  if (plan.isCheap(a) || shape.columnWarps != 1 || versions[a].shared)
    return std::nullopt;
  Accumulator own = plan.accumulatorOf(shapeOf(a));
  Layout layout = plan.accumulatorLayout(shapeOf(a));
  if (own.columnWarps != 1 || own.rowWarps != shape.rowWarps ||
      own.rowTiles != shape.rowTiles)
    return std::nullopt;
  bool isThere =
      llvm::any_of(versions[a].distributed, [&](const Distributed &version) {
        return version.layout == layout;
      });
  if (!isThere)
    return std::nullopt;
  Operand operand;
  operand.layout = layout;
  operand.registers = get(a, layout);
  // Its columns are a whole number of tiles of 8, which may be an odd one.
  if (shapeOf(a)[1] % 16 != 0 &&
      !cast<RankedTensorType>(a.getType()).getElementType().isF32())
    return std::nullopt;
  return operand;
}

/// Marks the reads of a product's operands.
void KernelLowering::readOperands(const Operand &left, const Operand &right,
                                  int64_t depth, const Accumulator &shape) {
  // What the last warps read past the end of an operand must be memory.
  auto reach = [&](const Operand &operand, int64_t index) {
    const SharedTile &tile = *operand.tile;
    int64_t last =
        (index - 1) * operand.indexStride +
        (int64_t(llvm::alignTo(depth, 16)) - 1) * operand.depthStride + 2;
    int64_t inside = 0;
    for (auto [extent, stride] : llvm::zip_equal(tile.extents, tile.strides))
      inside = std::max(inside, extent * stride);
    overshoot =
        std::max(overshoot, (last - inside) * storedBytes(tile.element));
  };
  SmallVector<unsigned, 2> buffers{right.tile->buffer};
  reach(right, 8 * shape.columnTiles * shape.columnWarps);
  if (left.tile) {
    buffers.push_back(left.tile->buffer);
    reach(left, 16 * shape.rowTiles * shape.rowWarps);
  }
  shared.reads(buffers);
}

KernelLowering::Values
KernelLowering::multiply(const Operand &left, const Operand &right,
                         int64_t depth, const Accumulator &shape,
                         tile::Precision precision, Values sums) {
  readOperands(left, right, depth, shape);
  return Product(*this, left, right, depth, shape, precision)
      .emit(std::move(sums), 0, shape.columnTiles);
}

/// sums + left · right with fresh sums on the tensor cores. Where the left
/// operand is in registers, a quarter of the columns at a time is enough to
/// keep them busy and needs a quarter of the registers.
KernelLowering::Values
KernelLowering::multiplyApart(const Operand &left, const Operand &right,
                              int64_t depth, const Accumulator &shape,
                              tile::Precision precision, Values sums) {
  readOperands(left, right, depth, shape);
  Product product(*this, left, right, depth, shape, precision);
  constexpr int64_t kManyRegisters = 64;
  int64_t columns = shape.columnTiles;
  if (!left.tile && int64_t(sums.size()) >= kManyRegisters)
    columns = ceilDiv(columns, 4);
  for (int64_t first = 0; first < shape.columnTiles; first += columns) {
    int64_t last = std::min(first + columns, shape.columnTiles);
    int64_t count = 4 * (last - first);
    Values fresh = product.emit(
        Values(shape.rowTiles * count, b.zero(b.getF32Type())), first, last);
    for (int64_t m = 0; m < shape.rowTiles; ++m)
      for (int64_t n = 0; n < count; ++n) {
        Value &sum = sums[4 * (m * shape.columnTiles + first) + n];
        sum = arith::AddFOp::create(b, sum, fresh[m * count + n]);
      }
  }
  return sums;
}

LogicalResult KernelLowering::lowerDot(tile::DotOp dot) {
  Value result = dot.getResult();
  Type element = cast<RankedTensorType>(dot.getA().getType()).getElementType();
  Type sum = cast<RankedTensorType>(result.getType()).getElementType();
  if (!sum.isF32() || !(element.isF32() || element.isF16() || element.isBF16()))
    return dot.emitOpError("multiplies ")
           << element << " into " << sum
           << ", for which there is no tensor-core product; use f32, bf16 or "
              "f16 operands and an f32 accumulator";
  if (isRowProduct(dot)) {
    lowerRowProduct(dot);
    return success();
  }
  int64_t depth = shapeOf(dot.getA())[dot.getTransposeA() ? 0 : 1];
  Accumulator shape = plan.accumulatorOf(shapeOf(result));
  Layout layout = plan.accumulatorLayout(shapeOf(result));

  std::optional<Operand> left;
  if (!dot.getTransposeA())
    left = leftInRegisters(dot.getA(), shape);
  if (!left)
    left = inShared(staged(dot.getA()), dot.getTransposeA());
  Operand right = inShared(staged(dot.getB()), !dot.getTransposeB());

  Value acc = dot.getAcc();
  auto constant = acc.getDefiningOp<arith::ConstantOp>();
  bool fromZero = constant && matchPattern(acc, m_AnyZeroFloat());
  // Tensor cores round sums toward zero. In f32 the running sum is therefore
  // added to outside of them.
  bool apart = element.isF32() && dot.getPrecision() != tile::Precision::tf32;
  Values start =
      fromZero ? Values(layout.numRegisters(), b.zero(sum)) : get(acc, layout);
  remember(
      result, layout,
      !fromZero && apart
          ? multiplyApart(*left, right, depth, shape, dot.getPrecision(), start)
          : multiply(*left, right, depth, shape, dot.getPrecision(), start));
  return success();
}
