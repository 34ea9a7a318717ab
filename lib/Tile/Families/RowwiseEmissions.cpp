//===- RowwiseEmissions.cpp - how each row-wise operation becomes tile
// operations -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowwiseEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

namespace {
using Emitter = RowwiseEmitter;

ArrayRef<int64_t> shapeOf(Value tile) {
  return cast<RankedTensorType>(tile.getType()).getShape();
}

Value number(Emitter &e, double value, Value like) {
  return e.k.full(value, shapeOf(like));
}

//===----------------------------------------------------------------------===//
// Elementwise. No exponential of a positive number is formed.
//===----------------------------------------------------------------------===//

Value abs(Emitter &e, Value x) { return math::AbsFOp::create(e.k.ops(), x); }

/// exp(-|x|), in (0, 1].
Value decayOf(Emitter &e, Value x) { return e.k.exp(e.k.neg(abs(e, x))); }

Value sigmoid(Emitter &e, Value x) {
  Value small = decayOf(e, x), one = number(e, 1.0, x);
  Value numerator = e.k.select(e.k.ge(x, number(e, 0.0, x)), one, small);
  return e.k.div(numerator, e.k.add(one, small));
}

/// ln(1 + exp(-|x|)).
Value logOnePlus(Emitter &e, Value x) {
  return math::Log1pOp::create(e.k.ops(), decayOf(e, x));
}

Value softplus(Emitter &e, Value x) {
  return e.k.add(e.k.max(x, number(e, 0.0, x)), logOnePlus(e, x));
}

Value logSigmoid(Emitter &e, Value x) {
  return e.k.sub(e.k.min(x, number(e, 0.0, x)), logOnePlus(e, x));
}

template <Value (KernelBuilder::*combine)(Value, Value)>
Value binary(Emitter &e, Operation *op) {
  Value a = e.tileOf(op->getOperand(0));
  return (e.k.*combine)(a, e.stretch(e.tileOf(op->getOperand(1)), shapeOf(a)));
}

template <Value (*function)(Emitter &, Value)>
Value unary(Emitter &e, Operation *op) {
  return function(e, e.tileOf(op->getOperand(0)));
}

/// dx = dy times `factor` of the first operand.
template <Value (*factor)(Emitter &, Value)>
Value gradient(Emitter &e, Operation *op) {
  return e.k.mul(e.tileOf(op->getOperand(1)),
                 factor(e, e.tileOf(op->getOperand(0))));
}

Value silu(Emitter &e, Value x) { return e.k.mul(x, sigmoid(e, x)); }
Value exponential(Emitter &e, Value x) { return e.k.exp(x); }
Value negative(Emitter &e, Value x) { return e.k.neg(x); }

/// σ(x) (1 + x (1 - σ(x))).
Value siluSlope(Emitter &e, Value x) {
  Value s = sigmoid(e, x), one = number(e, 1.0, x);
  return e.k.mul(s, e.k.add(one, e.k.mul(x, e.k.sub(one, s))));
}
/// y (1 - y).
Value sigmoidSlope(Emitter &e, Value y) {
  return e.k.mul(y, e.k.sub(number(e, 1.0, y), y));
}
Value logSigmoidSlope(Emitter &e, Value x) { return sigmoid(e, e.k.neg(x)); }

Value scale(Emitter &e, Operation *op) {
  Value x = e.tileOf(op->getOperand(0));
  return e.k.mul(x,
                 number(e, cast<ScaleOp>(op).getFactor().convertToDouble(), x));
}

Value fill(Emitter &e, Operation *op) {
  auto fillOp = cast<FillOp>(op);
  return e.k.full(fillOp.getValue().convertToDouble(),
                  e.tileShape(fillOp.getType()));
}

/// Tiles are f32; a narrower type is a rounding.
Value roundTo(Emitter &e, Operation *op) {
  auto cast = llvm::cast<CastOp>(op);
  return e.k.rounded(e.tileOf(cast.getX()),
                     cast.getResult().getType().getElementType());
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

unsigned lastDim(Value tile) { return shapeOf(tile).size() - 1; }

/// (Σ x² / n + ε)^(-1/2) over the last dim, which becomes 1; n is the width for
/// rms and 1 for l2.
Value inverseSize(Emitter &e, Value x, NormKind kind, double epsilon) {
  Value squares = e.k.sum(e.k.mul(x, x), lastDim(x));
  if (kind == NormKind::rms)
    squares = e.k.mul(squares, number(e, 1.0 / shapeOf(x).back(), squares));
  return e.k.rsqrt(e.k.add(squares, number(e, epsilon, squares)));
}

Value normalize(Emitter &e, Operation *op) {
  auto norm = cast<NormalizeOp>(op);
  Value x = e.tileOf(norm.getX());
  Value r =
      inverseSize(e, x, norm.getKind(), norm.getEpsilon().convertToDouble());
  return e.k.mul(x, e.k.broadcast(r, shapeOf(x)));
}

/// dx = r (dy - y · Σ(y dy) / n), y = x r.
Value normalizeGrad(Emitter &e, Operation *op) {
  auto norm = cast<NormalizeGradOp>(op);
  Value x = e.tileOf(norm.getX()), dy = e.tileOf(norm.getDy());
  ArrayRef<int64_t> shape = shapeOf(x);
  Value inverse =
      inverseSize(e, x, norm.getKind(), norm.getEpsilon().convertToDouble());
  Value r = e.k.broadcast(inverse, shape), y = e.k.mul(x, r);
  Value along = e.k.sum(e.k.mul(y, dy), lastDim(x));
  if (norm.getKind() == NormKind::rms)
    along = e.k.mul(along, number(e, 1.0 / shape.back(), along));
  return e.k.mul(r, e.k.sub(dy, e.k.mul(y, e.k.broadcast(along, shape))));
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

constexpr double kPi = 3.14159265358979323846;

/// Angles of [rows, d/2] in (-π, π]. The angle in turns is the fraction of
/// position · base^(-2i/d) / 2π; as a fixed-point number of 32 bits behind the
/// point its whole turns drop out of the product, and its error is 2^-33 turns
/// per position, where an f32 product loses the fraction of a large angle.
Value fixedPointAngles(Emitter &e, RotaryOp op, Value position) {
  SmallVector<int64_t> table = llvm::to_vector_of<int64_t>(rotaryTurns(op));
  int64_t shape[] = {shapeOf(position)[0], int64_t(table.size())};
  Value perTurn = e.stretch(e.k.tableI32(table), shape);
  return rotaryAngles(e.k, e.k.mul(perTurn, e.k.broadcast(position, shape)));
}

/// Dynamic NTK: base · r^(d/(d-2)) with r = f T/n - (f - 1), T = max(n, end),
/// multiplies frequency i by r^(-2i/(d-2)).
Value stretchedAngles(Emitter &e, RotaryOp op, Value position) {
  int64_t d = op.getRotaryDim(), half = d / 2, rows = shapeOf(position)[0];
  double base = op.getBase().convertToDouble();
  double factor = op.getNtkFactor()->convertToDouble(),
         length = *op.getOriginalLength();
  int64_t column[] = {rows, 1}, shape[] = {rows, half};
  Value end = e.k.toF32(e.positionsEnd(op.getSegments()));
  Value ratio = e.k.mul(e.k.max(end, e.k.full(length, column)),
                        e.k.full(factor / length, column));
  Value logRatio = e.k.log(e.k.sub(ratio, e.k.full(factor - 1.0, column)));
  Value index = e.k.toF32(e.k.iota(1, shape));
  Value exponent = e.k.mul(index, e.k.full(-2.0 * std::log(base) / d, shape));
  if (d > 2) {
    Value slope = e.k.mul(index, e.k.full(-2.0 / (d - 2), shape));
    exponent =
        e.k.add(exponent, e.k.mul(slope, e.k.broadcast(logRatio, shape)));
  }
  return e.k.mul(e.k.broadcast(e.k.toF32(position), shape), e.k.exp(exponent));
}

Value rotary(Emitter &e, Operation *op) {
  auto rotaryOp = cast<RotaryOp>(op);
  Value x = e.tileOf(rotaryOp.getX());
  ArrayRef<int64_t> shape = shapeOf(x);
  int64_t d = rotaryOp.getRotaryDim(), half = d / 2;
  auto [cosines, sines] = e.rotaryFactors(rotaryOp);
  int64_t perRow[] = {shape[0], 1, half},
          perHead[] = {shape[0], shape[1], half};
  auto overHeads = [&](Value tile) {
    return e.k.broadcast(e.k.reshape(tile, perRow), perHead);
  };
  Value cos = overHeads(cosines), sin = overHeads(sines);
  if (rotaryOp.getInverse())
    sin = e.k.neg(sin);
  Value low = e.k.slice(x, 2, 0, half), high = e.k.slice(x, 2, half, half);
  SmallVector<Value> parts = {e.k.sub(e.k.mul(low, cos), e.k.mul(high, sin)),
                              e.k.add(e.k.mul(high, cos), e.k.mul(low, sin))};
  if (d < shape[2])
    parts.push_back(e.k.slice(x, 2, d, shape[2] - d));
  return e.k.concat(parts, 2);
}

/// Rows times max(1, ln(p + 1) / ln trained).
Value logNScale(Emitter &e, Operation *op) {
  auto scaleOp = cast<LogNScaleOp>(op);
  Value x = e.tileOf(scaleOp.getX());
  Value position = e.k.toF32(e.positions(scaleOp.getSegments()));
  Value one = number(e, 1.0, position);
  Value ratio = e.k.mul(
      e.k.log(e.k.add(position, one)),
      number(e, 1.0 / std::log(double(scaleOp.getTrained())), position));
  Value factor = e.k.max(one, ratio);
  SmallVector<int64_t> column(shapeOf(x).size(), 1);
  column[0] = shapeOf(x)[0];
  return e.k.mul(x, e.k.broadcast(e.k.reshape(factor, column), shapeOf(x)));
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

constexpr uint32_t kGolden = 0x9E3779B9;

/// An i32 of these bits everywhere.
Value word(Emitter &e, uint32_t bits, Value like) {
  return e.k.splat(e.k.i32(static_cast<int32_t>(bits)), shapeOf(like));
}

/// As `hybrid.dropout` defines it.
Value mix(Emitter &e, Value x) {
  auto fold = [&](Value value, uint32_t bits) {
    return e.k.bitXor(value, e.k.shiftRight(value, word(e, bits, value)));
  };
  x = e.k.mul(fold(x, 16), word(e, 0x7FEB352D, x));
  x = e.k.mul(fold(x, 15), word(e, 0x846CA68B, x));
  return fold(x, 16);
}

/// Index in its row of each element, [1, ...] of i32.
Value elementNumbers(Emitter &e, RowwiseEmitter::Shape tile) {
  SmallVector<int64_t> shape(tile);
  shape[0] = 1;
  Value numbers = e.k.iota(0, shape); // 0, of which there is one
  int64_t stride = 1;
  for (unsigned dim = shape.size(); dim-- > 1; stride *= shape[dim]) {
    Value along = e.k.iota(dim, shape);
    numbers = e.k.add(numbers, e.k.mul(along, word(e, stride, along)));
  }
  return numbers;
}

Value dropout(Emitter &e, Operation *op) {
  auto dropoutOp = cast<DropoutOp>(op);
  Value x = e.tileOf(dropoutOp.getX()), row = e.rowNumbers();
  Value key = e.stretch(e.tileOf(dropoutOp.getKey()), shapeOf(row));
  row = mix(e, e.k.bitXor(key, e.k.mul(row, word(e, kGolden, row))));
  SmallVector<int64_t> column(shapeOf(x).size(), 1);
  column[0] = shapeOf(x)[0];
  Value element = elementNumbers(e, shapeOf(x));
  element = e.k.mul(element, word(e, kGolden, element));
  Value hash =
      mix(e, e.k.bitXor(e.k.broadcast(e.k.reshape(row, column), shapeOf(x)),
                        e.k.broadcast(element, shapeOf(x))));
  double bound =
      std::ceil(std::ldexp(dropoutOp.getRate().convertToDouble(), 32));
  auto threshold = static_cast<uint32_t>(bound) ^ 0x80000000u;
  Value kept = e.k.ge(hash, word(e, threshold, hash));
  return e.k.mul(x, e.k.select(kept, number(e, dropoutOp.getScale(), x),
                               number(e, 0.0, x)));
}

//===----------------------------------------------------------------------===//
// Sums and shapes
//===----------------------------------------------------------------------===//

Value reduceDim(Emitter &e, Operation *op) {
  Value x = e.tileOf(op->getOperand(0));
  return e.k.sum(x, lastDim(x));
}

Value reshape(Emitter &e, Operation *op) {
  return e.k.reshape(e.tileOf(op->getOperand(0)),
                     e.tileShape(op->getResult(0).getType()));
}

Value slice(Emitter &e, Operation *op) {
  auto sliceOp = cast<hybrid::SliceOp>(op);
  return e.k.slice(e.tileOf(sliceOp.getX()), sliceOp.getDim(),
                   sliceOp.getOffset(), sliceOp.getSize());
}

Value concat(Emitter &e, Operation *op) {
  auto concatOp = cast<hybrid::ConcatOp>(op);
  SmallVector<Value> parts;
  for (Value part : concatOp.getParts())
    parts.push_back(e.tileOf(part));
  return e.k.concat(parts, concatOp.getDim());
}

/// The one table: an operation that is not here cannot stand in a row-wise
/// program.
const llvm::StringMap<RowwiseEmission> &emissions() {
  static const llvm::StringMap<RowwiseEmission> table = {
      {AddOp::getOperationName(), binary<&KernelBuilder::add>},
      {SubOp::getOperationName(), binary<&KernelBuilder::sub>},
      {MulOp::getOperationName(), binary<&KernelBuilder::mul>},
      {ScaleOp::getOperationName(), scale},
      {FillOp::getOperationName(), fill},
      {CastOp::getOperationName(), roundTo},
      {SiluOp::getOperationName(), unary<silu>},
      {SigmoidOp::getOperationName(), unary<sigmoid>},
      {LogSigmoidOp::getOperationName(), unary<logSigmoid>},
      {SoftplusOp::getOperationName(), unary<softplus>},
      {hybrid::ExpOp::getOperationName(), unary<exponential>},
      {NegOp::getOperationName(), unary<negative>},
      {SiluGradOp::getOperationName(), gradient<siluSlope>},
      {SigmoidGradOp::getOperationName(), gradient<sigmoidSlope>},
      {LogSigmoidGradOp::getOperationName(), gradient<logSigmoidSlope>},
      {SoftplusGradOp::getOperationName(), gradient<sigmoid>},
      {NormalizeOp::getOperationName(), normalize},
      {NormalizeGradOp::getOperationName(), normalizeGrad},
      {RotaryOp::getOperationName(), rotary},
      {LogNScaleOp::getOperationName(), logNScale},
      {DropoutOp::getOperationName(), dropout},
      {ReduceDimOp::getOperationName(), reduceDim},
      {hybrid::ReshapeOp::getOperationName(), reshape},
      {hybrid::SliceOp::getOperationName(), slice},
      {hybrid::ConcatOp::getOperationName(), concat},
  };
  return table;
}
} // namespace

SmallVector<int32_t> hybrid::tile::rotaryTurns(RotaryOp op) {
  double base = op.getBase().convertToDouble();
  SmallVector<int32_t> turns;
  for (int64_t i = 0; i < int64_t(op.getRotaryDim()) / 2; ++i) {
    double perPosition =
        std::pow(base, -2.0 * i / op.getRotaryDim()) / (2.0 * kPi);
    turns.push_back(static_cast<int32_t>(
        static_cast<uint32_t>(std::llround(perPosition * 4294967296.0))));
  }
  return turns;
}

std::pair<Value, Value> RowwiseEmitter::rotaryFactors(RotaryOp op) {
  auto &[cosines, sines] = rotations[op];
  if (!cosines) {
    Value position = positions(op.getSegments());
    Value angle = op.getNtkFactor() ? stretchedAngles(*this, op, position)
                                    : fixedPointAngles(*this, op, position);
    cosines = math::CosOp::create(k.ops(), angle);
    sines = math::SinOp::create(k.ops(), angle);
  }
  return {cosines, sines};
}

Value hybrid::tile::rotaryAngles(KernelBuilder &k, Value fraction) {
  Value real = k.toF32(fraction);
  ArrayRef<int64_t> shape = shapeOf(real);
  return k.mul(real, k.full(2.0 * kPi / 4294967296.0, shape));
}

RowwiseEmission hybrid::tile::lookupRowwiseEmission(Operation *op) {
  return emissions().lookup(op->getName().getStringRef());
}
