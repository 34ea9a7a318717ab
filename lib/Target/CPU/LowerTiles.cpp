//===- LowerTiles.cpp - arithmetic on whole tiles -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LowerPrograms.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

//===----------------------------------------------------------------------===//
// Memory of tiles
//===----------------------------------------------------------------------===//

Value ProgramLowering::scratchAt(int64_t offset) {
  return b.address(scratch, offset, b.getI8Type());
}

Place ProgramLowering::bufferOf(Value tile) {
  ArrayRef<int64_t> shape = shapeOf(tile);
  return Place{scratchAt(placement.offsetOf(tile)), 0,
               SmallVector<int64_t, 3>(shape), Place::rowMajor(shape),
               getElementTypeOrSelf(tile.getType())};
}

Place ProgramLowering::placeOf(Value tile) {
  if (placement.homeOf(tile) == Home::Buffer)
    return bufferOf(tile);
  if (auto found = places.find(tile); found != places.end())
    return found->second;
  Operation *op = tile.getDefiningOp();
  Place input = placeOf(op->getOperand(0));
  return TypeSwitch<Operation *, Place>(op)
      .Case<tile::BroadcastOp>(
          [&](auto) { return input.broadcastTo(shapeOf(tile)); })
      .Case<tile::ReshapeOp>([&](auto) { return input.reshape(shapeOf(tile)); })
      .Case<tile::TransposeOp>([&](tile::TransposeOp transpose) {
        return input.permute(transpose.getPermutation());
      })
      .Case<tile::SliceOp>([&](tile::SliceOp slice) {
        return input.slice(b, slice.getDim(), slice.getOffset(),
                           slice.getSize());
      });
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

void ProgramLowering::evaluate(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (placement.homeOf(tile) == Home::Constant) {
    lowerConstant(cast<arith::ConstantOp>(op));
    return;
  }
  Nest nest(b, shapeOf(tile));
  Nest::Map map = Nest::identity(shapeOf(tile).size());
  nest.emitStore(definitionOf(nest, tile, map), bufferOf(tile));
}

void ProgramLowering::storeTile(Value tile, const Place &to) {
  Nest nest(b, shapeOf(tile));
  nest.emitStore(nodeFor(nest, tile, Nest::identity(to.rank())), to);
}

Nest::Node ProgramLowering::nodeFor(Nest &nest, Value tile,
                                    const Nest::Map &map) {
  if (std::optional<Nest::Node> node = nest.lookup(tile, map))
    return *node;
  Operation *op = tile.getDefiningOp();
  // A walk over a tile in memory is followed too: its input may be fused.
  bool inMemory = placement.homeOf(tile) != Home::Fused;
  Nest::Node node = inMemory ? nest.read(placeOf(tile), map)
                             : definitionOf(nest, op->getResult(0), map);
  nest.remember(tile, map, node);
  return node;
}

Nest::Node ProgramLowering::definitionOf(Nest &nest, Value tile,
                                         const Nest::Map &map) {
  Operation *op = tile.getDefiningOp();
  auto input = [&](const Nest::Map &inner) {
    return nodeFor(nest, op->getOperand(0), inner);
  };
  Nest::Map inner = map;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat =
        cast<SplatElementsAttr>(constant.getValue()).getSplatValue<TypedAttr>();
    return nest.scalar(arith::ConstantOp::create(b, splat));
  }
  if (auto splat = dyn_cast<tile::SplatOp>(op))
    return nest.scalar(scalar(splat.getScalar()));
  if (auto iota = dyn_cast<tile::IotaOp>(op))
    return nest.iota(map[iota.getDim()], getElementTypeOrSelf(tile.getType()));
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    for (auto [dim, size] : llvm::enumerate(shapeOf(broadcast.getInput())))
      if (size == 1)
        inner[dim] = {std::nullopt, 0};
    return input(inner);
  }
  if (auto slice = dyn_cast<tile::SliceOp>(op)) {
    inner[slice.getDim()].start += slice.getOffset();
    return input(inner);
  }
  if (auto transpose = dyn_cast<tile::TransposeOp>(op)) {
    for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
      inner[source] = map[dim];
    return input(inner);
  }
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) {
    // Dims of size 1 come and go; the others keep their order.
    inner.clear();
    const auto *from = map.begin();
    ArrayRef<int64_t> shape = shapeOf(tile);
    for (int64_t size : shapeOf(reshape.getInput())) {
      if (size == 1) {
        inner.push_back({std::nullopt, 0});
        continue;
      }
      while (shape[from - map.begin()] == 1)
        ++from;
      inner.push_back(*from++);
    }
    return input(inner);
  }
  SmallVector<Nest::Node> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isTile(operand) ? nodeFor(nest, operand, map)
                                       : nest.scalar(scalar(operand)));
  return nest.compute(op, operands);
}

//===----------------------------------------------------------------------===//
// Products, reductions, sums
//===----------------------------------------------------------------------===//

static bool isZero(Value tile) {
  if (auto splat = tile.getDefiningOp<tile::SplatOp>())
    return matchPattern(splat.getScalar(), m_AnyZeroFloat());
  return matchPattern(tile, m_AnyZeroFloat());
}

void ProgramLowering::lowerDot(tile::DotOp dot) {
  Place left = placeOf(dot.getA()), right = placeOf(dot.getB());
  Place result = bufferOf(dot.getResult());
  bool fromZero =
      placement.homeOf(dot.getAcc()) == Home::Fused && isZero(dot.getAcc());
  if (!fromZero && !placement.sharesBuffer(dot.getAcc(), dot.getResult()))
    storeTile(dot.getAcc(), result);
  dots.call(b,
            {dot.getTransposeA() ? left.permute({1, 0}) : left,
             dot.getTransposeB() ? right.permute({1, 0}) : right, result,
             fromZero},
            scratchAt(placement.workspaceOf(dot)));
}

