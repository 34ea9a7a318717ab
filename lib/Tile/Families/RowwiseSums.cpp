//===- RowwiseSums.cpp - row-wise programs with sums over rows -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is only summed over the rows, the gradient of a gain, is not stored row
// by row: a point goes through a part of the rows and keeps the sum of each
// place of its blocks, which are added up at its end.
//
//===----------------------------------------------------------------------===//

#include "RowwiseEmitter.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "hybrid/Tile/Families/Rowwise.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::tile;

namespace {
class SumsProgram {
public:
  SumsProgram(OpBuilder &builder, const RowwiseBody &body, const RowSums &sums);
  ProgramOp build();

private:
  SmallVector<Type> viewTypes() const;
  unsigned viewWithRows() const;
  /// The tile, zero for rows past the last.
  Value present(Value tile, Value row);
  KernelBuilder::Values block(Value row, ValueRange carried);

  const RowwiseBody &body;
  const RowSums &sums;
  KernelBuilder k;
  unsigned firstResult;
  Value numRows, first, last;
  RowwiseEmitter outside;
};
} // namespace

static AffineExpr parts(const RowwiseBody &body, const RowSums &sums) {
  return getSizes(body.block.rowType).getResult(0).ceilDiv(sums.part);
}

SumsProgram::SumsProgram(OpBuilder &builder, const RowwiseBody &body,
                         const RowSums &sums)
    : body(body), sums(sums),
      k(builder, body.op->getLoc(), "rowwise_sums", {parts(body, sums)},
        {Order::parallel}, viewTypes()),
      firstResult(k.numViews() - body.results.size()),
      numRows(k.dim(k.view(viewWithRows()), 0)),
      first(k.mul(k.id(0), k.idx(sums.part))),
      last(k.min(numRows, k.add(first, k.idx(sums.part)))),
      outside(k, body.block, first, numRows) {
  body.load(outside, first, numRows, /*withRows=*/false);
}

SmallVector<Type> SumsProgram::viewTypes() const {
  SmallVector<Type> types;
  body.appendOperandViews(types);
  for (unsigned n = 0; n < body.results.size(); ++n)
    types.push_back(body.resultView(n));
  return types;
}

unsigned SumsProgram::viewWithRows() const {
  for (auto [n, isSummed] : llvm::enumerate(sums.summed))
    if (!isSummed)
      return firstResult + n;
  unsigned view = 0;
  for (Value operand : body.operands) {
    if (body.block.hasRows(operand.getType()))
      break;
    view += isa<SegmentsType>(operand.getType()) ? 2 : 1;
  }
  return view;
}

Value SumsProgram::present(Value tile, Value row) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tile.getType()).getShape();
  if (shape.front() == 1)
    return tile;
  Value left = k.splat(k.toI32(k.sub(numRows, row)), shape);
  return k.select(k.lt(k.iota(0, shape), left), tile, k.zeros(shape));
}

KernelBuilder::Values SumsProgram::block(Value row, ValueRange carried) {
  RowwiseEmitter e(k, body.block, row, numRows);
  for (Value operand : body.operands)
    if (Value tile = outside.tileOf(operand))
      e.setTile(operand, tile);
  body.load(e, row, numRows, /*withRows=*/true, /*withoutRows=*/false);
  body.emit(e);
  KernelBuilder::Values next;
  for (unsigned n = 0; n < body.results.size(); ++n)
    if (sums.summed[n])
      next.push_back(
          k.add(carried[next.size()], present(e.tileOf(body.results[n]), row)));
    else
      body.store(e, n, k.view(firstResult + n), row, numRows);
  return next;
}

ProgramOp SumsProgram::build() {
  KernelBuilder::Values none;
  for (auto [result, isSummed] : llvm::zip_equal(body.results, sums.summed))
    if (isSummed)
      none.push_back(k.zeros(outside.tileShape(result.getType())));
  KernelBuilder::Values total =
      k.loop(first, last, body.block.rows, none,
             [&](Value row, ValueRange in) { return block(row, in); });
  unsigned next = 0;
  for (unsigned n = 0; n < body.results.size(); ++n) {
    if (!sums.summed[n])
      continue;
    Value sum = total[next++];
    int64_t rank = cast<RankedTensorType>(sum.getType()).getRank();
    SmallVector<Value> indices(rank, k.idx(0));
    indices.front() = k.id(0);
    k.store(k.sum(sum, 0), k.view(firstResult + n), indices,
            llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  }
  return k.finish();
}

FailureOr<ProgramOp> hybrid::tile::buildRowwiseSums(OpBuilder &builder,
                                                    Operation *op,
                                                    const RowSums &sums,
                                                    int64_t blockElements) {
  RowwiseBody body(op);
  if (failed(body.check()))
    return failure();
  body.chooseRows(blockElements, sums.part);
  return SumsProgram(builder, body, sums).build();
}
