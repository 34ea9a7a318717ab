//===- KernelBuilder.cpp - how family builders write tile programs -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/KernelBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace hybrid::tile;

Symbols::Symbols(MLIRContext *c)
    : tokens(getAffineSymbolExpr(0, c)), segments(getAffineSymbolExpr(1, c)),
      longest(getAffineSymbolExpr(2, c)), slots(getAffineSymbolExpr(3, c)),
      context(getAffineSymbolExpr(4, c)), depth(getAffineSymbolExpr(5, c)) {}

KernelBuilder::KernelBuilder(OpBuilder &builder, Location loc, StringRef name,
                             ArrayRef<AffineExpr> grid, ArrayRef<Order> order,
                             ArrayRef<Type> views)
    : b(loc, builder) {
  auto map = AffineMap::get(/*dimCount=*/0, ProgramOp::kNumSymbols, grid,
                            builder.getContext());
  program = ProgramOp::create(b, name, map, order, views);
  b.setInsertionPointToStart(&program.getBlock());
}

ProgramOp KernelBuilder::finish() {
  b.setInsertionPointToEnd(&program.getBlock());
  ReturnOp::create(b);
  // What went back to memory as it came has not been widened for anyone.
  program.walk([](arith::ExtFOp widened) {
    if (widened->use_empty())
      widened.erase();
  });
  return program;
}

//===----------------------------------------------------------------------===//
// Types and constants
//===----------------------------------------------------------------------===//

Type KernelBuilder::viewType(MLIRContext *context, Shape shape, Type element) {
  return ViewType::get(shape, element ? element : Float32Type::get(context));
}

Type KernelBuilder::viewTypeI32(MLIRContext *context, Shape shape) {
  return ViewType::get(shape, IntegerType::get(context, 32));
}

SmallVector<Type, 2> KernelBuilder::segmentViewTypes(MLIRContext *context) {
  return {viewTypeI32(context, {ShapedType::kDynamic, 4}),
          viewTypeI32(context, {ShapedType::kDynamic})};
}

RankedTensorType KernelBuilder::tileType(Shape shape) const {
  return RankedTensorType::get(shape, Float32Type::get(b.getContext()));
}

Value KernelBuilder::idx(int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

Value KernelBuilder::i32(int64_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
}

Value KernelBuilder::f32(double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

Value KernelBuilder::full(double value, Shape shape) {
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(tileType(shape), static_cast<float>(value)));
}

Value KernelBuilder::tableI32(ArrayRef<int64_t> values) {
  SmallVector<int32_t> narrow(values.begin(), values.end());
  return arith::ConstantOp::create(b, b.getI32TensorAttr(narrow));
}

//===----------------------------------------------------------------------===//
// Place, sizes, segments
//===----------------------------------------------------------------------===//

Value KernelBuilder::id(unsigned dim) { return IdOp::create(b, dim); }
Value KernelBuilder::dim(Value view, unsigned n) {
  return DimOp::create(b, view, n);
}

Segment KernelBuilder::segment(Value table, Value index) {
  auto column = [&](int64_t n) {
    return toIndex(loadScalar(table, {index, idx(n)}));
  };
  Segment segment;
  segment.begin = column(0);
  segment.end = column(1);
  segment.slot = column(2);
  segment.first = column(3);
  return segment;
}

Value KernelBuilder::lastRow(const Segment &segment) {
  return max(segment.begin, sub(segment.end, idx(1)));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value.getType()));
}

Value KernelBuilder::add(Value x, Value y) {
  if (isFloat(x))
    return arith::AddFOp::create(b, x, y);
  return arith::AddIOp::create(b, x, y);
}

Value KernelBuilder::sub(Value x, Value y) {
  if (isFloat(x))
    return arith::SubFOp::create(b, x, y);
  return arith::SubIOp::create(b, x, y);
}

Value KernelBuilder::mul(Value x, Value y) {
  if (isFloat(x))
    return arith::MulFOp::create(b, x, y);
  return arith::MulIOp::create(b, x, y);
}

Value KernelBuilder::div(Value x, Value y) {
  if (isFloat(x))
    return arith::DivFOp::create(b, x, y);
  return arith::DivSIOp::create(b, x, y);
}

Value KernelBuilder::rem(Value x, Value y) {
  return arith::RemSIOp::create(b, x, y);
}

/// Of non-negative `x` and positive `y`.
Value KernelBuilder::ceilDiv(Value x, Value y) {
  return arith::CeilDivSIOp::create(b, x, y);
}

Value KernelBuilder::min(Value x, Value y) {
  if (isFloat(x))
    return arith::MinimumFOp::create(b, x, y);
  return arith::MinSIOp::create(b, x, y);
}

Value KernelBuilder::max(Value x, Value y) {
  if (isFloat(x))
    return arith::MaximumFOp::create(b, x, y);
  return arith::MaxSIOp::create(b, x, y);
}

