//===- Rowwise.cpp - row-wise graph operations as one program -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Tile/Families/Rowwise.h"

#include "RowwiseEmitter.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Tile/Families/RowParts.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

//===----------------------------------------------------------------------===//
// RowwiseEmitter
//===----------------------------------------------------------------------===//

void RowwiseEmitter::setSegments(Value segments, Value table,
                                 Value tokenSegment) {
  segmentViews[segments] = {table, tokenSegment, {}};
}

bool RowBlock::hasRows(Type type) const {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() == 0)
    return false;
  if (rowType.isDynamicDim(0))
    return tensor.isDynamicDim(0);
  return tensor.getRank() == rowType.getRank() &&
         tensor.getDimSize(0) == rowType.getDimSize(0);
}

bool RowBlock::hasHeads(Type type) const {
  return heads > 0 && hasRows(type) &&
         cast<RankedTensorType>(type).getRank() == 3;
}

SmallVector<int64_t> RowBlock::tileShape(Type type) const {
  SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
  if (hasRows(type))
    shape.front() = rows;
  if (hasHeads(type))
    shape[1] = heads;
  return shape;
}

SmallVector<Value> RowwiseEmitter::blockIndices(Type type) {
  SmallVector<Value> indices(cast<RankedTensorType>(type).getRank(), k.idx(0));
  if (block.hasRows(type))
    indices.front() = firstRow;
  if (block.hasHeads(type))
    indices[1] = firstHead;
  return indices;
}

Value RowwiseEmitter::stretch(Value tile, Shape shape) {
  SmallVector<int64_t> padded(shape.size(), 1);
  ArrayRef<int64_t> given = cast<RankedTensorType>(tile.getType()).getShape();
  llvm::copy(given, padded.end() - given.size());
  return k.broadcast(k.reshape(tile, padded), shape);
}

Value RowwiseEmitter::segmentColumn(Value segments, int64_t column) {
  if (segment) {
    Value columns[] = {segment->begin, segment->end, segment->slot,
                       segment->first};
    return k.splat(k.toI32(columns[column]), {block.rows, 1});
  }
  SegmentViews &views = segmentViews[segments];
  if (!views.rows) {
    Value segment =
        k.load(views.tokenSegment, {firstRow}, {0}, {block.rows}, {numRows});
    Value left = k.splat(k.toI32(k.sub(numRows, firstRow)), {block.rows});
    Value mask = k.lt(k.iota(0, {block.rows}), left);
    views.rows = k.loadRows(views.table, {k.idx(0), k.idx(0)}, segment, mask,
                            {0, 1}, {block.rows, 4});
  }
  return k.slice(views.rows, 1, column, 1);
}

Value RowwiseEmitter::rowNumbers() {
  int64_t shape[] = {block.rows, 1};
  return k.add(k.splat(k.toI32(firstRow), shape), k.iota(0, shape));
}

Value RowwiseEmitter::positions(Value segments) {
  return k.add(k.sub(rowNumbers(), segmentColumn(segments, 0)),
               segmentColumn(segments, 3));
}

Value RowwiseEmitter::positionsEnd(Value segments) {
  Value length = k.sub(segmentColumn(segments, 1), segmentColumn(segments, 0));
  return k.add(length, segmentColumn(segments, 3));
}

//===----------------------------------------------------------------------===//
// RowwiseBody
//===----------------------------------------------------------------------===//

RowwiseBody::RowwiseBody(Operation *op) : op(op) {
  if (auto region = dyn_cast<RowwiseOp>(op)) {
    Block &inside = region.getBody().front();
    for (Operation &inner : inside.without_terminator())
      body.push_back(&inner);
    llvm::append_range(operands, inside.getArguments());
    llvm::append_range(results, inside.getTerminator()->getOperands());
  } else {
    body.push_back(op);
    llvm::append_range(operands, op->getOperands());
    llvm::append_range(results, op->getResults());
  }
  block.rowType = cast<RankedTensorType>(results.front().getType());
}

void RowwiseBody::chooseRows(int64_t blockElements, int64_t mostRows) {
  int64_t widest = 1;
  auto widen = [&](Type type) {
    if (!block.hasRows(type))
      return;
    int64_t width = 1;
    for (int64_t size : cast<RankedTensorType>(type).getShape().drop_front())
      width *= size;
    widest = std::max(widest, width);
  };
  llvm::for_each(operands, [&](Value v) { widen(v.getType()); });
  llvm::for_each(results, [&](Value v) { widen(v.getType()); });
  int64_t rows = std::clamp<int64_t>(blockElements / widest, 1, mostRows);
  // A power of two: blocks of a contiguous buffer then start aligned.
  rows = int64_t(1) << llvm::Log2_64(rows);
  int64_t all = block.rowType.getDimSize(0);
  block.rows = ShapedType::isDynamic(all) ? rows : std::min(rows, all);
}

SmallVector<Value> RowwiseBody::rowLimit(Value numRows) const {
  return block.rows == 1 && !block.mayLackRows ? SmallVector<Value>()
                                               : SmallVector<Value>{numRows};
}

LogicalResult RowwiseBody::check() const {
  for (Operation *inner : body) {
    if (!lookupRowwiseEmission(inner))
      return inner->emitOpError("has no row-wise emission");
    if (!cast<RowwiseOpInterface>(inner).isRowwise())
      return inner->emitOpError(
          "does not keep to its rows; it is a view, not a kernel");
  }
  for (Value result : results) {
    auto type = cast<RankedTensorType>(result.getType());
    if (!block.hasRows(type) ||
        type.getDimSize(0) != block.rowType.getDimSize(0))
      return op->emitOpError(
                 "results must have the same rows in one kernel, got ")
             << block.rowType << " and " << type;
    if (type.getRank() > 3)
      return op->emitOpError("row-wise tiles have at most 3 dims, got ")
             << type << "; merge dims with hybrid.reshape";
  }
  return success();
}