void ProgramLowering::lowerReduce(tile::ReduceOp reduce) {
  ArrayRef<int64_t> shape = shapeOf(reduce.getInput());
  Nest nest(b, shape);
  Nest::Node input =
      nodeFor(nest, reduce.getInput(), Nest::identity(shape.size()));
  nest.emitReduce(input, reduce.getKind(), reduce.getDim(),
                  bufferOf(reduce.getResult()));
}

void ProgramLowering::lowerPrefixSum(tile::PrefixSumOp prefix) {
  Place sums = bufferOf(prefix.getResult());
  if (!placement.sharesBuffer(prefix.getInput(), prefix.getResult()))
    storeTile(prefix.getInput(), sums);
  int64_t outer = 1, steps = sums.shape[prefix.getDim()], inner = 1;
  for (int64_t dim = 0; dim < sums.rank(); ++dim)
    if (dim != int64_t(prefix.getDim()))
      (dim < int64_t(prefix.getDim()) ? outer : inner) *= sums.shape[dim];
  Place box = sums.reshape({outer, steps, inner});
  box.strides = Place::rowMajor({outer, steps, inner});
  bool reverse = prefix.getReverse();
  auto scan = [&](Value block, Int start, int64_t width) {
    Value zero = b.zero(b.widened(box.element, width));
    b.loop(0, steps, 1, zero, [&](Value step, ValueRange carried) {
      Int at = reverse ? Int(arith::SubIOp::create(b, b.i64(steps - 1), step))
                       : Int(step);
      Value address = box.addressOf(b, {block, at, start});
      Value sum =
          arith::AddFOp::create(b, carried[0], b.load(zero.getType(), address));
      b.store(sum, address);
      return SmallVector<Value>{sum};
    });
  };
  b.loop(0, outer, 1, [&](Value block) {
    b.forEachVector(
        inner, [&](Int start, int64_t width) { scan(block, start, width); });
  });
}

/// Forward substitution, several columns of one row at a time in registers:
/// X[i, :] = e_i - Σ_{j<i} L[i, j] X[j, :].
void ProgramLowering::lowerInverse(tile::UnitLowerInverseOp inverse) {
  Place lower = placeOf(inverse.getInput());
  Place result = bufferOf(inverse.getResult());
  int64_t size = result.shape[0];
  Type element = result.element;
  int64_t lanes = b.getTraits().lanes;
  constexpr int64_t kVectors = 4;

  auto emitRow = [&](Value row, Int column, ArrayRef<int64_t> widths) {
    SmallVector<Value> sums;
    for (int64_t width : widths)
      sums.push_back(b.zero(b.widened(element, width)));
    // Row j is zero in the columns past j.
    sums = b.loop(column, row, 1, sums, [&](Value j, ValueRange carried) {
      Value factor = arith::NegFOp::create(
          b, b.load(element, lower.addressOf(b, {row, j})));
      SmallVector<Value> next;
      int64_t start = 0;
      for (auto [width, sum] : llvm::zip_equal(widths, carried)) {
        Value known = b.load(b.widened(element, width),
                             result.addressOf(b, {j, b.add(column, start)}));
        next.push_back(b.mulAdd(b.broadcast(factor, width), known, sum));
        start += width;
      }
      return next;
    });
    int64_t start = 0;
    for (auto [width, sum] : llvm::zip_equal(widths, sums)) {
      b.store(sum, result.addressOf(b, {row, b.add(column, start)}));
      start += width;
    }
  };
  Value one = arith::ConstantOp::create(b, b.getFloatAttr(element, 1.0));
  b.loop(0, size, 1, [&](Value row) {
    int64_t block = kVectors * lanes, full = size / block * block;
    SmallVector<int64_t> widths(kVectors, lanes);
    if (full != 0)
      b.loop(0, full, block,
             [&](Value column) { emitRow(row, column, widths); });
    b.forEachVector(size - full, [&](Int column, int64_t width) {
      emitRow(row, b.add(column, full), width);
    });
    b.store(one, result.addressOf(b, {row, row}));
  });
}

//===----------------------------------------------------------------------===//
// Shape changes that move data
//===----------------------------------------------------------------------===//

void ProgramLowering::lowerConcat(tile::ConcatOp concat) {
  Place result = bufferOf(concat.getResult());
  int64_t start = 0;
  for (Value input : concat.getInputs()) {
    int64_t size = shapeOf(input)[concat.getDim()];
    storeTile(input, result.slice(b, concat.getDim(), start, size));
    start += size;
  }
}

void ProgramLowering::lowerTranspose(tile::TransposeOp transpose) {
  Place result = bufferOf(transpose.getResult());
  if (result.rank() == 2) {
    copyTransposed(b, placeOf(transpose.getInput()).permute({1, 0}), result);
    return;
  }
  evaluate(transpose.getResult());
}

void ProgramLowering::lowerReshape(tile::ReshapeOp reshape) {
  ArrayRef<int64_t> shape = shapeOf(reshape.getInput());
  storeTile(reshape.getInput(), bufferOf(reshape.getResult()).reshape(shape));
}

void ProgramLowering::lowerExtract(tensor::ExtractOp extract) {
  Place place = placeOf(extract.getTensor());
  SmallVector<Int> indices;
  for (Value index : extract.getIndices())
    indices.push_back(integer(index));
  mapping.map(extract.getResult(),
              b.load(place.element, place.addressOf(b, indices)));
}