Value KernelBuilder::neg(Value x) { return arith::NegFOp::create(b, x); }
Value KernelBuilder::exp(Value x) { return math::ExpOp::create(b, x); }
Value KernelBuilder::log(Value x) { return math::LogOp::create(b, x); }
Value KernelBuilder::rsqrt(Value x) { return math::RsqrtOp::create(b, x); }

Value KernelBuilder::cmp(arith::CmpIPredicate integer,
                         arith::CmpFPredicate real, Value x, Value y) {
  if (isFloat(x))
    return arith::CmpFOp::create(b, real, x, y);
  return arith::CmpIOp::create(b, integer, x, y);
}

Value KernelBuilder::lt(Value x, Value y) {
  return cmp(arith::CmpIPredicate::slt, arith::CmpFPredicate::OLT, x, y);
}
Value KernelBuilder::le(Value x, Value y) {
  return cmp(arith::CmpIPredicate::sle, arith::CmpFPredicate::OLE, x, y);
}
Value KernelBuilder::eq(Value x, Value y) {
  return cmp(arith::CmpIPredicate::eq, arith::CmpFPredicate::OEQ, x, y);
}

Value KernelBuilder::both(Value x, Value y) {
  return arith::AndIOp::create(b, x, y);
}
Value KernelBuilder::either(Value x, Value y) {
  return arith::OrIOp::create(b, x, y);
}
Value KernelBuilder::bitXor(Value x, Value y) {
  return arith::XOrIOp::create(b, x, y);
}
Value KernelBuilder::shiftRight(Value x, Value bits) {
  return arith::ShRUIOp::create(b, x, bits);
}
Value KernelBuilder::select(Value mask, Value x, Value y) {
  return arith::SelectOp::create(b, mask, x, y);
}

Value KernelBuilder::toI32(Value index) {
  return arith::IndexCastOp::create(b, b.getI32Type(), index);
}
Value KernelBuilder::toIndex(Value i32) {
  return arith::IndexCastOp::create(b, b.getIndexType(), i32);
}
Value KernelBuilder::toF32(Value i32) {
  Type type = b.getF32Type();
  if (auto tile = dyn_cast<RankedTensorType>(i32.getType()))
    type = tile.clone(type);
  return arith::SIToFPOp::create(b, type, i32);
}

/// `value`, a scalar or a tile, with elements of type `element`.
static Type withElement(Value value, Type element) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  return tile ? Type(tile.clone(element)) : element;
}

static bool isNarrow(Type element) {
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
}

Value KernelBuilder::widened(Value value) {
  if (!isNarrow(getElementTypeOrSelf(value)))
    return value;
  return arith::ExtFOp::create(b, withElement(value, b.getF32Type()), value);
}

Value KernelBuilder::narrowed(Value value, Type element) {
  if (getElementTypeOrSelf(value) == element)
    return value;
  // What was rounded before has the bits already.
  if (auto widened = value.getDefiningOp<arith::ExtFOp>();
      widened && getElementTypeOrSelf(widened.getIn()) == element)
    return widened.getIn();
  return arith::TruncFOp::create(b, withElement(value, element), value);
}

Value KernelBuilder::rounded(Value value, Type element) {
  return isNarrow(element) ? widened(narrowed(value, element)) : value;
}

/// `value` as the view keeps it.
Value KernelBuilder::forView(Value value, Value view) {
  Type element = cast<ViewType>(view.getType()).getElementType();
  return isNarrow(element) ? narrowed(value, element) : value;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

Value KernelBuilder::splat(Value scalar, Shape shape) {
  return SplatOp::create(b, RankedTensorType::get(shape, scalar.getType()),
                         scalar);
}

Value KernelBuilder::iota(unsigned dim, Shape shape) {
  return IotaOp::create(b, RankedTensorType::get(shape, b.getI32Type()), dim);
}

Value KernelBuilder::broadcast(Value tile, Shape shape) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getShape() == shape)
    return tile;
  return BroadcastOp::create(b, type.clone(shape), tile);
}

Value KernelBuilder::reshape(Value tile, Shape shape) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getShape() == shape)
    return tile;
  return ReshapeOp::create(b, type.clone(shape), tile);
}

Value KernelBuilder::transpose(Value matrix) {
  return TransposeOp::create(b, matrix, ArrayRef<int64_t>{1, 0});
}

Value KernelBuilder::slice(Value tile, unsigned dim, int64_t offset,
                           int64_t size) {
  if (cast<RankedTensorType>(tile.getType()).getDimSize(dim) == size)
    return tile;
  return SliceOp::create(b, tile, dim, offset, size);
}

Value KernelBuilder::concat(ValueRange tiles, unsigned dim) {
  return ConcatOp::create(b, tiles, dim);
}