bool RowwiseBody::keepsHeads() const {
  auto isApart = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return true;
    // A parameter of one dim is the same for all heads.
    return block.hasRows(type)
               ? type.getRank() == 3 &&
                     type.getDimSize(1) == block.rowType.getDimSize(1)
               : type.getRank() <= 1;
  };
  if (block.rowType.getRank() != 3 || !llvm::all_of(operands, isApart))
    return false;
  int64_t dim = block.rowType.getDimSize(2);
  HeadRow row{block.rowType.getDimSize(1), dim, /*width=*/dim};
  return llvm::all_of(body, [&](Operation *inner) {
    return !isa<ReshapeOp>(inner) &&
           operandParts(inner, RowPart::Elements, row) &&
           llvm::all_of(inner->getResults(), isApart);
  });
}

static Type viewTypeOf(Value value) {
  auto tensor = cast<RankedTensorType>(value.getType());
  return ViewType::get(tensor.getShape(), tensor.getElementType());
}

void RowwiseBody::appendOperandViews(SmallVectorImpl<Type> &types,
                                     bool withSegments) const {
  for (Value operand : operands)
    if (!isa<SegmentsType>(operand.getType()))
      types.push_back(viewTypeOf(operand));
    else if (withSegments)
      llvm::append_range(types,
                         KernelBuilder::segmentViewTypes(operand.getContext()));
}

Type RowwiseBody::resultView(unsigned n) const {
  return viewTypeOf(results[n]);
}

void RowwiseBody::load(RowwiseEmitter &e, Value firstRow, Value numRows,
                       bool withRows, bool withoutRows) const {
  unsigned view = firstView, loaded = 0;
  for (Value operand : operands) {
    if (isa<SegmentsType>(operand.getType()) && e.knowsSegment())
      continue;
    Value from = e.k.view(view++);
    if (isa<SegmentsType>(operand.getType())) {
      e.setSegments(operand, from, e.k.view(view++));
      continue;
    }
    unsigned number = loaded++;
    bool isWanted = block.hasRows(operand.getType()) ? withRows : withoutRows;
    // A region's argument that nothing reads is not loaded.
    if (!isWanted || e.tileOf(operand) || operand.use_empty())
      continue;
    auto type = cast<RankedTensorType>(operand.getType());
    SmallVector<int64_t> shape = e.tileShape(type);
    SmallVector<Value> indices = e.blockIndices(type), limits;
    if (block.hasRows(type))
      limits = rowLimit(numRows);
    SmallVector<int64_t> dims =
        llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
    Value tile = e.k.load(from, indices, dims, shape, limits);
    // Names are unique in a program, which may have several bodies.
    std::string name = "load_" + std::to_string(firstView + number);
    e.setTile(operand, e.k.named(name, tile));
  }
}

void RowwiseBody::prepare(RowwiseEmitter &e) const {
  for (Operation *inner : body)
    if (auto rotary = dyn_cast<RotaryOp>(inner))
      e.rotaryFactors(rotary);
}

void RowwiseBody::emit(RowwiseEmitter &e) const {
  for (Operation *inner : body)
    e.setTile(inner->getResult(0), lookupRowwiseEmission(inner)(e, inner));
}

void RowwiseBody::store(RowwiseEmitter &e, unsigned n, Value view,
                        Value firstRow, Value numRows) const {
  SmallVector<Value> indices(
      cast<RankedTensorType>(results[n].getType()).getRank(), e.k.idx(0));
  indices.front() = firstRow;
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq<int64_t>(0, indices.size()));
  e.k.store(e.tileOf(results[n]), view, indices, dims, rowLimit(numRows));
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

static ProgramOp buildProgram(OpBuilder &builder, const RowwiseBody &body) {
  const RowBlock &block = body.block;
  SmallVector<Type> types;
  body.appendOperandViews(types);
  const unsigned firstResult = types.size();
  for (unsigned n = 0; n < body.results.size(); ++n)
    types.push_back(body.resultView(n));
  AffineExpr rows = getSizes(block.rowType).getResult(0);
  KernelBuilder k(builder, body.op->getLoc(), "rowwise",
                  {rows.ceilDiv(block.rows)}, {Order::parallel}, types);
  Value firstRow = k.mul(k.id(0), k.idx(block.rows));
  Value numRows = k.dim(k.view(firstResult), 0);
  RowwiseEmitter e(k, block, firstRow, numRows);
  body.load(e, firstRow, numRows);
  body.emit(e);
  for (unsigned n = 0; n < body.results.size(); ++n)
    body.store(e, n, k.view(firstResult + n), firstRow, numRows);
  return k.finish();
}

FailureOr<ProgramOp> hybrid::tile::buildRowwise(OpBuilder &builder,
                                                Operation *op,
                                                int64_t blockElements,
                                                int64_t mostRows) {
  RowwiseBody body(op);
  if (failed(body.check()))
    return failure();
  body.chooseRows(blockElements, mostRows);
  return buildProgram(builder, body);
}

bool hybrid::tile::hasRowwiseEmission(Operation *op) {
  return lookupRowwiseEmission(op);
}