Value KernelBuilder::extract(Value tile, ValueRange indices) {
  return tensor::ExtractOp::create(b, tile, indices);
}

//===----------------------------------------------------------------------===//
// Whole tiles
//===----------------------------------------------------------------------===//

Value KernelBuilder::sum(Value tile, unsigned dim) {
  return ReduceOp::create(b, ReduceKind::sum, tile, dim);
}

Value KernelBuilder::maximum(Value tile, unsigned dim) {
  return ReduceOp::create(b, ReduceKind::max, tile, dim);
}

Value KernelBuilder::dot(Value x, Value y, Value acc, bool transposeA,
                         bool transposeB) {
  return DotOp::create(b, x, y, acc, transposeA, transposeB);
}

Value KernelBuilder::prefixSum(Value tile, unsigned dim, bool reverse) {
  return PrefixSumOp::create(b, tile.getType(), tile, dim, reverse);
}

Value KernelBuilder::unitLowerInverse(Value matrix) {
  return UnitLowerInverseOp::create(b, matrix.getType(), matrix);
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

/// A tile of `shape` with the element type of `view`.
static RankedTensorType blockType(Value view, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape,
                               cast<ViewType>(view.getType()).getElementType());
}

Value KernelBuilder::load(Value view, ValueRange indices,
                          ArrayRef<int64_t> dims, Shape shape,
                          ValueRange limits) {
  return widened(loadStored(view, indices, dims, shape, limits));
}

Value KernelBuilder::loadStored(Value view, ValueRange indices,
                                ArrayRef<int64_t> dims, Shape shape,
                                ValueRange limits) {
  return LoadOp::create(b, blockType(view, shape), view, indices, limits, dims);
}

void KernelBuilder::store(Value tile, Value view, ValueRange indices,
                          ArrayRef<int64_t> dims, ValueRange limits) {
  StoreOp::create(b, forView(tile, view), view, indices, limits, dims);
}

AccumulateOp KernelBuilder::accumulate(Value tile, Value view,
                                       ValueRange indices,
                                       ArrayRef<int64_t> dims,
                                       ValueRange limits, Value first) {
  assert(!isNarrow(cast<ViewType>(view.getType()).getElementType()) &&
         "sums are not kept in narrow types");
  return AccumulateOp::create(b, tile, view, indices, limits, first, dims);
}

Value KernelBuilder::loadRows(Value view, ValueRange indices, Value rows,
                              Value mask, ArrayRef<int64_t> dims, Shape shape) {
  return widened(LoadRowsOp::create(b, blockType(view, shape), view, indices,
                                    rows, mask, dims));
}

void KernelBuilder::storeRows(Value tile, Value view, ValueRange indices,
                              Value rows, Value mask, ArrayRef<int64_t> dims) {
  StoreRowsOp::create(b, forView(tile, view), view, indices, rows, mask, dims);
}

Value KernelBuilder::loadScalar(Value view, ValueRange indices) {
  return widened(LoadScalarOp::create(
      b, cast<ViewType>(view.getType()).getElementType(), view, indices));
}

void KernelBuilder::storeScalar(Value value, Value view, ValueRange indices) {
  StoreScalarOp::create(b, forView(value, view), view, indices);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

KernelBuilder::Values KernelBuilder::loop(Value lower, Value upper,
                                          int64_t step, ValueRange carried,
                                          LoopBody body) {
  auto loop = scf::ForOp::create(b, lower, upper, idx(step), carried);
  OpBuilder::InsertionGuard guard(b);
  // Without carried values the loop comes with its terminator.
  Block *block = loop.getBody();
  if (carried.empty())
    b.setInsertionPoint(block->getTerminator());
  else
    b.setInsertionPointToStart(block);
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, next);
  return Values(loop.getResults());
}

void KernelBuilder::when(Value condition, function_ref<void()> body) {
  auto op = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op.thenBlock()->getTerminator());
  body();
}

KernelBuilder::Values KernelBuilder::choose(Value condition,
                                            function_ref<Values()> then,
                                            function_ref<Values()> otherwise) {
  auto branch = [&](function_ref<Values()> values) {
    return [&, values](OpBuilder &nested, Location loc) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(nested.getInsertionBlock(),
                          nested.getInsertionPoint());
      Values results = values();
      scf::YieldOp::create(b, results);
    };
  };
  auto op = scf::IfOp::create(b, condition, branch(then), branch(otherwise));
  return Values(op.getResults());
}

Value KernelBuilder::named(StringRef name, Value value) {
  named(name, namedOp(value));
  return value;
}

Operation *KernelBuilder::namedOp(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto widened = dyn_cast<arith::ExtFOp>(op))
    if (Operation *load = widened.getIn().getDefiningOp())
      return load;
  return op;
}

void KernelBuilder::named(StringRef name, Operation *op) {
  op->setAttr(TileDialect::kNameAttr, b.getStringAttr(name));
}
